package thread

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// Budget is what a thread may spend; 0 is no limit. See superstep.WithBudget.
type Budget struct {
	Tokens int64 `json:"tokens,omitempty"`
	// MicroUSD is money, in millionths of a dollar.
	MicroUSD int64 `json:"micro_usd,omitempty"`
	// Writes are effects that the outside has.
	Writes int64 `json:"writes,omitempty"`
	// Time is that in which a node was at work, in whole milliseconds: the wall clock without waits for people and events.
	Time time.Duration `json:"time_ns,omitempty"`
	// Supersteps are those of the graph and of its subgraphs.
	Supersteps int64 `json:"supersteps,omitempty"`
}

// BudgetView is what a thread has spent of its budget.
type BudgetView struct {
	Spent Budget `json:"spent"`
	Limit Budget `json:"limit"`
}

// Amounts are the budget as the engine counts it. Its time is cut to milliseconds, and to one when it is less.
func (b Budget) Amounts() pregel.Amounts {
	millis := b.Time.Milliseconds()
	if millis == 0 && b.Time > 0 {
		millis = 1
	}
	return pregel.Amounts{Tokens: b.Tokens, MicroUSD: b.MicroUSD, Writes: b.Writes, Millis: millis, Supersteps: b.Supersteps}
}

// ViewOfBudget shows a thread's meter; nil for none.
func ViewOfBudget(m *pregel.Meter) *BudgetView {
	if m == nil {
		return nil
	}
	budget := func(a pregel.Amounts) Budget {
		return Budget{Tokens: a.Tokens, MicroUSD: a.MicroUSD, Writes: a.Writes, Supersteps: a.Supersteps,
			Time: time.Duration(min(a.Millis, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond}
	}
	return &BudgetView{Spent: budget(m.Total()), Limit: budget(m.Limit)}
}

// budgetForm is what a budget looks like in text.
const budgetForm = "tokens=10000,money=2.5USD,writes=3,time=10m,supersteps=100, or some of these"

// maxBudgetText bounds a budget in text, in bytes.
const maxBudgetText = 500

// ParseBudget reads a budget from text: tokens=10000,money=2.5USD,writes=3,time=10m,supersteps=100, or some of these. Each limit
// is above 0; money has at most six decimals.
func ParseBudget(text string) (Budget, error) {
	var b Budget
	if len(text) > maxBudgetText {
		return Budget{}, noBudget("it has %d bytes", len(text))
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if seen[name] {
			return Budget{}, noBudget("%s is there twice", strconv.Quote(name))
		}
		seen[name] = true
		if err := b.set(name, strings.TrimSpace(value)); err != nil {
			return Budget{}, noBudget("%v", err)
		}
	}
	return b, nil
}

func noBudget(format string, args ...any) error {
	return &Error{Kind: ErrBadInput, Message: fmt.Sprintf(format, args...) + ": a budget is " + budgetForm}
}

func (b *Budget) set(name, value string) (err error) {
	switch name {
	case "tokens":
		b.Tokens, err = whole(value)
	case "writes":
		b.Writes, err = whole(value)
	case "supersteps":
		b.Supersteps, err = whole(value)
	case "money":
		b.MicroUSD, err = microUSD(value)
	case "time":
		if b.Time, err = time.ParseDuration(value); err == nil && (b.Time < time.Millisecond || b.Time%time.Millisecond != 0) {
			err = fmt.Errorf("%s is not a time of whole milliseconds above 0", value)
		}
	default:
		err = fmt.Errorf("%q is nothing that is counted", name)
	}
	return err
}

func whole(value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 || n > pregel.MaxAmount {
		return 0, fmt.Errorf("%q is not a whole number from 1 to %d", value, int64(pregel.MaxAmount))
	}
	return n, nil
}

// decimals are those of a dollar that count.
const decimals = 6

// microUSD reads dollars without a detour by binary fractions.
func microUSD(value string) (int64, error) {
	wrong := fmt.Errorf("%q is no amount of dollars above 0 with at most six decimals, as 2.5USD", value)
	number, unit := strings.CutSuffix(value, "USD")
	digits, fraction, pointed := strings.Cut(number, ".")
	if !unit || pointed && fraction == "" || len(fraction) > decimals {
		return 0, wrong
	}
	n, err := strconv.ParseUint(digits+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 63)
	if err != nil || digits == "" || n == 0 || n > pregel.MaxAmount {
		return 0, wrong
	}
	return int64(n), nil
}
