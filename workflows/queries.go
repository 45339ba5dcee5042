package workflows

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/thread/secret"
	"superstep.dev/workflows/protocol"
)

func (v *view) handle(ctx workflow.Context, closing func() protocol.Closing) error {
	queries := []struct {
		name, about string
		answer      any
	}{
		{protocol.QueryState, "The thread's values, what runs next, and the open questions.", v.state},
		{protocol.QueryOutline, "Where the run stands and what it asks, without values.", func() (protocol.State, error) { return v.outline(), nil }},
		{protocol.QueryQuestion, "One open question, by its id or the start of it.", v.question},
		{protocol.QueryHistory, "The thread's latest checkpoints, oldest first.", func() ([]protocol.Line, error) { return v.checkpoints.latest(maxLines), nil }},
		{protocol.QueryGraph, "The graph as this run began with it.", func() (*pregel.Spec, error) { return v.in.Spec, nil }},
		{protocol.QueryAudit, "The audit of the thread, as far as this run made it.", v.auditReply},
		{protocol.QueryHandoff, "What a new run needs to continue this one.", func() (protocol.Closing, error) { return closing(), nil }},
	}
	for _, q := range queries {
		err := workflow.SetQueryHandlerWithOptions(secret.Asked(ctx), q.name, q.answer, workflow.QueryHandlerOptions{Description: q.about})
		if err != nil {
			return err
		}
	}
	return nil
}

// view is what a run shows to whoever asks.
type view struct{ *people }

func (v *view) state() (protocol.State, error) {
	snapshot, err := v.program.Now(v.thread)
	if err != nil {
		return protocol.State{}, err
	}
	s := v.outlineOf(protocol.State{Snapshot: *snapshot, Made: v.checkpoints.when(snapshot.Checkpoint), Questions: v.life.Questions(), Waits: v.life.Waits(), Ledgers: v.program.Ledgers(v.thread)})
	if s.Cancel == nil && v.status == protocol.StatusRunning {
		s.Running = snapshot.Next
	}
	if size := stateBytes(&s); size > maxReply {
		return protocol.State{}, fmt.Errorf("%s: %d bytes, at most %d: its history has it, and %q what can be said without", protocol.StateTooLarge,
			size, maxReply, protocol.QueryOutline)
	}
	return s, nil
}

// outline is where the run stands, without values: it is small whatever the thread's state and its questions are.
func (v *view) outline() protocol.State {
	s := protocol.State{Questions: withoutValues(v.life.Questions()), Waits: withoutValues(v.life.Waits())}
	s.Snapshot.Step = stepOf(v.thread)
	return v.outlineOf(s)
}

// outlineOf adds what is known of the run beside its values.
func (v *view) outlineOf(s protocol.State) protocol.State {
	s.Graph, s.Status, s.Drained, s.Paused, s.Output = v.in.Graph, v.status, v.drained, v.life.State.Paused, v.program.Spec.Output
	s.Answered, s.Refused, s.Due = v.life.State.Answered, v.life.State.Refused, v.life.State.Due
	if v.failure != nil {
		s.Failure = failureOf(v.in.Graph, v.failure)
	}
	s.Durability, s.Fused = v.mode()
	s.Budget = v.thread.Meter()
	s.Approvals = v.life.Shown()
	for _, p := range s.Approvals {
		if !p.Due.IsZero() {
			s.Due = append(slices.Clip(s.Due), protocol.Due{Question: p.Question, At: p.Due})
		}
	}
	for _, k := range v.life.Kept {
		k.Value = nil
		s.Kept = append(s.Kept, k)
	}
	if v.life.Undoing() != nil {
		s.Cancel = v.life.Report()
	}
	return s
}

// question is the answer to QueryQuestion.
func (v *view) question(id string) (protocol.QuestionReply, error) {
	reply := protocol.QuestionReply{State: v.outline()}
	open, size := v.life.Questions(), 0
	matches := protocol.Matching(open, id)
	for i, q := range open {
		size += questionBytes(q.Question)
		if len(matches) == 1 && q.ID == matches[0] {
			reply.Question = &open[i]
			size += questionBytes(q.Question) // it is there twice
		}
	}
	if size <= maxQuestionsReply {
		reply.Questions = open
		return reply, nil
	}
	for i := range reply.Questions {
		text, err := json.Marshal(clip.Line(graphadapter.QuestionText(open[i].Value)))
		if err != nil {
			return protocol.QuestionReply{}, err
		}
		reply.Questions[i].Value = text
	}
	return reply, nil
}

// withoutValues are questions without what they ask.
func withoutValues(open []pregel.OpenQuestion) []pregel.OpenQuestion {
	out := slices.Clone(open)
	for i := range out {
		out[i].Value, out[i].Schema, out[i].Approval = nil, nil, nil
	}
	return out
}

// maxReply bounds what a query returns of values; the server takes 2 MiB, and what else a reply has goes along.
const maxReply = 1900 << 10

// maxQuestionsReply bounds the questions that a reply shows whole: what is known of approvals goes along with each.
const maxQuestionsReply = 1600 << 10

// stateBytes is what the values of a state take in a reply.
func stateBytes(s *protocol.State) int {
	size := snapshotBytes(&s.Snapshot)
	for _, q := range append(s.Questions[:len(s.Questions):len(s.Questions)], s.Waits...) {
		size += questionBytes(q.Question)
	}
	for _, l := range s.Ledgers {
		size += len(l.Ledger)
	}
	return size
}

func snapshotBytes(s *pregel.Snapshot) int {
	size := 0
	for _, name := range workflow.DeterministicKeys(s.Values) {
		size += len(name) + len(s.Values[name])
	}
	for _, t := range s.Tasks {
		for _, q := range t.Questions {
			size += questionBytes(q)
		}
		if t.State != nil {
			size += snapshotBytes(t.State)
		}
	}
	return size
}

func questionBytes(q pregel.Question) int { return len(q.Value) + len(q.Schema) + len(q.Approval) }
