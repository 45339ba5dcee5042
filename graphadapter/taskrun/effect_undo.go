package taskrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

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
	if !c.recorded || c.entry.State != ledger.StateUnknown || c.effect.Compensate == nil {
		return "", false
	}
	answer, ok := c.t.answers[c.t.questionID(&pregel.Question{Key: c.doubtKey()})]
	var r ruling
	if !ok || json.Unmarshal(answer.Value, &r) != nil || r.Action != rulingUndo {
		return "", false
	}
	return orAPerson(answer.By), true
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
