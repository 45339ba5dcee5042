package superstep

import (
	"context"
	"encoding/json"
	"iter"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
)

// Runtime keeps and runs threads: [*Memory] in this process, or a Client on Temporal. The same test body runs on both.
//
// A method returns an error of this package ([Error] with one of the sentinels) when the call was refused. A view of a
// run that failed comes with the failure's cause as the error, as far as it is known.
type Runtime interface {
	// startRun begins a run and returns when it is accepted. Without input it goes on where the thread stands.
	startRun(ctx context.Context, g *graphadapter.Graph, r StartRequest) (ThreadView, error)
	// waitRun returns when the thread's run waits for answers, stopped at a breakpoint, or ended.
	waitRun(ctx context.Context, g *graphadapter.Graph, thread string) (ThreadView, error)
	// resumeRun answers questions, all or none of them, and returns when the answers are accepted.
	resumeRun(ctx context.Context, g *graphadapter.Graph, thread string, a answers) (ResumeReply, error)
	// stateOf returns a thread's state, now or at a checkpoint.
	stateOf(ctx context.Context, g *graphadapter.Graph, r StateRequest) (StateView, error)
	// historyOf returns checkpoints, newest first.
	historyOf(ctx context.Context, g *graphadapter.Graph, r HistoryRequest) ([]CheckpointView, error)
	// updateState writes to the state from outside, all of the updates or none, and returns it as it is then.
	updateState(ctx context.Context, g *graphadapter.Graph, r UpdateRequest) (StateView, error)
	// forkRun begins a run from an earlier checkpoint and returns when it is accepted.
	forkRun(ctx context.Context, g *graphadapter.Graph, r ForkRequest) (ThreadView, error)
	// drainRun asks the open run to stop before its next superstep and returns when that is accepted.
	drainRun(ctx context.Context, g *graphadapter.Graph, r DrainRequest) (ThreadView, error)
	// pauseRun pauses the open run, or lets it go on, and returns when that is accepted or stored.
	pauseRun(ctx context.Context, g *graphadapter.Graph, r PauseRequest, unpause bool) (PauseReply, error)
	// eventRun sends an event and returns when it is taken or stored.
	eventRun(ctx context.Context, g *graphadapter.Graph, r EventRequest) (EventReply, error)
	// retryRun goes on after a failure and returns when that is accepted.
	retryRun(ctx context.Context, g *graphadapter.Graph, r RetryRequest) (ThreadView, error)
	// cancelRun ends the open run and returns when it has ended, or waits for people to decide what it leaves.
	cancelRun(ctx context.Context, g *graphadapter.Graph, r CancelRequest) (ThreadView, error)
	// effectsOf returns what a thread did outside.
	effectsOf(ctx context.Context, g *graphadapter.Graph, thread string) (EffectsView, error)
	// auditOf returns a thread's record, and the chain that it ends in.
	auditOf(ctx context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error)
	// exportOf returns the same with the end of the chain as a worker signs it.
	exportOf(ctx context.Context, g *graphadapter.Graph, thread string) (approval.Export, error)
	// streamRun returns what the thread's runs stream.
	streamRun(ctx context.Context, g *graphadapter.Graph, r StreamRequest) iter.Seq2[StreamPart, error]
}

// answers are replies to open questions: one without an id while exactly one question is open, else by id.
type answers struct {
	only json.RawMessage
	byID map[string]json.RawMessage
	// question is the one that only is for, "" for the one that is open; token proves who answers an approval, and by is who
	// says to answer. id makes the request idempotent.
	question, token, by, id string
	tokens                  map[string]string // with byID, by the same keys
}

// as gives answers who gives them.
func (a answers) as(opts []ReplyOption) answers {
	o := replyOptionsOf(opts)
	a.token, a.by, a.id, a.tokens = o.token, o.by, o.id, o.tokens
	return a
}

// newStart checks and encodes what a run begins with.
func newStart(g *graphadapter.Graph, thread string, input any, o runOptions) (StartRequest, error) {
	r, err := o.start(g.Spec, thread)
	if err != nil {
		return StartRequest{}, err
	}
	if r.Resume, err = encodeAnswers(g, thread, o.answers); err != nil {
		return StartRequest{}, err
	}
	if r.Input, err = encodeInput(g.Spec.Name, input); err != nil {
		return StartRequest{}, err
	}
	if r.Input != nil && g.CheckInput != nil {
		if err := g.CheckInput(r.Input); err != nil {
			return StartRequest{}, err
		}
	}
	return r, nil
}
