package taskrun

import (
	"context"
	"errors"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Tracer makes spans of a task's attempts, and of the calls to the outside in them. It is safe for concurrent use.
type Tracer interface {
	// Attempt begins the span of the task's attempt of that number, and returns the context that the node has. The end is told
	// how the attempt ended, and of what type its error was, "" for none.
	Attempt(ctx context.Context, attempt int) (context.Context, func(outcome, failed string))
	// Call begins the span of a call: its context is the caller's, and returned is the one that Do or Lookup has. The end is told
	// the type of the call's error, "" for none.
	Call(ctx context.Context, c TracedCall) (context.Context, func(failed string))
}

// TracedCall is one call to the outside.
type TracedCall struct {
	Kind   string // one of the Call constants
	Effect string
	Key    string
	Number int // among those of the key and kind in the attempt, from 1
}

// The kinds of calls.
const (
	CallDo     = "do"
	CallLookUp = "lookup"
	CallUndo   = "undo"
)

// How an attempt ended.
const (
	attemptDone    = "done"
	attemptAsked   = "asked"
	attemptFailed  = "failed"
	attemptYielded = "yielded"
	attemptStopped = "stopped"
)

// nestedTracer is the tracer of a graph that a node's code has called: its tasks are part of the node's attempt.
type nestedTracer struct{ Tracer }

// Attempt implements Tracer.
func (nestedTracer) Attempt(ctx context.Context, _ int) (context.Context, func(outcome, failed string)) {
	return ctx, func(string, string) {}
}

// traced makes a call in a span of the attempt's. A call of nothing has none.
func traced[T any](ctx context.Context, c *effectCall, kind string, call func(context.Context) (T, error)) (result T, err error) {
	tracer := c.t.env.Tracer
	if tracer == nil || kind == CallLookUp && c.effect.Lookup == nil {
		return call(ctx)
	}
	ctx, end := tracer.Call(ctx, c.t.number(TracedCall{Kind: kind, Effect: c.effect.Name, Key: c.entry.Key}))
	failed := "Panic"
	defer func() { end(failed) }()
	result, err = call(ctx)
	failed = failedType(err)
	return result, err
}

// number counts a call of the attempt.
func (a *attempt) number(c TracedCall) TracedCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.traces == nil {
		a.traces = map[TracedCall]int{}
	}
	a.traces[c]++
	c.Number = a.traces[c]
	return c
}

// failedType is the type of an error of the user's code, "" for none.
func failedType(err error) string {
	if err == nil {
		return ""
	}
	return graphadapter.FailureOf("", "", err).Type
}

// endSpan ends the span of an attempt that has ended with that.
func (e *execution) endSpan(o *pregel.Outcome, err error) {
	if e.span == nil {
		return
	}
	end, outcome, failed := e.span, attemptDone, ""
	e.span = nil
	switch {
	case errors.Is(err, graphadapter.ErrYielded), o.Yielded:
		outcome = attemptYielded
	case err != nil && e.ctx.Err() != nil, errors.Is(err, graphadapter.ErrFenced):
		outcome, failed = attemptStopped, pregel.CancelledType
	case err != nil:
		outcome, failed = attemptFailed, failedType(err)
	case len(o.Questions) > 0:
		outcome = attemptAsked
	}
	end(outcome, failed)
}
