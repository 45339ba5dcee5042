package superstep

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
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
	resumeRun(ctx context.Context, g *graphadapter.Graph, thread string, a answers) error
	// threadState returns the state at a checkpoint, "" for now.
	threadState(ctx context.Context, g *graphadapter.Graph, thread, checkpoint string) (StateView, error)
	// threadHistory returns the checkpoints, newest first.
	threadHistory(ctx context.Context, g *graphadapter.Graph, thread string) ([]CheckpointView, error)
	// retryRun goes on after a failure and returns when that is accepted.
	retryRun(ctx context.Context, g *graphadapter.Graph, thread string) (ThreadView, error)
	// cancelRun ends the open run and returns when it has ended.
	cancelRun(ctx context.Context, g *graphadapter.Graph, thread, reason string) (ThreadView, error)
	// streamRun returns what the thread's runs stream.
	streamRun(ctx context.Context, g *graphadapter.Graph, r StreamRequest) iter.Seq2[StreamPart, error]
}

// answers are replies to open questions: one without an id while exactly one question is open, else by id.
type answers struct {
	only json.RawMessage
	byID map[string]json.RawMessage
}

const maxThreadID = 200

// newStart checks and encodes what a run begins with.
func newStart(g *graphadapter.Graph, thread string, input any, o runOptions) (StartRequest, error) {
	refuse := func(format string, args ...any) (StartRequest, error) {
		return StartRequest{}, &Error{Kind: ErrBadInput, Graph: g.Spec.Name, Thread: thread,
			Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(thread) > maxThreadID:
		return refuse("the thread id has %d bytes, the most is %d", len(thread), maxThreadID)
	case o.recursionLimit < 0:
		return refuse("the recursion limit %d is negative: 0 means the default", o.recursionLimit)
	case !slices.Contains([]Durability{"", DurabilitySync, DurabilityAsync, DurabilityExit}, o.durability):
		return refuse("unknown durability %q: there are sync, async and exit", o.durability)
	}
	raw, err := encodeInput(g.Spec.Name, input)
	if err != nil {
		return StartRequest{}, err
	}
	if raw != nil && g.CheckInput != nil {
		if err := g.CheckInput(raw); err != nil {
			return StartRequest{}, err
		}
	}
	return StartRequest{Graph: g.Spec.Name, Thread: thread, Input: raw, Durability: o.durability,
		RecursionLimit: o.recursionLimit}, nil
}

func runOptionsOf(opts []RunOption) (out runOptions) {
	for _, o := range opts {
		o.applyRun(&out)
	}
	return out
}

func engineOptions(r StartRequest, observer pregel.Observer) graphadapter.RunOptions {
	return graphadapter.RunOptions{
		Options:    pregel.Options{RecursionLimit: r.RecursionLimit},
		Durability: graphadapter.Durability(r.Durability),
		Observer:   observer,
	}
}
