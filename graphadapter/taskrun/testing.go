package taskrun

import (
	"context"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Asked is called for each question that a task asks and has no answer to, in the order in which they are asked. With
// true the question is answered by the value as if it had been before the task ran; with false it waits. It is called
// with the task locked, so it must not call into it.
//
// A node under test has to be answered while it runs: its question's id, by which answers are given, is not known
// before it asks.
type Asked func(q pregel.Question) (answer pregel.Value, answered bool)

// answerTo returns the answer to a question; a.mu is held.
func (a *attempt) answerTo(q pregel.Question) (pregel.Answer, bool) {
	if answer, ok := a.answers[q.ID]; ok || a.env.Asked == nil {
		return answer, ok
	}
	value, ok := a.env.Asked(q)
	return pregel.Answer{QuestionID: q.ID, Value: value}, ok
}

// Outside stands between a task and what its effects reach. Graphs that the node's code calls have the same.
type Outside struct {
	// Effect returns what is called instead of an effect of the graph; nil changes nothing.
	Effect func(graphadapter.Effect) graphadapter.Effect
	// Wait takes the place of waiting until an earlier call has settled, which takes that long; nil waits. The error is
	// the cause of ctx when that ends first.
	Wait func(ctx context.Context, d time.Duration) error
}

func (o *Outside) effect(e graphadapter.Effect) graphadapter.Effect {
	if o == nil || o.Effect == nil {
		return e
	}
	return o.Effect(e)
}

func (o *Outside) wait(ctx context.Context, d time.Duration) error {
	if o != nil && o.Wait != nil {
		return o.Wait(ctx, d)
	}
	if !pause(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}
