package graphtest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// activity runs one task as its activity does: execution after execution, until one comes to an end.
func (tr *trial) activity(t *pregel.Task, suspect bool) (pregel.Outcome, error) {
	_, between, err := graphadapter.DecodeCarryOver(t.Ledger)
	if err != nil {
		return pregel.Outcome{}, err
	}
	kept := graphadapter.NodeProgress{Failures: between.Failures}
	for number := 1; ; number++ {
		w := tr.live()
		outcome, err := executed(w, func() (pregel.Outcome, error) { return tr.execute(w, t, suspect || number > 1, &kept) })
		var failed *attemptFailed
		switch {
		case errors.Is(err, errLost):
			continue
		case errors.As(err, &failed):
			kept.Failures++
			continue
		case err != nil:
			return outcome, fmt.Errorf("task %s: %w", t.Key(), err)
		}
		return outcome, nil
	}
}

// attemptFailed says that the node's policy tries again. Its wait is left out: no clock of a matrix waits for it.
type attemptFailed struct{ error }

// execute is one execution of a task.
func (tr *trial) execute(w *process, t *pregel.Task, suspect bool, kept *graphadapter.NodeProgress) (pregel.Outcome, error) {
	x := w.execution(t.Key())
	x.at("start")
	task, err := sent(*t)
	if err != nil {
		return pregel.Outcome{}, err
	}
	if t.Retry != nil {
		policies, err := tr.graph.RetryPolicies(t)
		_, again := graphadapter.RetryAfter(policies, t.Attempt, t.Retry)
		return pregel.Outcome{Again: again}, err
	}
	stored, err := taskrun.NewTaskJournal(&task)
	if err != nil {
		return pregel.Outcome{}, err
	}
	beaten, err := graphadapter.DecodeLedger(kept.Ledger)
	if err != nil {
		return pregel.Outcome{}, err
	}
	stored.Add(beaten...)
	journal := x.record(&heartbeats{MemoryJournal: stored, by: w, kept: kept, yields: tr.yield})
	outcome, err := taskrun.RunAttempt(w.ctx, tr.graph, &task, taskrun.Env{
		Thread: matrixThread, Context: tr.m.settings.context, Attempt: kept.Failures + 1, Suspect: suspect,
		Journal: journal, Outside: tr.outside.serve(x), Use: allowed,
	})
	x.at("end")
	x.finished()
	if err == nil {
		return sent(outcome)
	}
	policies, missing := tr.graph.RetryPolicies(t)
	if missing != nil {
		return outcome, missing
	}
	if _, again := graphadapter.RetryAfter(policies, kept.Failures+1, err); again {
		return outcome, &attemptFailed{err}
	}
	outcome.Error = graphadapter.FailureOf(tr.nameOf(t), t.Node, err)
	return sent(outcome)
}

func (tr *trial) nameOf(t *pregel.Task) string {
	if sub, ok := tr.graph.Subgraph(t.Graph); ok {
		return sub.Spec.Name
	}
	return tr.graph.Spec.Name
}

// heartbeats is a task's journal in sync mode: a record is stored with the heartbeat that tells of it.
type heartbeats struct {
	*graphadapter.MemoryJournal
	by   *process
	kept *graphadapter.NodeProgress
	// yields says that a heartbeat has room for one record only: the task is given back at the second one.
	yields bool
	count  atomic.Int32
}

// Record implements taskrun.Journal.
func (h *heartbeats) Record(ctx context.Context, e ledger.Entry) error {
	full := h.yields && h.count.Add(1) > 1
	if full && e.Kind == ledger.KindEffect && e.State == ledger.StateIntent {
		return graphadapter.ErrYielded
	}
	if err := h.MemoryJournal.Record(ctx, e); err != nil {
		return err
	}
	var failed error
	if !h.by.of.crashes.alive(h.by, func() { h.kept.Ledger, failed = graphadapter.EncodeLedger(h.Entries()) }) {
		return graphadapter.ErrFenced
	}
	if full {
		return graphadapter.ErrYielded
	}
	return failed
}
