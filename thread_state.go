package superstep

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
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
		read.State, err = decodeOutput[Out](read.Graph, pregel.HoldAll(read.Values), nil)
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
func (t *Thread[Out]) State(ctx context.Context, opts ...ReadOption) (ThreadState[Out], error) {
	o, err := requested(t, "State", opts, "AtCheckpoint", "InSubgraph", "WithSubgraphs")
	if err != nil {
		return ThreadState[Out]{}, err
	}
	o.state.Thread = t.id
	return t.typed(t.runtime.StateOf(ctx, t.graph, o.state))
}

// typed decodes a view.
func (t *Thread[Out]) typed(view thread.StateView, err error) (ThreadState[Out], error) {
	if err != nil {
		return ThreadState[Out]{}, err
	}
	out := ThreadState[Out]{StateView: view}
	out.State, err = decodeOutput[Out](t.graph.Spec.Name, pregel.HoldAll(view.Values), nil)
	return out, err
}

// History returns the thread's checkpoints, newest first: those of all its runs that are still kept, and of every branch.
// Any of them can be read (State), updated (Update) or run from (Fork).
//
// Errors: [thread.ErrNotFound] for a thread or subgraph that there is not, and for an unknown checkpoint in Before.
func (t *Thread[Out]) History(ctx context.Context, opts ...ReadOption) ([]thread.CheckpointView, error) {
	o, err := requested(t, "History", opts, "InSubgraph", "Limit", "Before", "FromSource", "AtStep", "WithValues")
	if err != nil {
		return nil, err
	}
	o.history.Thread = t.id
	return t.runtime.HistoryOf(ctx, t.graph, o.history)
}

// Checkpoint returns the record of where the thread stands, or of an earlier checkpoint ([AtCheckpoint]): what is done, what was
// written to the outside, what is to be decided, and what has to happen before it goes on. Values are named by their digests.
//
// Errors: [thread.ErrNotFound] for a thread or checkpoint that there is not.
func (t *Thread[Out]) Checkpoint(ctx context.Context, opts ...ReadOption) (thread.CheckpointRecord, error) {
	o, err := requested(t, "Checkpoint", opts, "AtCheckpoint")
	if err != nil {
		return thread.CheckpointRecord{}, err
	}
	return runtime.Checkpoint(ctx, t.runtime, t.graph, thread.CheckpointRequest{Thread: t.id, Checkpoint: o.state.Checkpoint})
}

// Update writes to the thread's state from outside, as if a node had returned it, and returns the state as it is then.
// It makes a checkpoint of its own: what the thread was about to do, and the questions it asked, are dropped, and what
// follows the node of the update ([AsNode]) is next. Nothing runs until the thread is invoked without input.
//
// Values is a struct of channels, of which the fields that were written count, or a JSON object; nil writes nothing and
// only routes on. A thread that has never run begins with the update.
//
// Errors, each of which leaves the thread as it was: [thread.ErrRunning] while a run is under way; [thread.ErrNotFound] for an unknown
// checkpoint or subgraph; [thread.ErrBadInput] for an unknown field or node, values that do not fit, or when it is not clear
// which node ran last.
func (t *Thread[Out]) Update(ctx context.Context, values any, opts ...RequestOption) (ThreadState[Out], error) {
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
func (t *Thread[Out]) BulkUpdate(ctx context.Context, supersteps [][]StateUpdate, opts ...RequestOption) (ThreadState[Out], error) {
	o, err := requested(t, "Update", opts, "AsNode", "AtCheckpoint", "InSubgraph")
	if err != nil {
		return ThreadState[Out]{}, err
	}
	r := thread.UpdateRequest{Graph: t.graph.Spec.Name, Thread: t.id, Updates: make([][]graphadapter.StateUpdate, len(supersteps)),
		Checkpoint: o.state.Checkpoint, Subgraph: o.state.Subgraph, By: o.By, Reason: o.Reason, Token: o.Token}
	for i, step := range supersteps {
		for _, u := range step {
			r.Updates[i] = append(r.Updates[i], graphadapter.StateUpdate{AsNode: cmp.Or(o.asNode, u.AsNode)})
		}
	}
	for i, step := range supersteps {
		for j, u := range step {
			var err error
			if r.Updates[i][j].Values, err = encodeUpdate(t.graph.Spec, r, u.Values); err != nil {
				return ThreadState[Out]{}, err
			}
		}
	}
	return t.typed(t.runtime.UpdateState(ctx, t.graph, r))
}

// Fork runs the thread again from an earlier checkpoint, on a branch of its own: what came after it stays in the history.
// With another thread's id in as the branch becomes that thread, which must be new, and this one stays as it is, also while a
// run of it is under way. It returns the thread that runs when its run is accepted.
//
// Errors: [thread.ErrNotFound] for an unknown thread or checkpoint; [thread.ErrRunning] while a run is under way and as is "";
// [thread.ErrBadInput] when the thread as exists.
func (t *Thread[Out]) Fork(ctx context.Context, checkpoint, as string, opts ...RequestOption) (*Thread[Out], error) {
	a, err := requested(t, "Fork", opts)
	if err != nil {
		return nil, err
	}
	r := thread.ForkRequest{Thread: t.id, Checkpoint: checkpoint, As: as, By: a.By, Reason: a.Reason, Token: a.Token}
	if _, err := t.runtime.ForkRun(ctx, t.graph, r); err != nil {
		return nil, err
	}
	if as == "" {
		return t, nil
	}
	return &Thread[Out]{graph: t.graph, runtime: t.runtime, id: as}, nil
}

// Copy makes a new thread, with that id, that stands where this one stands: it has the state, the history and the open questions, and
// nothing runs until somebody goes on with it: a task that has asked then runs again from its beginning, and approvals are asked for
// anew, as what this thread did outside and was allowed is not the copy's. What this one does from now on the copy does not see. Of a thread that is under way in
// another process the newest checkpoint is copied. It returns the new thread, which stands.
//
// The copy reads the history before it from this thread: what the server does not have any more of this one is in neither.
//
// Errors: [thread.ErrNotFound] for an unknown thread, or one without a checkpoint; [thread.ErrBadInput] when the new thread exists.
func (t *Thread[Out]) Copy(ctx context.Context, as string, opts ...RequestOption) (*Thread[Out], error) {
	a, err := requested(t, "Copy", opts)
	if err != nil {
		return nil, err
	}
	r := thread.ForkRequest{Thread: t.id, As: as, Copy: true, By: a.By, Reason: a.Reason, Token: a.Token}
	if _, err := t.runtime.ForkRun(ctx, t.graph, r); err != nil {
		return nil, err
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
		_, err = t.runtime.StartRun(ctx, t.graph, r)
	}
	if err != nil {
		return Result[Out]{}, err
	}
	return t.Wait(ctx)
}

// Drain asks the thread's run to stop before its next superstep, and returns when that is accepted: the superstep under way
// ends and is kept, and Wait tells when the thread stands still. Invoke without input goes on. A run that does not run, or
// ends with this superstep, just stays as it is. The reason, at most 1,000 bytes, is in [Result].Drained.
func (t *Thread[Out]) Drain(ctx context.Context, reason string, opts ...RequestOption) error {
	a, err := requested(t, "Drain", opts)
	if err != nil {
		return err
	}
	_, err = t.runtime.DrainRun(ctx, t.graph, thread.DrainRequest{Thread: t.id, Reason: cmp.Or(reason, a.Reason), By: a.By, Token: a.Token})
	return err
}

// WithAnswers answers open questions, by their ids, together with a [Thread.Command]. The id "" stands for the one that
// is open.
func WithAnswers(byID map[string]any) RunOption {
	return runOption(func(r *runOptions) { r.answers = byID })
}

// encodeUpdate turns the values of an update into writes: those of a state struct as a node's, those of a JSON object by
// name (see past.WritesOf).
func encodeUpdate(spec *pregel.Spec, r thread.UpdateRequest, values any) ([]pregel.Write, error) {
	spec, err := runtime.UpdatedSpec(spec, r)
	if err != nil {
		return nil, err
	}
	writes, err := updateWrites(spec, values)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: r.Graph, Thread: r.Thread, Message: "the update cannot be taken", Cause: err}
	}
	return writes, nil
}

func updateWrites(spec *pregel.Spec, values any) ([]pregel.Write, error) {
	v := reflect.ValueOf(values)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.IsValid() && isState(v.Type()) {
		at := reflect.New(v.Type())
		at.Elem().Set(v)
		return schemaOf(v.Type()).collect(at.Interface(), newScope(spec.Name, ""))
	}
	raw, err := encodeInput(spec.Name, values)
	if err != nil || raw == nil {
		return nil, err
	}
	return runtime.NamedWrites(spec, raw)
}

// encodeControl turns a command from outside into the engine's.
func encodeControl[S any](g *graphadapter.Graph, threadID string, c *Command[S]) (*pregel.Command, error) {
	refuse := func(message string, cause error) (*pregel.Command, error) {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Spec.Name, Thread: threadID, Message: message, Cause: cause}
	}
	if c.Parent != nil {
		return refuse("a command from outside has no parent graph: leave Parent nil", nil)
	}
	out := &pregel.Command{}
	var err error
	if g.Spec.Function && !reflect.ValueOf(&c.Update).Elem().IsZero() {
		return refuse("a command cannot write to an entrypoint: update its state with Update", nil)
	}
	if isState(reflect.TypeFor[S]()) {
		if out.Update, err = schemaFor[S]().collect(&c.Update, newScope(g.Spec.Name, "")); err != nil {
			return refuse("the command cannot be taken", err)
		}
	}
	r := &router{graph: g.Spec.Name, known: map[string]bool{}, subgraphs: map[string]bool{}}
	for _, n := range g.Spec.Nodes {
		if n.Handler {
			continue // no way leads to it
		}
		r.known[n.Name], r.subgraphs[n.Name] = true, n.Subgraph != ""
	}
	if out.Goto, err = r.resolve(c.Goto); err != nil {
		return refuse("the command cannot be taken", err)
	}
	if len(out.Update) == 0 && len(out.Goto) == 0 {
		return nil, nil
	}
	return out, nil
}
