package thread_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// TestAnswerDoesNotWait: what follows an answer is streamed while it happens: the node behind the answer ends only when the
// answer's own part has been read. In exit mode there is no such part before the end.
func TestAnswerDoesNotWait(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"sync", "fused", "async"} {
		t.Run(mode, func(t *testing.T) {
			seen := make(chan struct{}, 1)
			b := superstep.NewStateGraph[rig.Counter]("answers_go_on")
			b.AddNode("ask", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
				yes, err := superstep.Interrupt[bool](ctx, "Go on?")
				if err != nil {
					return s, err
				}
				s.Log.Append(map[bool]string{true: "yes", false: "no"}[yes])
				return s, nil
			})
			b.AddNode("wait", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
				select {
				case <-seen:
					return s, nil
				case <-ctx.Done():
					return s, ctx.Err()
				}
			})
			b.AddEdge(superstep.Start, "ask")
			b.AddEdge("ask", "wait")
			rig.OnRuntimes(t, b.MustCompile(rig.Modes[mode]...), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
				answerAndStream(t, th, seen)
			})
		})
	}
}

func answerAndStream(t *testing.T, th *superstep.Thread[rig.Counter], seen chan<- struct{}) {
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	var offset string
	for p, err := range th.Stream(t.Context(), thread.StreamUpdates) {
		require.NoError(t, err)
		offset = p.Offset
	}
	reply, err := th.Answer(t.Context(), "", true, superstep.WithRequestID("a-1"))
	require.NoError(t, err)
	assert.True(t, reply.Accepted)
	assert.False(t, reply.Repeated)
	assert.Equal(t, "ask", reply.Node)
	var after []thread.Part
	for p, err := range th.Stream(t.Context(), thread.StreamUpdates, superstep.StreamFrom(offset)) {
		require.NoError(t, err)
		if after = append(after, p); len(after) == 1 {
			seen <- struct{}{}
		}
	}
	assert.Equal(t, []string{`1 updates {"ask":{"log":["yes"]}}`, `2 updates {"wait":null}`}, rig.Lines(after))

	again, err := th.Answer(t.Context(), "", true, superstep.WithRequestID("a-1"))
	require.NoError(t, err, "the run is over, and the answer was taken before")
	assert.True(t, again.Repeated)
	assert.False(t, again.Accepted)
	assert.Equal(t, reply.Question, again.Question)
	_, err = th.Answer(t.Context(), "", true, superstep.WithRequestID("a-2"))
	require.ErrorIs(t, err, thread.ErrAnswerRefused)
}

// TestAnswersAtOnce: all of several answers are taken, or none, and the same request is taken once, also while the run goes
// on to wait.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("asks_three")
	for _, node := range []string{"a", "b", "c"} {
		b.AddNode(node, func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
			text, err := superstep.Interrupt[string](ctx, node+"?")
			if err != nil {
				return s, err
			}
			s.Log.Append(node + "=" + text)
			return s, nil
		})
		b.AddEdge(superstep.Start, node)
	}
	rig.OnRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		asked, err := th.Invoke(t.Context(), rig.Counter{})
		require.NoError(t, err)
		require.Len(t, asked.Questions, 3)
		ids := map[string]string{}
		for _, q := range asked.Questions {
			ids[q.Node] = q.ID
		}
		_, err = th.AnswerByID(t.Context(), map[string]any{ids["a"]: "1", ids["b"]: 2})
		require.ErrorIs(t, err, thread.ErrBadInput)
		now, err := th.Wait(t.Context())
		require.NoError(t, err)
		require.Len(t, now.Questions, 3, "one did not fit, so none was taken")

		short := ids["a"][:len(ids["a"])-1]
		reply, err := th.AnswerByID(t.Context(), map[string]any{short: "1", ids["b"]: "2"}, superstep.WithRequestID("form-1"))
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{ids["a"], ids["b"]}, reply.Questions)
		assert.False(t, reply.Repeated)
		again, err := th.AnswerByID(t.Context(), map[string]any{ids["a"]: "9", ids["b"]: "9"}, superstep.WithRequestID("form-1"))
		require.NoError(t, err)
		assert.True(t, again.Repeated)

		got, err := th.Resume(t.Context(), "3")
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Equal(t, []string{"a=1", "b=2", "c=3"}, rig.LogOf(t, th))
	})
}

// TestTheSameEventTwice: a webhook that is delivered twice is one event, while the run is open and when it is over, by
// update and by who never learnt what became of the first.
func TestTheSameEventTwice(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("hears_twice")
	b.AddNode("hear", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		for _, name := range []string{"paid", "shipped"} {
			if _, err := superstep.WaitEvent[string](ctx, name, 0); err != nil {
				return s, err
			}
		}
		s.Log.Append("done")
		return s, nil
	})
	b.AddEdge(superstep.Start, "hear")
	rig.OnRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		_, err := th.Invoke(t.Context(), rig.Counter{})
		require.NoError(t, err)
		send := func(name, id string) thread.EventReply {
			t.Helper()
			reply, err := th.SendEvent(t.Context(), name, "x", superstep.WithRequestID(id))
			require.NoError(t, err)
			return reply
		}
		first := send("paid", "evt-1")
		assert.False(t, first.Repeated)
		assert.Equal(t, []string{"hear"}, first.Nodes)
		assert.True(t, send("paid", "evt-1").Repeated, "the run is open")
		_, err = th.Wait(t.Context())
		require.NoError(t, err)
		assert.False(t, send("shipped", "evt-2").Repeated)
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, got.Status)
		over := send("shipped", "evt-2")
		assert.True(t, over.Repeated)
		assert.Equal(t, []string{"hear"}, over.Nodes)
		_, err = th.SendEvent(t.Context(), "shipped", "x", superstep.WithRequestID("evt-3"))
		require.ErrorIs(t, err, thread.ErrAnswerRefused, "another event comes too late")
	})
}

// TestRefusedBySignalIsShown: who answers by signal has no reply, so the run tells, while it is open and when it is over.
func TestRefusedBySignalIsShown(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("refuses_signals")
	b.AddNode("ask", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		_, err := superstep.Interrupt[bool](ctx, "Go on?")
		return s, err
	})
	b.AddEdge(superstep.Start, "ask")
	g := b.MustCompile()
	s := rig.NewServer(t)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	asked, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	id := asked.Questions[0].ID
	_, err = s.Resume(t.Context(), thread.ResumeRequest{Thread: s.Queue, Question: id, Value: []byte(`"maybe"`), By: "ann", Signal: true})
	require.NoError(t, err)
	for _, status := range []thread.Status{thread.StatusWaiting, thread.StatusFinished} {
		var v thread.View
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			v, err = s.Show(t.Context(), s.Queue)
			assert.NoError(c, err)
			assert.Len(c, v.Refused, 1)
		}, 2*time.Minute, 50*time.Millisecond)
		assert.Equal(t, status, v.Status)
		assert.Equal(t, id, v.Refused[0].Question)
		assert.Equal(t, "ann", v.Refused[0].By)
		assert.Contains(t, v.Refused[0].Reason, "boolean")
		assert.False(t, v.Refused[0].At.IsZero())
		if status == thread.StatusWaiting {
			_, err = th.Resume(t.Context(), true)
			require.NoError(t, err)
		}
	}
}

// early refuses the first answers, as a run does that has yet to come to the question which a query has shown.
type early struct {
	client.Client
	left atomic.Int64
	sent atomic.Int64
}

func (e *early) UpdateWorkflow(ctx context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	e.sent.Add(1)
	if e.left.Add(-1) >= 0 {
		return nil, temporal.NewApplicationError("the question is not open on this thread", protocol.ErrTypeUnknownQuestion)
	}
	return e.Client.UpdateWorkflow(ctx, o)
}

// TestAnAnswerThatComesTooEarlyIsSentAgain: a question that is shown can be answered, also when the run has not come to it
// yet; an answer that is refused time after time is not sent for ever.
func TestAnAnswerThatComesTooEarlyIsSentAgain(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("early")
	b.AddNode("ask", rig.Asking("ask"))
	b.AddEdge(superstep.Start, "ask")
	g := b.MustCompile()
	s := rig.NewServer(t)
	s.Work(g)
	conn := &early{Client: s.Temporal}
	c, err := superstep.NewClient(conn, superstep.ClientConfig{TaskQueue: s.Queue})
	require.NoError(t, err)
	th := g.Thread(s.Client, s.Queue)
	rig.Invoke(t, th, rig.Counter{})
	view, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	require.Len(t, view.Questions, 1)
	answer := thread.ResumeRequest{Thread: th.ID(), Question: view.Questions[0].ID, Value: []byte(`true`)}

	conn.left.Store(100)
	_, err = c.Resume(t.Context(), answer)
	require.ErrorIs(t, err, thread.ErrNotFound)
	assert.EqualValues(t, 2, conn.sent.Load())

	conn.left.Store(1)
	reply, err := c.Resume(t.Context(), answer)
	require.NoError(t, err)
	assert.True(t, reply.Accepted)
	_, err = s.Wait(t.Context(), th.ID())
	require.NoError(t, err)
}
