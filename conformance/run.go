package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// caseTimeout bounds one case: an engine that hangs fails the case instead of the whole run.
const caseTimeout = 30 * time.Second

// run is one case being run.
type run struct {
	doc      *caseDoc
	root     *built
	counters *counters
	normal   *normaliser
	threads  threads
}

// runCase runs a case on an engine. It returns the first difference from what the case expects, nil if there is none.
// The error says that the case itself could not be run to its end.
func runCase(ctx context.Context, e engine, doc *caseDoc, text []byte) (d *difference, err error) {
	ctx, cancel := context.WithTimeout(ctx, caseTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the engine panicked: %v at %s", p, panicSite(debug.Stack()))
		}
	}()
	r := &run{doc: doc, counters: &counters{}}
	if r.normal, err = newNormaliser(doc, text); err != nil {
		return nil, err
	}
	if r.root, err = buildCase(doc, r.counters); err != nil {
		return nil, fmt.Errorf("building the graph: %w", err)
	}
	if _, err := pregel.Compile(r.root.graph.Spec, r.root.graph.Reducers); err != nil {
		return r.check(0, map[string]any{"error": errorOf(err)})
	}
	if r.threads, err = e.open(ctx, r.root.graph); err != nil {
		return nil, fmt.Errorf("opening the engine: %w", err)
	}
	defer func() { err = errors.Join(err, r.threads.close()) }()
	if doc.expectsCompileError() {
		return r.check(0, map[string]any{})
	}
	for i := range doc.Actions {
		if d, err := r.act(ctx, i); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
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

// act executes one action and compares its result.
func (r *run) act(ctx context.Context, i int) (*difference, error) {
	a := &r.doc.Actions[i]
	r.counters.reset()
	result, err := r.perform(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("action %d: %w", i, err)
	}
	runs, fault := r.counters.taken()
	if fault != nil {
		return nil, fmt.Errorf("action %d: %w", i, fault)
	}
	if a.isRun() {
		result["runs"] = runs
	}
	if a.GetState == nil && !a.History && r.wantsState(i) {
		state, err := r.threads.state(ctx, place{thread: a.thread()})
		if err != nil {
			return nil, fmt.Errorf("action %d: reading the state after it: %w", i, err)
		}
		result["state"] = stateOf(state, false)
	}
	return r.check(i, result)
}

// wantsState reports whether the state after an action is to be compared.
func (r *run) wantsState(i int) bool {
	var result struct {
		State json.RawMessage `json:"state"`
	}
	return json.Unmarshal(r.doc.Expect[i], &result) == nil && result.State != nil
}

// check compares a result with the expected one.
func (r *run) check(i int, result map[string]any) (*difference, error) {
	want, err := decodeValue(r.doc.Expect[i])
	if err != nil {
		return nil, fmt.Errorf("expect[%d]: %w", i, err)
	}
	return compare(fmt.Sprintf("expect[%d]", i), want, r.normal.value(result)), nil
}

// perform executes an action and returns its result without what is read after it.
func (r *run) perform(ctx context.Context, a *action) (map[string]any, error) {
	at, err := r.place(ctx, a)
	if err != nil {
		return nil, err
	}
	switch {
	case a.isRun():
		return r.stream(ctx, a, at)
	case a.UpdateState != nil:
		return r.update(ctx, a, at)
	case a.GetState != nil:
		state, err := r.threads.state(ctx, at)
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

// place is where an action takes place: from_checkpoint counts in the history as it is at that moment.
func (r *run) place(ctx context.Context, a *action) (place, error) {
	at := place{thread: a.thread(), subgraph: a.Subgraph}
	if a.FromCheckpoint == nil {
		return at, nil
	}
	history, err := r.threads.history(ctx, at)
	if err != nil {
		return place{}, fmt.Errorf("reading the history: %w", err)
	}
	if k := *a.FromCheckpoint; k < 0 || k >= len(history) {
		return place{}, fmt.Errorf("from_checkpoint is %d, but the history has %d checkpoints", k, len(history))
	}
	at.checkpoint = history[*a.FromCheckpoint].Checkpoint
	return at, nil
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
func (r *run) stream(ctx context.Context, a *action, at place) (map[string]any, error) {
	in, err := r.input(ctx, a)
	if err != nil {
		return nil, err
	}
	rec := newRecorder(r.root, a)
	opts := graphadapter.RunOptions{
		Options: pregel.Options{
			RecursionLimit:  defaultRecursionLimit,
			InterruptBefore: a.InterruptBefore, InterruptAfter: a.InterruptAfter,
		},
		Durability: graphadapter.Durability(a.Durability), Checkpoint: at.checkpoint, Observer: rec.observe,
	}
	if a.RecursionLimit != nil {
		opts.RecursionLimit = *a.RecursionLimit
	}
	if r.doc.checkpointed() {
		err = r.threads.run(ctx, at.thread, in, opts)
	} else {
		err = r.threads.runOnce(ctx, in, opts)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the run did not end within %v: %w", caseTimeout, ctx.Err())
	}
	return r.result(rec, err), nil
}

// result is what the stream and the error of a run come to.
func (r *run) result(rec *recorder, err error) map[string]any {
	stream := r.normal.stream(rec.streams[""].chunks)
	out := map[string]any{"stream": stream}
	if rec.subgraphs {
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
