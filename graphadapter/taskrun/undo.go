package taskrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// Compensation is one effect of a thread that is to be undone.
type Compensation struct {
	// Graph is the path of subgraph names to the graph whose node called the effect, empty for the root graph.
	Graph []string `json:"graph,omitempty"`
	Node  string   `json:"node"`
	Step  int      `json:"step"`
	// Effect is its ledger entry.
	Effect ledger.Entry `json:"effect"`
	// Place is the [pregel.Task.Place] of the task that called it, "" when that is not known any more.
	Place string `json:"place,omitempty"`
	// Tried says that an earlier compensation of it was begun.
	Tried bool `json:"tried,omitempty"`
}

// UndoState says what became of a [Compensation].
type UndoState string

const (
	// UndoDone: the outside had the write, and has it no more.
	UndoDone UndoState = "compensated"
	// UndoAbsent: the outside never had it.
	UndoAbsent UndoState = "absent"
	// UndoOpen: no program can undo it, or tell whether it is undone; Reason says why. A person is asked.
	UndoOpen UndoState = "open"
)

// Undone is the outcome of a [Compensation].
type Undone struct {
	State UndoState `json:"state"`
	// Evidence says how we know, "" after our own call.
	Evidence string `json:"evidence,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Calls counts the calls that were started to undo it.
	Calls int `json:"calls,omitempty"`
	// Receipt is the receipt that was found of an effect that had none.
	Receipt pregel.Value `json:"receipt,omitempty"`
	// Params are, with UndoOpen, the effect's parameters as people are shown them, without the secrets that its Approval
	// names. They are null when they are larger than 16 KiB or not on record, and nil when nobody knows what to hide.
	Params pregel.Value `json:"params,omitempty"`
}

// CompensateEnv is what runs a compensation: like an [Env].
type CompensateEnv struct {
	Thread  string
	Context pregel.Value
	// Suspect says that an earlier execution may have called without a trace in the journal.
	Suspect bool
	Journal Journal
	// Lease says for how long the compensation is this execution's; nil for always.
	Lease Lease
	// Pause bounds the wait before the first repetition of a call that failed; 0 means 0.2 s, and each wait doubles.
	Pause time.Duration
	// Settling is told until when the compensation waits for an earlier call, which may still show in the outside, and the
	// zero time when it goes on; nil for nobody.
	Settling func(until time.Time)
	// wait waits for an earlier call to settle; nil waits.
	wait func(context.Context, time.Duration) error
}

// maxUndoCalls bounds the calls that are made to undo one effect before a person is asked.
const maxUndoCalls = 5

// undo is one compensation on its way through the protocol.
type undo struct {
	of       Compensation
	env      CompensateEnv
	effect   graphadapter.Effect
	own      ledger.Entry // of the compensation
	recorded bool         // own is in the journal
	finding  ledger.Finding
	found    pregel.Value // the receipt that was found
	note     string
	failure  error // of the last call
	// partly says that what is there is to be undone, whole or not: a person has said so.
	partly bool
}

func (u *undo) open(reason string) Undone {
	return Undone{State: UndoOpen, Reason: graphadapter.Bounded(reason), Receipt: u.found}
}

func (u *undo) pauseAfter(calls int) time.Duration {
	first := u.env.Pause
	if first == 0 {
		first = 200 * time.Millisecond
	}
	return first << max(calls-1, 0)
}

// before is what is known of the executions before this one. One of them that left nothing may have been lost.
func (u *undo) before() ledger.Earlier {
	switch {
	case !u.env.Suspect:
		return ledger.EarlierNone
	case u.recorded:
		return ledger.EarlierUncertain
	}
	return ledger.EarlierLost
}

// settledAfter is how long a call may still be under way unseen: the effect's, and one that may have been made to undo it,
// which has the default times.
func (u *undo) settledAfter() time.Duration {
	wait := settledAfter(u.of.Effect)
	if u.recorded || u.env.Suspect {
		wait = max(wait, graphadapter.DefaultCallTimeout+graphadapter.DefaultSettleTime)
	}
	return wait
}

// settledAfter is how long after a call of an effect began it may show in the outside at the latest.
func settledAfter(e ledger.Entry) time.Duration {
	if e.Settle <= 0 {
		return graphadapter.DefaultCallTimeout + graphadapter.DefaultSettleTime
	}
	return graphadapter.Milliseconds(e.Settle)
}

// lookUp asks the outside about the effect. What fails for long is no clear answer.
func (u *undo) lookUp(ctx context.Context) error {
	u.finding, u.note, u.found = ledger.FindingUnknown, "", nil
	var f graphadapter.Finding
	var err error
	for try := 1; ; try++ {
		f, err = lookUp(ctx, graphadapter.DefaultCallTimeout, u.env.Lease, &u.effect, &u.of.Effect)
		if err == nil || graphadapter.IsPermanent(err) || try == maxUndoCalls {
			break
		}
		if ctx.Err() != nil || !pause(ctx, u.pauseAfter(try)) {
			return context.Cause(ctx)
		}
	}
	if err != nil {
		u.note = fmt.Sprintf("the outside could not be asked: %v", err)
		return nil
	}
	u.finding, u.note = f.Status, f.Note
	if f.Receipt != nil && !pregel.IsNull(f.Receipt) {
		u.found = f.Receipt
	}
	return nil
}

// lookUpSettled looks up again once no earlier call can still be under way unseen; the same answer then is believed.
func (u *undo) lookUpSettled(ctx context.Context) error {
	before := u.finding
	if err := u.settle(ctx); err != nil {
		return err
	}
	if err := u.lookUp(ctx); err != nil {
		return err
	}
	if u.partly && u.finding == ledger.FindingPartial {
		u.finding = ledger.FindingCommitted
	}
	switch {
	case u.finding != before:
	case before == ledger.FindingCommitted:
		u.finding = ledger.FindingStillCommitted
	case before == ledger.FindingNotFound:
		u.finding = ledger.FindingStillNotFound
	}
	return nil
}

// settle waits until no earlier call can still be under way unseen, and tells who looks at the run until when.
func (u *undo) settle(ctx context.Context) error {
	wait := u.settledAfter()
	if u.env.Settling != nil {
		u.env.Settling(time.Now().Add(wait))
		defer u.env.Settling(time.Time{})
	}
	if u.env.wait != nil {
		return u.env.wait(ctx, wait)
	}
	if !pause(ctx, wait) {
		return context.Cause(ctx)
	}
	return nil
}

// ErrUndone is what a call of an effect returns of which the outside had a part, and whose write a person had undone. The
// node fails with it; whoever retries it makes another write, under a key of its own.
var ErrUndone = errors.New("the write was undone, and is not made again by itself: retry to make another one")

func undoneError(evidence string) error {
	return graphadapter.Permanent(fmt.Errorf("%w (%s)", ErrUndone, evidence))
}

// undoable reports whether there is something to undo that is not the whole write: then a person may decide for that.
func (c *effectCall) undoable() bool {
	return c.effect.Compensate != nil && c.finding == ledger.FindingPartial
}

// undoRuled reports whether a person has decided that the effect is to be undone, and who. It is looked for before the
// outside is asked: what is not found there may have been undone by an execution that was lost.
func (c *effectCall) undoRuled() (by string, ruled bool) {
	r, by, ok := c.answered()
	return by, ok && r.Action == rulingUndo && c.effect.Compensate != nil
}

// undo undoes what the outside has of the effect, by its Compensate, as [Compensate] does: what is called is stored
// before it is called, and looked up by whoever goes on after a lost worker. Then the call fails. What stays unclear is
// asked about again, as another question.
func (c *effectCall) undo(ctx context.Context, by string) error {
	of := Compensation{Graph: c.t.task.Graph, Node: c.t.info.Node, Step: c.t.info.Step, Effect: c.entry}
	env := CompensateEnv{Thread: c.t.info.Thread, Context: c.t.env.Context, Suspect: c.t.info.Suspect, Journal: c.t.Journal(), Lease: c.t.env.Lease,
		wait: c.t.env.Outside.wait}
	u := newUndo(of, env)
	u.effect, u.partly = c.effect, true
	undone, err := u.takeBack(inUndo(ctx, c.t.root, c.t.graph, of, env))
	if err != nil {
		return c.failed("undo", err)
	}
	ruled := c.entry.Ruled()
	if undone.State != UndoDone { // another question
		c.finding, c.receipt = ledger.FindingPartial, c.entry.Result
		c.reason = graphadapter.Bounded("it could not be undone: " + undone.Reason)
		return c.doubt(ctx, ruled)
	}
	entry, err := ruled.Undo("undone, says " + by)
	if err == nil {
		err = c.t.recordDone(ctx, entry)
	}
	if err != nil {
		return c.failed("record that it is undone", err)
	}
	c.entry, c.recorded = entry, true
	return c.failed("call", undoneError(entry.Evidence))
}

// unseen records that the outside could not be asked about an effect of which there is no trace: an execution that was lost
// may have made it. Whoever looks at the thread, or undoes what it did, has to know.
func (c *effectCall) unseen(ctx context.Context, failure error) error {
	if c.recorded {
		return nil
	}
	entry, err := c.entry.Doubt(graphadapter.Bounded(failure.Error()), nil)
	if err == nil {
		err = c.t.recordDone(ctx, entry)
	}
	if err != nil {
		return c.failed("record that it is not known", err)
	}
	c.entry, c.recorded = entry, true
	return nil
}

func orAPerson(by string) string { return cmp.Or(by, "a person") }

// Reported returns the entries of a task as they are stored once it has failed for good: who retries it knows then what was
// undone.
func Reported(entries []ledger.Entry) []ledger.Entry {
	out := entries
	for i, e := range entries {
		if e.State != ledger.StateCompensated || e.Reported {
			continue
		}
		if &out[0] == &entries[0] {
			out = append([]ledger.Entry{}, entries...)
		}
		out[i].Reported = true
	}
	return out
}
