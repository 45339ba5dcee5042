package runtime

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// approvalView is the view of a question's action as it was asked about; nil for any other question.
func approvalView(q pregel.Question) *thread.ApprovalView {
	var a approval.Action
	if q.Approval == nil || json.Unmarshal(q.Approval, &a) != nil {
		return nil
	}
	v := &thread.ApprovalView{Digest: a.Digest(), Asked: a.Approvers, Need: a.Needs(0)}
	if b := a.Before; b != nil {
		if b.Params != nil {
			v.Changes, _ = approval.Diff(b.Params, a.Params, a.Secrets)
		}
		b.Params = approval.Masked(b.Params, a.Secrets)
	}
	a.Params = approval.Masked(a.Params, a.Secrets)
	v.Action = a
	return v
}

// AddPending adds what a run knows of a question that asks for an approval.
func AddPending(q thread.Question, all []protocol.PendingApproval) {
	for _, p := range all {
		if p.Question == q.ID && q.Approval != nil {
			q.Approval.Asked, q.Approval.Votes, q.Approval.Need = p.Asked, p.Votes, p.Need
			q.Approval.Due, q.Approval.Escalated, q.Approval.Claimed = cmp.Or(p.Due, p.Missed), p.Escalated, p.Claimed
		}
	}
}

// QuestionView is a question as people see it.
func QuestionView(q pregel.Question, node string, step int) thread.Question {
	return thread.Question{ID: q.ID, Node: node, Step: step, Value: q.Value, Schema: q.Schema, Approval: approvalView(q),
		Default: json.RawMessage(q.Default)}
}

// AddDue adds when the deadlines of questions are.
func AddDue(questions []thread.Question, all []protocol.Due) {
	due := DueIn(all)
	for i := range questions {
		if questions[i].Approval == nil {
			questions[i].Due = due(questions[i].ID)
		}
	}
}

// QuestionsOf are open questions as people see them.
func QuestionsOf(open []pregel.OpenQuestion) []thread.Question {
	var out []thread.Question
	for _, q := range open {
		out = append(out, QuestionView(q.Question, q.Node, q.Step))
	}
	return out
}

// WaitViews are waits for events as people see them; due tells when each is over.
func WaitViews(waits []pregel.OpenQuestion, due func(question string) time.Time) []thread.WaitView {
	var out []thread.WaitView
	for _, q := range waits {
		for _, one := range q.Each() {
			out = append(out, thread.WaitView{ID: q.ID, Event: one.Event, Node: q.Node, Step: q.Step, Schema: one.Schema, Due: due(q.ID)})
		}
	}
	return out
}

// DueIn finds when a wait is over.
func DueIn(all []protocol.Due) func(question string) time.Time {
	return func(question string) time.Time {
		at := slices.IndexFunc(all, func(d protocol.Due) bool { return d.Question == question })
		if at < 0 {
			return time.Time{}
		}
		return all[at].At
	}
}

// KeptViews are kept events as people see them.
func KeptViews(kept []protocol.KeptEvent) []thread.KeptEventView {
	var out []thread.KeptEventView
	for _, k := range kept {
		out = append(out, thread.KeptEventView{Event: k.Name, By: k.By, At: k.At})
	}
	return out
}

// ForPeople are the questions that people can answer: the others wait for events.
func ForPeople(open []pregel.OpenQuestion) []pregel.OpenQuestion {
	return slices.DeleteFunc(slices.Clone(open), func(q pregel.OpenQuestion) bool { return q.Event != "" })
}

// ForEvents are the others.
func ForEvents(open []pregel.OpenQuestion) []pregel.OpenQuestion {
	return slices.DeleteFunc(slices.Clone(open), func(q pregel.OpenQuestion) bool { return q.Event == "" })
}

// WaitingStatus is the status of a thread whose tasks wait for these.
func WaitingStatus(open []pregel.OpenQuestion) thread.Status {
	if len(open) > 0 && len(ForPeople(open)) == 0 {
		return thread.StatusWaitingEvent
	}
	return thread.StatusWaiting
}

// ModeShown is a run's durability as views have it.
func ModeShown(d graphadapter.Durability) graphadapter.Durability {
	return cmp.Or(d, graphadapter.DurabilitySync)
}

// EffectView is one entry of a ledger as people see it.
func EffectView(node string, e ledger.Entry) thread.EffectView {
	return thread.EffectView{Key: e.Key, Effect: e.Name, Node: node, State: string(e.State), Attempts: e.Attempts,
		Receipt: e.Result, Evidence: e.Evidence, Approved: e.Approved}
}

// EffectsView are the effects of a thread as people see them.
func EffectsView(records []past.EffectRecord) []thread.EffectView {
	out := make([]thread.EffectView, len(records))
	for i, r := range records {
		out[i] = EffectView(r.Node, r.Entry)
		out[i].Step, out[i].Run, out[i].Time = r.Step, r.Run, r.Time
	}
	return out
}

// FailureStatus is the status of a run that failed for that reason.
func FailureStatus(failure *pregel.NodeError) thread.Status {
	return thread.Status(protocol.FailureStatus(failure))
}

// Outputs are the values that a graph with these output channels shows; nil stands for all channels.
func Outputs(names []string, values map[string]pregel.Value) map[string]pregel.Value {
	if names == nil {
		return values
	}
	out := map[string]pregel.Value{}
	for _, name := range names {
		if v, ok := values[name]; ok {
			out[name] = v
		}
	}
	return out
}

// CancelView is how a run was cancelled, as people are shown it; nil for one that was not.
func CancelView(c *protocol.Cancellation) *thread.CancelView {
	if c == nil {
		return nil
	}
	return &thread.CancelView{Mode: c.Mode, Reason: c.Reason, By: c.By, Undone: c.Undone, Left: c.Left, More: c.More, Gone: c.Gone,
		Problem: c.Problem, Checkpoint: c.Checkpoint, Halted: c.Halted, Back: c.Back}
}
