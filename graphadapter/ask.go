package graphadapter

import (
	"context"
	"errors"
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

// Ask returns the answer to a question; see [TaskRun.AskFor]. schema is the JSON schema of the answer, nil for any.
func (t *TaskRun) Ask(ctx context.Context, value, schema pregel.Value, key string) (pregel.Value, error) {
	answer, err := t.AskFor(ctx, pregel.Question{Key: key, Value: value, Schema: schema})
	return answer.Value, err
}

// AskFor returns the answer to a question, of which it sets ID and Ordinal. While there is none it records the
// question, once, and returns [ErrInterrupted]; the task then waits, and runs again from its start when an answer came.
// An answer that does not have the question's schema is an [*AnswerError].
//
// A question is known by its key, or without one by its ordinal among the questions of its scope, so a node must ask
// in the same order each time.
func (t *TaskRun) AskFor(ctx context.Context, q pregel.Question) (pregel.Answer, error) {
	if ctx.Err() != nil {
		return pregel.Answer{}, context.Cause(ctx)
	}
	var err error
	if q.Value, err = compact(q.Value); err != nil {
		return pregel.Answer{}, fmt.Errorf("node %q of graph %q, thread %q, asks something that is not JSON: %w",
			t.info.Node, t.info.Graph, t.info.Thread, err)
	}
	q.ID = t.questionID(q.Key)
	answer, err := t.ask(q)
	if err != nil {
		for scope := t; scope != nil; scope = scope.parent {
			scope.asked.Store(true)
		}
		return pregel.Answer{}, err
	}
	return answer, t.checkAnswer(q, answer)
}

// questionID is short, because people type it; it has to be unique only among the questions of one thread.
func (t *TaskRun) questionID(key string) string {
	if key != "" {
		return "q-" + t.hash("question", "key", key)[:8]
	}
	return "q-" + t.hash("question", "ordinal", t.scope, t.next("question"))[:8]
}

func (a *attempt) ask(q pregel.Question) (pregel.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return pregel.Answer{}, ErrFenced
	}
	ordinal, before := a.ordinals[q.ID]
	if !before {
		ordinal = len(a.ordinals)
		a.ordinals[q.ID] = ordinal
	}
	if answer, ok := a.answerTo(q); ok {
		answer.Value = orNull(answer.Value)
		return answer, nil
	}
	if !before {
		q.Ordinal = ordinal
		a.questions = append(a.questions, q)
	}
	return pregel.Answer{}, ErrInterrupted
}

// checkAnswer holds an answer to its question's schema once more: not every way in may have done so.
func (a *attempt) checkAnswer(q pregel.Question, answer pregel.Answer) error {
	err := CheckAnswer(q, answer.Value)
	var wrong *AnswerError
	if errors.As(err, &wrong) {
		wrong.Graph, wrong.Node, wrong.Thread = a.info.Graph, a.info.Node, a.info.Thread
	}
	return err
}

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
		t.env.Emit(pregel.Emission{Value: v})
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
	case len(a.emitted) == MaxEmitted:
		return limit("emitted values in one attempt", MaxEmitted)
	case a.emittedBytes+len(v) > MaxEmittedTotal:
		return limit("emitted bytes in one attempt", MaxEmittedTotal)
	}
	a.emitted = append(a.emitted, pregel.Emission{Value: v})
	a.emittedBytes += len(v)
	return nil
}
