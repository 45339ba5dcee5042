package superstep

import (
	"context"
	"encoding/json"
)

// ThreadState is a thread's state at one checkpoint. State has every field that has a value, not only the output; of a
// subgraph's state it has the fields that the graph itself has too. As JSON it is its StateView: the values are there once.
type ThreadState[Out any] struct {
	StateView
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

// StateOption shapes [Thread.State].
type StateOption interface{ applyState(*StateRequest) }

// HistoryOption shapes [Thread.History].
type HistoryOption interface{ applyHistory(*HistoryRequest) }

// CheckpointOption is what [AtCheckpoint] returns.
type CheckpointOption interface {
	StateOption
	UpdateOption
}

// SubgraphOption is what [InSubgraph] returns.
type SubgraphOption interface {
	StateOption
	HistoryOption
	UpdateOption
}

// AtCheckpoint names a checkpoint of the thread's history. Reading there shows what was known then; updating it begins a
// branch.
func AtCheckpoint(id string) CheckpointOption { return atCheckpoint(id) }

type atCheckpoint string

func (id atCheckpoint) applyState(r *StateRequest)   { r.Checkpoint = string(id) }
func (id atCheckpoint) applyUpdate(r *UpdateRequest) { r.Checkpoint = string(id) }

// InSubgraph addresses the subgraph that is under way in the task of the last of these nodes; the nodes lead to it,
// outermost first.
func InSubgraph(nodes ...string) SubgraphOption { return inSubgraph(nodes) }

type inSubgraph []string

func (n inSubgraph) applyState(r *StateRequest)     { r.Subgraph = n }
func (n inSubgraph) applyHistory(r *HistoryRequest) { r.Subgraph = n }
func (n inSubgraph) applyUpdate(r *UpdateRequest)   { r.Subgraph = n }

type stateOption func(*StateRequest)

func (o stateOption) applyState(r *StateRequest) { o(r) }

// WithSubgraphs shows the states of subgraphs under way in [TaskView].State.
func WithSubgraphs() StateOption { return stateOption(func(r *StateRequest) { r.Subgraphs = true }) }

type historyOption func(*HistoryRequest)

func (o historyOption) applyHistory(r *HistoryRequest) { o(r) }

// Limit bounds the checkpoints that are returned: the newest ones.
func Limit(n int) HistoryOption { return historyOption(func(r *HistoryRequest) { r.Limit = n }) }

// Before leaves out that checkpoint and everything newer.
func Before(checkpoint string) HistoryOption {
	return historyOption(func(r *HistoryRequest) { r.Before = checkpoint })
}

// FromSource selects the checkpoints made by "input", "loop", "update" or "fork".
func FromSource(source string) HistoryOption {
	return historyOption(func(r *HistoryRequest) { r.Source = source })
}

// AtStep selects the checkpoints of a superstep; -1 is that of the first input.
func AtStep(step int) HistoryOption { return historyOption(func(r *HistoryRequest) { r.Step = &step }) }

// WithValues returns the values at each checkpoint too.
func WithValues() HistoryOption { return historyOption(func(r *HistoryRequest) { r.Values = true }) }

// State returns the thread's state: as it is now, or at a checkpoint of its history ([AtCheckpoint]). Now it includes
// what the finished tasks of the superstep under way wrote; a checkpoint shows what was there before they ran.
//
// Errors: [ErrNotFound] for a thread, checkpoint or subgraph that there is not; *[StateError] for values that do not fit
// Out.
func (t *Thread[Out]) State(ctx context.Context, opts ...StateOption) (ThreadState[Out], error) {
	r := StateRequest{Thread: t.id}
	for _, o := range opts {
		o.applyState(&r)
	}
	return t.typed(t.runtime.stateOf(ctx, t.graph, r))
}

// StateAt is State at a checkpoint.
func (t *Thread[Out]) StateAt(ctx context.Context, checkpoint string, opts ...StateOption) (ThreadState[Out], error) {
	return t.State(ctx, append([]StateOption{AtCheckpoint(checkpoint)}, opts...)...)
}

// typed decodes a view.
func (t *Thread[Out]) typed(view StateView, err error) (ThreadState[Out], error) {
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
// Errors: [ErrNotFound] for a thread or subgraph that there is not, and for an unknown checkpoint in Before.
func (t *Thread[Out]) History(ctx context.Context, opts ...HistoryOption) ([]CheckpointView, error) {
	r := HistoryRequest{Thread: t.id}
	for _, o := range opts {
		o.applyHistory(&r)
	}
	return t.runtime.historyOf(ctx, t.graph, r)
}
