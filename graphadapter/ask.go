package graphadapter

import (
	"context"
	"fmt"

	"superstep.dev/graphadapter/pregel"
)

// The bounds of what one attempt may emit: its values are part of the task's result, which is stored with the run.
const (
	// MaxEmitted is the greatest number of values.
	MaxEmitted = 10_000
	// MaxEmittedValue is the greatest size of one value, in bytes of JSON.
	MaxEmittedValue = 256 << 10
	// MaxEmittedTotal is the greatest size of all values together, in bytes of JSON.
	MaxEmittedTotal = 1 << 20
)

// Ask returns the answer to a question. While there is none it records the question, once, and returns
// [ErrInterrupted]; the task then waits, and runs again from its start when an answer came.
//
// A question is known by its key, or without one by its ordinal among the questions of its scope, so a node must ask
// in the same order each time. schema is the JSON schema of the answer, nil for any.
func (t *TaskRun) Ask(ctx context.Context, value, schema pregel.Value, key string) (pregel.Value, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	value, err := compact(value)
	if err != nil {
		return nil, fmt.Errorf("node %q of graph %q asks something that is not JSON: %w", t.info.Node, t.info.Graph, err)
	}
	answer, err := t.ask(pregel.Question{ID: t.questionID(key), Key: key, Value: value, Schema: schema})
	if err != nil {
		for scope := t; scope != nil; scope = scope.parent {
			scope.asked.Store(true)
		}
	}
	return answer, err
}

// questionID is short, because people type it; it has to be unique only among the questions of one thread.
func (t *TaskRun) questionID(key string) string {
	if key != "" {
		return "q-" + t.hash("question", "key", key)[:8]
	}
	return "q-" + t.hash("question", "ordinal", t.scope, t.next("question"))[:8]
}

func (a *attempt) ask(q pregel.Question) (pregel.Value, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrFenced
	}
	ordinal, before := a.ordinals[q.ID]
	if !before {
		ordinal = len(a.ordinals)
		a.ordinals[q.ID] = ordinal
	}
	if answer, ok := a.answers[q.ID]; ok {
		return compact(answer.Value)
	}
	if !before {
		q.Ordinal = ordinal
		a.questions = append(a.questions, q)
	}
	return nil, ErrInterrupted
}

// answeredBy names who answered a question, "" if nobody is known.
func (a *attempt) answeredBy(questionID string) string { return a.answers[questionID].By }

// EmitLimitError says that a node emitted too much. The value was not emitted.
type EmitLimitError struct {
	Graph, Node string
	// What is the bound that was reached, in words; Limit is its value.
	What  string
	Limit int
}

func (e *EmitLimitError) Error() string {
	return fmt.Sprintf("node %q of graph %q reached the limit of %d %s: emit less often, or a reference instead of "+
		"the data", e.Node, e.Graph, e.Limit, e.What)
}

// Emit puts a value on the custom stream: at once if somebody listens, and in any case into the task's outcome. Beyond
// [MaxEmitted], [MaxEmittedValue] or [MaxEmittedTotal] it returns an [*EmitLimitError]. Emitting is progress.
func (t *TaskRun) Emit(v pregel.Value) error {
	v, err := compact(v)
	if err != nil {
		return fmt.Errorf("node %q of graph %q emits something that is not JSON: %w", t.info.Node, t.info.Graph, err)
	}
	t.emitting.Lock()
	defer t.emitting.Unlock()
	if err := t.keep(v); err != nil {
		return err
	}
	t.idle.progress()
	if t.env.Emit != nil {
		t.env.Emit(v)
	}
	return nil
}

func (a *attempt) keep(v pregel.Value) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit := func(what string, n int) error {
		return &EmitLimitError{Graph: a.info.Graph, Node: a.info.Node, What: what, Limit: n}
	}
	switch {
	case a.closed:
		return ErrFenced
	case len(v) > MaxEmittedValue:
		return limit("bytes in one emitted value", MaxEmittedValue)
	case len(a.custom) == MaxEmitted:
		return limit("emitted values in one attempt", MaxEmitted)
	case a.customBytes+len(v) > MaxEmittedTotal:
		return limit("emitted bytes in one attempt", MaxEmittedTotal)
	}
	a.custom = append(a.custom, v)
	a.customBytes += len(v)
	return nil
}
