package taskrun

import (
	"context"
	"encoding/json"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// Spending is what a node says that it spends.
type Spending struct {
	Tokens int64 `json:"tokens,omitempty"`
	// MicroUSD is money, in millionths of a dollar.
	MicroUSD int64 `json:"micro_usd,omitempty"`
	// Writes are those that are made without an effect: an effect counts as one by itself.
	Writes int64 `json:"writes,omitempty"`
}

func (s Spending) plus(other Spending) Spending {
	return Spending{Tokens: s.Tokens + other.Tokens, MicroUSD: s.MicroUSD + other.MicroUSD, Writes: s.Writes + other.Writes}
}

type allowanceKey struct{}

// WithAllowance has may decide about what is spent with the context, before it is noted: its error is that of Spend.
func WithAllowance(ctx context.Context, may func(Spending) error) context.Context {
	return context.WithValue(ctx, allowanceKey{}, may)
}

// spendName is the name of the memoised calls that note what is spent.
const spendName = "superstep.spend"

// Spend notes what the node spends. In the node's own code it is remembered as a memoised call is: what the node runs through
// again is noted once. Within a memoised call each note counts, as a call that is made again spends again: after a failure, or
// a lost worker.
func (t *TaskRun) Spend(ctx context.Context, s Spending) error {
	about, err := jsontext.Encode(s)
	if err != nil {
		return err
	}
	note := func(context.Context) (pregel.Value, error) {
		if may, ok := ctx.Value(allowanceKey{}).(func(Spending) error); ok {
			if err := may(s); err != nil {
				return nil, err
			}
		}
		return about, nil
	}
	next := func() ledger.Entry {
		return ledger.Entry{Key: t.callKey(ledger.KindTask, spendName, "", string(about)), Name: spendName, Kind: ledger.KindTask, Attempts: 1}
	}
	e := next()
	for t.InCall() && t.isNoted(e.Key) {
		e = next()
	}
	_, err = t.memo(ctx, e, note)
	return err
}

// isNoted reports whether an execution before noted what it spent under a key.
func (t *TaskRun) isNoted(key string) bool {
	e, ok := t.journal.Entry(key)
	return ok && e.State == ledger.StateCommitted
}

// Noted is what nodes have noted in these entries. told says that there is a note, be it of nothing.
func Noted(entries []ledger.Entry) (sum Spending, told bool) {
	for _, e := range entries {
		if s, is := note(e); is {
			sum, told = sum.plus(s), true
		}
	}
	return sum, told
}

func note(e ledger.Entry) (s Spending, is bool) {
	is = e.Kind == ledger.KindTask && e.Name == spendName && e.State == ledger.StateCommitted && json.Unmarshal(e.Result, &s) == nil
	return s, is
}

// spending is what one entry says: a note, or one write of an effect that the outside has, or had before it was undone.
func spending(e ledger.Entry) (s Spending, is bool) {
	if e.Kind == ledger.KindEffect && (e.State == ledger.StateCommitted || e.State == ledger.StateCompensated) {
		return Spending{Writes: 1}, true
	}
	return note(e)
}

// SpentOf is what a metered task has spent since it was handed out: what its entries say beyond those that came with it, which
// the thread's meter has counted. It is nil for a task that is not metered.
func SpentOf(task *pregel.Task, entries []ledger.Entry) *pregel.Spent {
	if !task.Metered {
		return nil
	}
	before := map[string]bool{}
	known, _ := graphadapter.DecodeLedger(task.Ledger) // it was read when the task began
	for _, e := range known {
		_, before[e.Key] = spending(e)
	}
	var s Spending
	for _, e := range entries {
		if one, is := spending(e); is && !before[e.Key] && !isOfAnother(task, e.Key) {
			s = s.plus(one)
		}
	}
	return &pregel.Spent{Tokens: s.Tokens, MicroUSD: s.MicroUSD, Writes: s.Writes}
}

// isOfAnother reports whether the thread kept a thread-wide call as made when the task was handed out.
func isOfAnother(task *pregel.Task, key string) bool {
	var e ledger.Entry
	if json.Unmarshal(task.Kept[key], &e) != nil {
		return false
	}
	_, is := spending(e)
	return is
}

// SpentIn is SpentOf a stored ledger; nil for one that cannot be read.
func SpentIn(task *pregel.Task, stored pregel.Value) *pregel.Spent {
	entries, err := graphadapter.DecodeLedger(stored)
	if err != nil {
		return nil
	}
	return SpentOf(task, entries)
}

// metered completes an outcome with what the task spent, and when it ran.
func (e *execution) metered(o pregel.Outcome) pregel.Outcome {
	if !e.task.Metered || e.env.Outbox == nil {
		return o
	}
	o.Spent = SpentOf(e.task, e.env.Outbox.Entries())
	ended := e.env.Outbox.now() // the server's clock: times of several workers are added up
	o.Spent.Began, o.Spent.Ended = ended.Add(-time.Since(e.began)).UnixMilli(), ended.UnixMilli()
	return o
}
