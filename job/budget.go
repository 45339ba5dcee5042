package job

import (
	"fmt"
	"strings"
	"time"
)

// amounts are the parts of a budget that attempts spend, in the order of [Usage].
type amounts [3]int64

func (b Budget) amounts() amounts { return amounts{b.Tokens, b.MicroUSD, b.Writes} }

func (u Usage) amounts() amounts { return amounts{u.Tokens, u.MicroUSD, u.Writes} }

// MaxAmount bounds what is counted of tokens, money and writes, and what a budget may allow of anything: what is more
// counts as this.
const MaxAmount = 1e15

// plus adds usage; what is negative counts as nothing.
func (u Usage) plus(other Usage) Usage {
	return Usage{
		Tokens: sum(u.Tokens, other.Tokens), MicroUSD: sum(u.MicroUSD, other.MicroUSD), Writes: sum(u.Writes, other.Writes),
		Unknown: u.Unknown || other.Unknown,
	}
}

func sum(x, y int64) int64 {
	return min(x+min(max(y, 0), MaxAmount), MaxAmount)
}

// spend counts what was spent of what had been set aside, and returns what counts: of usage that is not known, at least
// what was set aside.
func (b *Board) spend(u Usage, aside Budget) Usage {
	if u.Unknown {
		u.Tokens, u.MicroUSD, u.Writes = max(u.Tokens, aside.Tokens), max(u.MicroUSD, aside.MicroUSD), max(u.Writes, aside.Writes)
	}
	b.Spent = b.Spent.plus(u)
	return Usage{}.plus(u)
}

// purse is what a job may still spend.
type purse struct {
	limits amounts
	left   amounts // without what is set aside
	spent  string  // which limit is reached whatever happens to attempts under way, "" for none
	// seconds and attempts are what is left of these; -1 is no limit. Subjobs are counted when they are planned.
	seconds, attempts int64
}

// purse counts what is left of the job's budget.
func (b *Board) purse(now time.Time) purse {
	limit := b.Job.Budget
	p := purse{limits: limit.amounts(), seconds: -1, attempts: -1}
	attempts, aside := int64(0), amounts{}
	for _, s := range b.SubJobs {
		attempts += int64(s.Attempts)
		if s.Open {
			for i, n := range s.Allowance.amounts() {
				aside[i] += n
			}
		}
	}
	for i, spent := range b.Spent.amounts() {
		if p.left[i] = p.limits[i] - spent; p.limits[i] > 0 && p.left[i] < 1 {
			p.spent = [...]string{"tokens", "money", "writes"}[i]
		}
		p.left[i] -= aside[i]
	}
	if limit.Seconds > 0 {
		if p.seconds = limit.Seconds - int64(b.worked(now)/time.Second); p.seconds < 1 {
			p.spent = "time"
		}
	}
	if limit.Attempts > 0 {
		if p.attempts = limit.Attempts - attempts; p.attempts < 1 {
			p.spent = "attempts"
		}
	}
	return p
}

// share is what each of n attempts may spend of what is left; false when that is nothing.
func (p purse) share(n int) (Budget, bool) {
	var each amounts
	for i, limit := range p.limits {
		if limit == 0 {
			continue
		}
		if each[i] = p.left[i] / int64(n); each[i] < 1 {
			return Budget{}, false
		}
	}
	return Budget{Tokens: each[0], MicroUSD: each[1], Writes: each[2], Seconds: max(p.seconds, 0)}, true
}

// more reports whether an allowance has more of anything than another one.
func (b Budget) more(than Budget) bool {
	return b.Tokens > than.Tokens || b.MicroUSD > than.MicroUSD || b.Writes > than.Writes || b.Seconds > than.Seconds
}

// field is a part of a budget.
type field struct {
	name  string
	value *int64
}

// fields are a budget's parts, always in the same order.
func (b *Budget) fields() []field {
	return []field{
		{"tokens", &b.Tokens}, {"micro_usd", &b.MicroUSD}, {"writes", &b.Writes}, {"seconds", &b.Seconds},
		{"subjobs", &b.SubJobs}, {"attempts", &b.Attempts},
	}
}

func (b Budget) problem() string {
	for _, f := range b.fields() {
		if *f.value < 0 || *f.value > MaxAmount {
			return fmt.Sprintf("the budget for %s is %d; it is from 0, which is no limit, to %d", f.name, *f.value, int64(MaxAmount))
		}
	}
	return ""
}

// Raise sets new limits for what the job may spend; what is 0 stays as it is. A limit that is not above the one that
// there is, and one where there is none, is refused with the code bad_budget: a limit is not lowered under way.
func (b *Board) Raise(to Budget, by string, now time.Time) error {
	now = stamp(now)
	if err := b.goesOn(); err != nil {
		return err
	}
	if problem := to.problem(); problem != "" {
		return b.refuse("bad_budget", problem, "")
	}
	limits, raised := b.Job.Budget, []string(nil)
	old := limits.fields()
	for i, f := range to.fields() {
		switch {
		case *f.value == 0:
			continue
		case *f.value < *old[i].value:
			return b.refuse("bad_budget", fmt.Sprintf("the budget for %s cannot be %d: it is %d, and is only raised", f.name, *f.value, *old[i].value), "")
		case *old[i].value == 0:
			return b.refuse("bad_budget", fmt.Sprintf("the budget for %s has no limit, so that it cannot be raised", f.name), "")
		case *f.value == *old[i].value:
			continue
		}
		raised = append(raised, fmt.Sprintf("%s to %d", f.name, *f.value))
		*old[i].value = *f.value
	}
	if len(raised) == 0 {
		return b.refuse("bad_budget", "nothing of the budget is raised", "give at least one limit above the one that there is")
	}
	b.Job.Budget = limits
	b.log(now, Event{Kind: "raised", Text: byWhom(strings.Join(raised, ", "), by)})
	if b.Phase == PhaseOverBudget {
		b.Phase, b.Reason = PhaseWorking, ""
	}
	b.settle(now)
	return nil
}
