package superstep

import (
	"cmp"
	"context"

	"superstep.dev/graphadapter"
)

// UpdateOption shapes [Thread.Update].
type UpdateOption interface{ applyUpdate(*UpdateRequest) }

// AsNode says as which node an update is made: what comes next is what follows that node. [End] finishes what was about
// to run, with its finished tasks' writes. Without it the node that ran last is taken.
func AsNode(node string) UpdateOption { return asNode(node) }

type asNode string

func (n asNode) applyUpdate(r *UpdateRequest) {
	for _, step := range r.Updates {
		for i := range step {
			step[i].AsNode = string(n)
		}
	}
}

// Update writes to the thread's state from outside, as if a node had returned it, and returns the state as it is then.
// It makes a checkpoint of its own: what the thread was about to do, and the questions it asked, are dropped, and what
// follows the node of the update ([AsNode]) is next. Nothing runs until the thread is invoked without input.
//
// Values is a struct of channels, of which the fields that were written count, or a JSON object; nil writes nothing and
// only routes on. A thread that has never run begins with the update.
//
// Errors, each of which leaves the thread as it was: [ErrRunning] while a run is under way; [ErrNotFound] for an unknown
// checkpoint or subgraph; [ErrBadInput] for an unknown field or node, values that do not fit, or when it is not clear
// which node ran last.
func (t *Thread[Out]) Update(ctx context.Context, values any, opts ...UpdateOption) (ThreadState[Out], error) {
	return t.BulkUpdate(ctx, [][]StateUpdate{{{Values: values}}}, opts...)
}

// StateUpdate is one update of [Thread.BulkUpdate].
type StateUpdate struct {
	// Values is as for [Thread.Update].
	Values any
	// AsNode is as the option of that name; it has to be given where several updates share a superstep.
	AsNode string
}

// BulkUpdate applies several updates, all of them or none: one checkpoint for each inner list, whose updates are applied
// together as the tasks of one superstep. The errors are those of Update.
func (t *Thread[Out]) BulkUpdate(ctx context.Context, supersteps [][]StateUpdate, opts ...UpdateOption) (ThreadState[Out], error) {
	r := UpdateRequest{Graph: t.graph.Spec.Name, Thread: t.id, Updates: make([][]graphadapter.StateUpdate, len(supersteps))}
	for i, step := range supersteps {
		for _, u := range step {
			r.Updates[i] = append(r.Updates[i], graphadapter.StateUpdate{AsNode: u.AsNode})
		}
	}
	for _, o := range opts {
		o.applyUpdate(&r)
	}
	for i, step := range supersteps {
		for j, u := range step {
			var err error
			if r.Updates[i][j].Values, err = encodeUpdate(t.graph.Spec, r, u.Values); err != nil {
				return ThreadState[Out]{}, err
			}
		}
	}
	return t.typed(t.runtime.updateState(ctx, t.graph, r))
}

// Fork runs the thread again from an earlier checkpoint, on a branch of its own: what came after it stays in the history.
// With another thread's id in as the branch becomes that thread, which must be new, and this one stays as it is. It
// returns the thread that runs when its run is accepted.
//
// Errors: [ErrNotFound] for an unknown thread or checkpoint; [ErrRunning] while a run is under way; [ErrBadInput] when
// the thread as exists.
func (t *Thread[Out]) Fork(ctx context.Context, checkpoint, as string, opts ...ControlOption) (*Thread[Out], error) {
	a := askerOf(opts)
	r := ForkRequest{Thread: t.id, Checkpoint: checkpoint, As: as, By: a.by, Reason: a.reason, Token: a.token}
	if _, err := t.runtime.forkRun(ctx, t.graph, r); err != nil {
		return nil, err
	}
	if as == "" {
		return t, nil
	}
	return &Thread[Out]{graph: t.graph, runtime: t.runtime, id: as}, nil
}

// Command goes on with writes and targets from outside, and waits as Wait does (LangGraph's Command as input). Unlike
// input it abandons nothing: it is added to what the thread is about to do, and open questions stay open; answer them at
// once with [WithAnswers]. Parent must be nil.
func (t *Thread[Out]) Command(ctx context.Context, c Command[Out], opts ...RunOption) (Result[Out], error) {
	r, err := newStart(t.graph, t.id, nil, runOptionsOf(opts))
	if err == nil {
		r.Control, err = encodeControl(t.graph, t.id, &c)
	}
	if err == nil {
		_, err = t.runtime.startRun(ctx, t.graph, r)
	}
	if err != nil {
		return Result[Out]{}, err
	}
	return t.Wait(ctx)
}

// Drain asks the thread's run to stop before its next superstep, and returns when that is accepted: the superstep under way
// ends and is kept, and Wait tells when the thread stands still. Invoke without input goes on. A run that does not run, or
// ends with this superstep, just stays as it is. The reason, at most 1,000 bytes, is in [Result].Drained.
func (t *Thread[Out]) Drain(ctx context.Context, reason string, opts ...ControlOption) error {
	a := askerOf(opts)
	_, err := t.runtime.drainRun(ctx, t.graph, DrainRequest{Thread: t.id, Reason: cmp.Or(reason, a.reason), By: a.by, Token: a.token})
	return err
}
