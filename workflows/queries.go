package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
)

func (r *run) handleQueries(ctx workflow.Context) error {
	queries := []struct {
		name, about string
		answer      any
	}{
		{QueryState, "The thread's values, what runs next, and the open questions.", r.state},
		{QueryHistory, "The thread's latest checkpoints, oldest first.", func() ([]Line, error) { return r.lines.latest(maxLines), nil }},
		{QueryGraph, "The graph as this run began with it.", func() (*pregel.Spec, error) { return r.in.Spec, nil }},
		{QueryAudit, "The audit of the thread's approvals, as far as this run made it.", r.auditReply},
		{QueryHandoff, "What a new run needs to continue this one.", func() (Closing, error) { return r.closing(), nil }},
	}
	for _, q := range queries {
		err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.answer, workflow.QueryHandlerOptions{Description: q.about})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) state() (State, error) {
	snapshot, err := r.program.Now(r.thread)
	if err != nil {
		return State{}, err
	}
	s := State{Graph: r.in.Graph, Status: r.status, Drained: r.drained, Paused: r.paused, Snapshot: *snapshot, Output: r.program.Spec.Output,
		Answered: r.inbox.answered, Refused: r.inbox.refused, Questions: r.questions(), Waits: r.waits(), Due: r.events.Due,
		Ledgers: r.program.Ledgers(r.thread)}
	if r.failure != nil {
		s.Failure = failureOf(r.in.Graph, r.failure)
	}
	s.Durability, s.Fused = r.mode()
	s.Approvals = r.shownApprovals()
	for _, p := range s.Approvals {
		if !p.Due.IsZero() {
			s.Due = append(slices.Clip(s.Due), Due{Question: p.Question, At: p.Due})
		}
	}
	for _, k := range r.events.Kept {
		k.Value = nil
		s.Kept = append(s.Kept, k)
	}
	if r.cancel.undoing {
		s.Cancel = r.cancel.asked
	} else if r.status == StatusRunning {
		s.Running = snapshot.Next
	}
	return s, nil
}

// unanswered are the open questions without those whose answer is in the inbox already.
func (r *run) unanswered() []pregel.OpenQuestion {
	var out []pregel.OpenQuestion
	for _, q := range r.asks() {
		if !r.inbox.hasAnswer(q.ID) {
			out = append(out, q)
		}
	}
	return out
}
