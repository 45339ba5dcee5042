package graphtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// course is how a run went.
type course struct {
	ending
	// interrupted counts the interruptions: breakpoints, and questions that were not the graph's own.
	interrupted int
	// given are the answers to the graph's own questions, by what asked, in their order.
	given    map[string][]json.RawMessage
	answered int
	// receipts are what the writes got, by effect and parameters, in their order.
	receipts map[string][]pregel.Value
}

func (m Mode) options() []superstep.RunOption {
	if m == Fused {
		return []superstep.RunOption{superstep.WithDurability(superstep.DurabilitySync), superstep.WithFused()}
	}
	return []superstep.RunOption{superstep.WithDurability(superstep.Durability(m.durability()))}
}

// maxInterruptions ends a run that is interrupted for ever.
const maxInterruptions = 10_000

// run runs the graph on a new thread until it has finished, whatever interrupts it.
func (in *interrupts) run(t testing.TB, rt superstep.Runtime, w *watched, mode Mode) (*course, error) {
	c := &course{given: map[string][]json.RawMessage{}, receipts: w.receipts}
	opts := mode.options()
	if in.settings.context != nil {
		opts = append(opts, superstep.WithContext(in.settings.context))
	}
	ctx, th := t.Context(), w.graph.Thread(rt, ThreadID(t))
	result, err := th.Invoke(ctx, in.input, opts...)
	for err == nil && result.Status != thread.StatusFinished {
		switch {
		case c.interrupted > maxInterruptions:
			return nil, fmt.Errorf("the run was interrupted %d times and goes on", c.interrupted)
		case result.Status == thread.StatusStopped:
			c.interrupted++
			result, err = th.Invoke(ctx, nil, opts...)
		case result.Status == thread.StatusWaiting:
			result, err = in.resume(ctx, th, c, result.Questions)
		default:
			return nil, fmt.Errorf("the run is %s: only one that finishes can be compared", result.Status)
		}
	}
	if err != nil {
		return nil, err
	}
	state, err := th.State(ctx)
	if err != nil {
		return nil, err
	}
	c.conclude(w, string(result.Status), state.Values)
	return c, w.twice()
}

func (c *course) conclude(w *watched, status string, values map[string]json.RawMessage) {
	c.status, c.books, c.values = status, w.outside.books(), map[string]string{}
	for name, v := range values {
		c.values[name] = canonical(pregel.Value(v))
	}
}

// resume answers an approval, or else all questions that are open.
func (in *interrupts) resume(ctx context.Context, thread *superstep.Thread[any], c *course, open []thread.Question) (superstep.Result[any], error) {
	if result, found, err := in.decide(ctx, thread, c, open); found || err != nil {
		return result, err
	}
	answers, err := in.answers(c, open)
	if err != nil {
		return superstep.Result[any]{}, err
	}
	return thread.ResumeByID(ctx, answers)
}

// answers answers all questions that are open.
func (in *interrupts) answers(c *course, open []thread.Question) (map[string]any, error) {
	out := map[string]any{}
	for _, q := range open {
		if string(q.Value) == `"`+interruption+`"` {
			c.interrupted++
			out[q.ID] = true
			continue
		}
		from := q.Node + " " + canonical(pregel.Value(q.Value))
		answer, err := in.answer(c, q, from)
		if err != nil {
			return nil, err
		}
		c.given[from] = append(c.given[from], answer)
		out[q.ID] = answer
	}
	return out, nil
}

// answer is the answer to a question of the graph's own: the next of those that the options give, or, once it is known,
// what was answered to the same question before.
func (in *interrupts) answer(c *course, q thread.Question, from string) (json.RawMessage, error) {
	answers, nth, lack := in.settings.answers, c.answered, "and there is no answer: give one more graphtest.Answer"
	if in.want != nil {
		answers, nth, lack = in.want.given[from], len(c.given[from]), "which it did not ask without the interruption"
	}
	if nth >= len(answers) {
		return nil, fmt.Errorf("node %q asks %s, %s", q.Node, q.Value, lack)
	}
	c.answered++
	return answers[nth], nil
}
