package superstep

import (
	"context"
	"encoding/json"
	"superstep.dev/thread"
)

// ThreadState is a thread's state at one checkpoint. State has every field that has a value, not only the output; of a
// subgraph's state it has the fields that the graph itself has too. As JSON it is its StateView: the values are there once.
type ThreadState[Out any] struct {
	thread.StateView
	State Out `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler: State is made of the values. Values that do not fit are a *[StateError].
func (s *ThreadState[Out]) UnmarshalJSON(text []byte) error {
	var read ThreadState[Out]
	err := json.Unmarshal(text, &read.StateView)
	if err == nil {
		read.State, err = decodeOutput[Out](read.Graph, read.Values)
	}
	if err == nil {
		*s = read
	}
	return err
}

// State returns the thread's state: as it is now, or at a checkpoint of its history ([AtCheckpoint]). Now it includes
// what the finished tasks of the superstep under way wrote; a checkpoint shows what was there before they ran.
//
// Errors: [thread.ErrNotFound] for a thread, checkpoint or subgraph that there is not; *[StateError] for values that do not fit
// Out.
func (t *Thread[Out]) State(ctx context.Context, opts ...StateOption) (ThreadState[Out], error) {
	r := thread.StateRequest{Thread: t.id}
	for _, o := range opts {
		o.applyState(&r)
	}
	return t.typed(t.runtime.StateOf(ctx, t.graph, r))
}

// StateAt is State at a checkpoint.
func (t *Thread[Out]) StateAt(ctx context.Context, checkpoint string, opts ...StateOption) (ThreadState[Out], error) {
	return t.State(ctx, append([]StateOption{AtCheckpoint(checkpoint)}, opts...)...)
}

// typed decodes a view.
func (t *Thread[Out]) typed(view thread.StateView, err error) (ThreadState[Out], error) {
	if err != nil {
		return ThreadState[Out]{}, err
	}
	out := ThreadState[Out]{StateView: view}
	out.State, err = decodeOutput[Out](t.graph.Spec.Name, view.Values)
	return out, err
}

// History returns the thread's checkpoints, newest first: those of all its runs that are still kept, and of every branch.
// Any of them can be read (State), updated (Update) or run from (Fork).
//
// Errors: [thread.ErrNotFound] for a thread or subgraph that there is not, and for an unknown checkpoint in Before.
func (t *Thread[Out]) History(ctx context.Context, opts ...HistoryOption) ([]thread.CheckpointView, error) {
	r := thread.HistoryRequest{Thread: t.id}
	for _, o := range opts {
		o.applyHistory(&r)
	}
	return t.runtime.HistoryOf(ctx, t.graph, r)
}
