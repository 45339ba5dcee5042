package graphtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"slices"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

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

// decide answers the first of the open approvals, by as many people as it takes; false when none is open.
func (in *interrupts) decide(ctx context.Context, th *superstep.Thread[any], c *course, open []thread.Question) (
	result superstep.Result[any], found bool, err error) {
	at := slices.IndexFunc(open, func(q thread.Question) bool { return q.Approval != nil })
	if at < 0 {
		return result, false, nil
	}
	q := open[at]
	reply := approval.Reply{Verdict: approval.VerdictApprove}
	if q.Approval.Tool == interruption {
		c.interrupted++
	} else if reply, err = in.reply(c, q); err != nil {
		return result, true, err
	}
	for n := range q.Approval.Need {
		by := fmt.Sprintf("graphtest-%d", n+1)
		opts := []superstep.RequestOption{superstep.WithToken(Token(th.ID(), q, by)), superstep.AskedBy(by), superstep.WithReason(reply.Reason)}
		switch reply.Verdict {
		case approval.VerdictApprove:
			result, err = th.Approve(ctx, q.ID, opts...)
		case approval.VerdictEdit:
			result, err = th.Edit(ctx, q.ID, reply.Params, opts...)
		default:
			result, err = th.Reject(ctx, q.ID, opts...)
		}
		if err != nil || reply.Verdict != approval.VerdictApprove {
			break
		}
	}
	return result, true, err
}

// reply is the answer to an approval of the graph's own.
func (in *interrupts) reply(c *course, q thread.Question) (reply approval.Reply, err error) {
	from := q.Node + " " + canonical([]byte(q.Value))
	answer, err := in.answer(c, q, from)
	if err != nil {
		return reply, err
	}
	c.given[from] = append(c.given[from], answer)
	if json.Unmarshal(answer, &reply.Verdict) == nil {
		return reply, nil
	}
	if err := json.Unmarshal(answer, &reply); err != nil { // or an approval.Decision, which has the same fields
		return reply, fmt.Errorf("the answer %s to the approval %s: give an approval.Verdict, Reply or Decision: %w", answer, q.Value, err)
	}
	return reply, nil
}
