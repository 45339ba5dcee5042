package graphtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// Interrupts runs the graph on the input, and then again and again with one of its nodes interrupted, in memory and on
// Temporal (see [Runtimes]): each node that ran, those of subgraphs included, stopped by a breakpoint before it and after
// it, by a question that it asks before and after its own work, and by an approval that it needs. Every run is resumed until it finishes, and has to
// end as the one that nobody interrupted: in the same state, with the same writes to the outside, none of them called
// twice.
//
// Effects write to a target that Interrupts keeps for each run. It answers a write with the receipt that the same write
// got in the run that nobody interrupted, so that what follows from a receipt is the same in each run; those are what the
// effect's Do returns, so stand in for a Do that moves money with [Stub]. [Answer] answers the graph's own questions, as
// they come in that run, and in the others those of the same node with the same value. [Except] leaves fields out of
// what is compared, [Modes] runs the graph in other modes than [Sync], and with [Parallel] it is interrupted at several
// places at a time, in runs of their own.
//
// What nodes do without Task and Effect happens again when they run again, and is not looked at, nor are the effects of
// graphs that a node's own code calls: those are called as they are. Caches of nodes are not used. Each run is a thread of its own, so what a node writes must not depend on the thread's id.
//
// Each interruption is a subtest, so -run runs one alone:
//
//	func TestRefundGoesOnFromEverywhere(t *testing.T) {
//		graphtest.Interrupts(t, refund.Graph(pay, 100_00), map[string]any{"order_id": "o-7"}, graphtest.Answer(true))
//	}
func Interrupts(t *testing.T, g superstep.Runnable, input any, opts ...Option) {
	t.Helper()
	in, err := newInterrupts(t, g, input, opts)
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	for _, mode := range in.settings.modesOr(Sync) {
		for _, s := range in.stops {
			t.Run(fmt.Sprintf("%s/%v", mode, s), func(t *testing.T) {
				if in.settings.parallel {
					t.Parallel()
				}
				in.interrupted(t, mode, s)
			})
		}
	}
}

// newInterrupts runs the graph without an interruption, and finds out where it can be interrupted.
func newInterrupts(t testing.TB, g superstep.Runnable, input any, opts []Option) (*interrupts, error) {
	s, err := settingsOf(opts)
	if err == nil {
		err = s.forInterrupts()
	}
	if err != nil {
		return nil, err
	}
	in := &interrupts{graph: g.Adapter(), settings: s}
	if in.input, err = superstep.InputOf(g, input); err != nil {
		return nil, err
	}
	w := in.watch(stop{})
	if in.want, err = in.run(t, superstep.NewMemory(superstep.WithStore(s.newStore(t))), w, s.modesOr(Sync)[0]); err != nil {
		return nil, fmt.Errorf("the run without an interruption: %w", err)
	}
	in.stops = append([]stop{{}}, w.stops()...)
	return in, nil
}

// interrupted runs the graph with one interruption on both runtimes.
func (in *interrupts) interrupted(t *testing.T, mode Mode, s stop) {
	try := func(t *testing.T, w *watched, rt superstep.Runtime) {
		if err := in.try(t, rt, w, mode); err != nil {
			t.Errorf("%v\n%s", err, alone(t))
		}
	}
	t.Run("memory", func(t *testing.T) {
		try(t, in.watch(s), superstep.NewMemory(superstep.WithStore(in.settings.newStore(t))))
	})
	t.Run("temporal", func(t *testing.T) {
		w := in.watch(s)
		try(t, w, serving(t, superstep.WorkerConfig{Graphs: []superstep.Runnable{w.graph}, Store: in.settings.newStore(t)}))
	})
}

var errNeverInterrupted = errors.New("the run was not interrupted: what it does depends on more than its input and answers")

// try runs a watched graph and says what is not as it should be.
func (in *interrupts) try(t testing.TB, rt superstep.Runtime, w *watched, mode Mode) error {
	got, err := in.run(t, rt, w, mode)
	if err != nil {
		return err
	}
	if got.interrupted == 0 && w.stop.seen() {
		return errNeverInterrupted
	}
	if d := differs(&in.want.ending, &got.ending, in.settings.ignored, "without the interruption"); d != "" {
		return errors.New(d)
	}
	return nil
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
