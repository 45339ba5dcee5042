package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// run is one case being run: built once, then run on one engine.
type run struct {
	doc      *caseDoc
	root     *built
	counters *counters
	normal   *normaliser
	threads  threads
	// refused is why the graph cannot be built, for cases about that; nil otherwise.
	refused error
	// states says which actions' states are wanted: where a trace has none there is none to compare.
	states func(i int) bool
	// unreadable stands in a result for a state that cannot be read; "" makes that an error.
	unreadable string
	// durability is for the run actions that name none.
	durability string
	// exit is set when that is exit: what it keeps, and of which actions more must be kept.
	exit *exitView
	// after is called after each action, when set.
	after func(ctx context.Context, i int) error
}

// newRun builds a case's graph under that name. text is the case as it stands in its file.
func newRun(doc *caseDoc, text []byte, name string) (*run, error) {
	r := &run{doc: doc, counters: &counters{}, states: func(int) bool { return true }}
	var err error
	if r.normal, err = newNormaliser(doc, text); err != nil {
		return nil, err
	}
	if r.root, err = buildCase(doc, r.counters, name); err != nil {
		return nil, fmt.Errorf("building the graph: %w", err)
	}
	_, r.refused = r.root.graph.Program()
	return r, nil
}

// on runs the case on an engine and returns what it answered to each action. The error says that the case could not be
// run to its end; the answers until then come with it.
func (r *run) on(ctx context.Context, e engine) (answers []any, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.patience())
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the engine panicked: %v at %s", p, panicSite(debug.Stack()))
		}
	}()
	if r.refused != nil {
		return []any{map[string]any{"error": errorOf(r.refused)}}, nil
	}
	if r.threads, err = e.open(ctx, r.root.graph); err != nil {
		return nil, fmt.Errorf("opening the engine: %w", err)
	}
	defer func() { err = errors.Join(err, r.threads.close()) }()
	if r.doc.expectsCompileError() {
		return []any{map[string]any{}}, nil
	}
	for i := range r.doc.Actions {
		answer, err := r.act(ctx, i)
		if err != nil {
			return answers, fmt.Errorf("action %d: %w", i, err)
		}
		answers = append(answers, answer)
		if r.after == nil {
			continue
		}
		if err := r.after(ctx, i); err != nil {
			return answers, fmt.Errorf("after action %d: %w", i, err)
		}
	}
	return answers, nil
}

// panicSite is the innermost frame of a panic's stack: the function that panicked.
func panicSite(stack []byte) string {
	_, after, found := strings.Cut(string(stack), "panic(")
	lines := strings.Split(after, "\n")
	if !found || len(lines) < 4 {
		return "an unknown place"
	}
	site, _, _ := strings.Cut(strings.TrimSpace(lines[3]), " +")
	return site
}

// act executes one action and returns its result, normalised.
func (r *run) act(ctx context.Context, i int) (any, error) {
	a := &r.doc.Actions[i]
	r.counters.reset()
	result, err := r.perform(ctx, i)
	if err != nil {
		return nil, err
	}
	runs, fault := r.counters.taken()
	if fault != nil {
		return nil, fault
	}
	if a.isRun() {
		result["runs"] = runs
	}
	if a.GetState == nil && !a.History && r.doc.checkpointed() && r.states(i) {
		state, err := r.threads.state(ctx, place{thread: a.thread()})
		switch {
		case err == nil:
			result["state"] = stateOf(state, false)
		case r.unreadable != "" && ctx.Err() == nil:
			result["state"] = r.unreadable
		default:
			return nil, fmt.Errorf("reading the state after it: %w", err)
		}
	}
	return r.normal.value(result), nil
}

// perform executes an action and returns its result without what is read after it.
func (r *run) perform(ctx context.Context, i int) (map[string]any, error) {
	a := &r.doc.Actions[i]
	at, err := r.place(ctx, i)
	if err != nil {
		return nil, err
	}
	switch {
	case a.isRun():
		return r.stream(ctx, a, at, r.durabilityOf(i))
	case a.UpdateState != nil:
		return r.update(ctx, a, at)
	case a.GetState != nil:
		state, err := r.state(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("reading the state: %w", err)
		}
		return map[string]any{"state": stateOf(state, string(a.GetState) == `"subgraphs"`)}, nil
	}
	history, err := r.threads.history(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	return map[string]any{"history": historyOf(history)}, nil
}

// state is what get_state shows. A checkpoint of a subgraph is found in the subgraph's history.
func (r *run) state(ctx context.Context, at place) (*pregel.Snapshot, error) {
	if at.checkpoint == "" || len(at.subgraph) == 0 {
		return r.threads.state(ctx, at)
	}
	history, err := r.threads.history(ctx, at)
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(history, func(s *pregel.Snapshot) bool { return s.Checkpoint == at.checkpoint })
	if k < 0 {
		return nil, fmt.Errorf("the subgraph has no checkpoint %q", at.checkpoint)
	}
	return history[k], nil
}

// place is where an action takes place: from_checkpoint counts in the history as it is at that moment.
func (r *run) place(ctx context.Context, i int) (place, error) {
	a := &r.doc.Actions[i]
	at := place{thread: a.thread(), subgraph: a.Subgraph}
	if a.FromCheckpoint == nil {
		return at, nil
	}
	history, err := r.threads.history(ctx, at)
	if err != nil {
		return place{}, fmt.Errorf("reading the history: %w", err)
	}
	k := *a.FromCheckpoint
	if r.exit != nil {
		k = r.exit.from[i]
	}
	if k < 0 || k >= len(history) {
		return place{}, fmt.Errorf("from_checkpoint is %d, but the history has %d checkpoints", k, len(history))
	}
	at.checkpoint = history[k].Checkpoint
	return at, nil
}

// durabilityOf is the mode that a run action runs in.
func (r *run) durabilityOf(i int) graphadapter.Durability {
	mode := r.durability
	if r.exit != nil {
		mode = r.exit.durability(i)
	}
	return graphadapter.Durability(cmp.Or(r.doc.Actions[i].Durability, mode))
}

// update executes an update_state.
func (r *run) update(ctx context.Context, a *action, at place) (map[string]any, error) {
	u := graphadapter.StateUpdate{AsNode: a.UpdateState.AsNode}
	values, err := optionalObject(a.UpdateState.Values)
	if err != nil {
		return nil, fmt.Errorf("update_state: values: %w", err)
	}
	if values != nil {
		u.Values = r.target(a.Subgraph).writes(values)
	}
	err = r.threads.update(ctx, at, u)
	var unsupported *UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		return nil, err
	case err != nil:
		return map[string]any{"error": errorOf(err)}, nil
	}
	return map[string]any{}, nil
}

// target is the graph at a path of nodes, the root's if the case has none there: then the engine is to refuse it.
func (r *run) target(path []string) *built {
	g := r.root
	for _, node := range path {
		child, ok := g.nodes[node]
		if !ok {
			return r.root
		}
		g = child
	}
	return g
}

// stream executes a run action.
func (r *run) stream(ctx context.Context, a *action, at place, d graphadapter.Durability) (map[string]any, error) {
	in, err := r.input(ctx, a)
	if err != nil {
		return nil, err
	}
	program, err := r.root.graph.Program()
	if err != nil {
		return nil, err
	}
	rec := newRecorder(program, a)
	opts := graphadapter.RunOptions{
		Options: pregel.Options{
			RecursionLimit:  defaultRecursionLimit,
			InterruptBefore: a.InterruptBefore, InterruptAfter: a.InterruptAfter,
		},
		Durability: d, Checkpoint: at.checkpoint,
	}
	if a.RecursionLimit != nil {
		opts.RecursionLimit = *a.RecursionLimit
	}
	if r.doc.checkpointed() {
		err = r.threads.run(ctx, at.thread, in, opts, rec)
	} else {
		err = r.threads.runOnce(ctx, in, opts, rec)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the case did not end in time: %w", ctx.Err())
	}
	if rec.fault != nil {
		return nil, rec.fault
	}
	return r.result(rec, a, err), nil
}

// result is what the stream and the error of a run come to.
func (r *run) result(rec *recorder, a *action, err error) map[string]any {
	stream := r.normal.stream(rec.streams[""].chunks)
	out := map[string]any{"stream": stream}
	if a.Subgraphs {
		out["substreams"] = r.normal.substreams(rec.streams)
	}
	if err != nil {
		out["error"] = errorOf(err)
		return out // a failed run has neither output nor interrupts, whatever its stream showed
	}
	var asked []any
	var last any
	for _, pair := range stream {
		mode, value := pair.([]any)[0], pair.([]any)[1]
		switch mode {
		case modeValues:
			last = value
		case modeUpdates:
			questions, _ := value.(map[string]any)[interruptKey].([]any)
			asked = append(asked, questions...)
		}
	}
	if len(asked) > 0 {
		out["interrupts"] = asked
	}
	out["output"] = last
	return out
}
