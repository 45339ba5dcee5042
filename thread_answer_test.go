package superstep_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// TestAnswerDoesNotWait: what follows an answer is streamed while it happens: the node behind the answer ends only when the
// answer's own part has been read. In exit mode there is no such part before the end.
func TestAnswerDoesNotWait(t *testing.T) {
	for _, mode := range []string{"sync", "fused", "async"} {
		t.Run(mode, func(t *testing.T) {
			seen := make(chan struct{}, 1)
			b := superstep.NewStateGraph[counter]("answers_go_on")
			b.AddNode("ask", func(ctx context.Context, s counter) (counter, error) {
				yes, err := superstep.Interrupt[bool](ctx, "Go on?")
				if err != nil {
					return s, err
				}
				s.Log.Append(map[bool]string{true: "yes", false: "no"}[yes])
				return s, nil
			})
			b.AddNode("wait", func(ctx context.Context, s counter) (counter, error) {
				select {
				case <-seen:
					return s, nil
				case <-ctx.Done():
					return s, ctx.Err()
				}
			})
			b.AddEdge(superstep.Start, "ask")
			b.AddEdge("ask", "wait")
			onRuntimes(t, b.MustCompile(modes[mode]...), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
				answerAndStream(t, th, seen)
			})
		})
	}
}

func answerAndStream(t *testing.T, th *superstep.Thread[counter], seen chan<- struct{}) {
	require.NoError(t, th.Start(t.Context(), counter{}))
	var offset string
	for p, err := range th.Stream(t.Context(), superstep.StreamUpdates) {
		require.NoError(t, err)
		offset = p.Offset
	}
	reply, err := th.Answer(t.Context(), "", true, superstep.WithRequestID("a-1"))
	require.NoError(t, err)
	assert.True(t, reply.Accepted)
	assert.False(t, reply.Repeated)
	assert.Equal(t, "ask", reply.Node)
	var after []superstep.StreamPart
	for p, err := range th.Stream(t.Context(), superstep.StreamUpdates, superstep.StreamFrom(offset)) {
		require.NoError(t, err)
		if after = append(after, p); len(after) == 1 {
			seen <- struct{}{}
		}
	}
	assert.Equal(t, []string{`1 updates {"ask":{"log":["yes"]}}`, `2 updates {"wait":null}`}, shown(after))

	again, err := th.Answer(t.Context(), "", true, superstep.WithRequestID("a-1"))
	require.NoError(t, err, "the run is over, and the answer was taken before")
	assert.True(t, again.Repeated)
	assert.False(t, again.Accepted)
	assert.Equal(t, reply.Question, again.Question)
	_, err = th.Answer(t.Context(), "", true, superstep.WithRequestID("a-2"))
	require.ErrorIs(t, err, superstep.ErrAnswerRefused)
}

// TestAnswersAtOnce: all of several answers are taken, or none, and the same request is taken once, also while the run goes
// on to wait.
func TestAnswersAtOnce(t *testing.T) {
	b := superstep.NewStateGraph[counter]("asks_three")
	for _, node := range []string{"a", "b", "c"} {
		b.AddNode(node, func(ctx context.Context, s counter) (counter, error) {
			text, err := superstep.Interrupt[string](ctx, node+"?")
			if err != nil {
				return s, err
			}
			s.Log.Append(node + "=" + text)
			return s, nil
		})
		b.AddEdge(superstep.Start, node)
	}
	onRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		asked, err := th.Invoke(t.Context(), counter{})
		require.NoError(t, err)
		require.Len(t, asked.Questions, 3)
		ids := map[string]string{}
		for _, q := range asked.Questions {
			ids[q.Node] = q.ID
		}
		_, err = th.AnswerByID(t.Context(), map[string]any{ids["a"]: "1", ids["b"]: 2})
		require.ErrorIs(t, err, superstep.ErrBadInput)
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
		assert.Equal(t, superstep.StatusFinished, got.Status)
		assert.Equal(t, []string{"a=1", "b=2", "c=3"}, logOf(t, th))
	})
}

// TestTheSameEventTwice: a webhook that is delivered twice is one event, while the run is open and when it is over, by
// update and by who never learnt what became of the first.
func TestTheSameEventTwice(t *testing.T) {
	b := superstep.NewStateGraph[counter]("hears_twice")
	b.AddNode("hear", func(ctx context.Context, s counter) (counter, error) {
		for _, name := range []string{"paid", "shipped"} {
			if _, err := superstep.WaitEvent[string](ctx, name, 0); err != nil {
				return s, err
			}
		}
		s.Log.Append("done")
		return s, nil
	})
	b.AddEdge(superstep.Start, "hear")
	onRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		_, err := th.Invoke(t.Context(), counter{})
		require.NoError(t, err)
		send := func(name, id string) superstep.EventReply {
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
		require.Equal(t, superstep.StatusFinished, got.Status)
		over := send("shipped", "evt-2")
		assert.True(t, over.Repeated)
		assert.Equal(t, []string{"hear"}, over.Nodes)
		_, err = th.SendEvent(t.Context(), "shipped", "x", superstep.WithRequestID("evt-3"))
		require.ErrorIs(t, err, superstep.ErrAnswerRefused, "another event comes too late")
	})
}

// TestRefusedBySignalIsShown: who answers by signal has no reply, so the run tells, while it is open and when it is over.
func TestRefusedBySignalIsShown(t *testing.T) {
	b := superstep.NewStateGraph[counter]("refuses_signals")
	b.AddNode("ask", func(ctx context.Context, s counter) (counter, error) {
		_, err := superstep.Interrupt[bool](ctx, "Go on?")
		return s, err
	})
	b.AddEdge(superstep.Start, "ask")
	g := b.MustCompile()
	s := newServer(t)
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	asked, err := th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	id := asked.Questions[0].ID
	_, err = s.Resume(t.Context(), superstep.ResumeRequest{Thread: s.queue, Question: id, Value: []byte(`"maybe"`), By: "ann", Signal: true})
	require.NoError(t, err)
	for _, status := range []superstep.Status{superstep.StatusWaiting, superstep.StatusFinished} {
		var v superstep.ThreadView
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			v, err = s.Show(t.Context(), s.queue)
			assert.NoError(c, err)
			assert.Len(c, v.Refused, 1)
		}, time.Minute, 50*time.Millisecond)
		assert.Equal(t, status, v.Status)
		assert.Equal(t, id, v.Refused[0].Question)
		assert.Equal(t, "ann", v.Refused[0].By)
		assert.Contains(t, v.Refused[0].Reason, "boolean")
		assert.False(t, v.Refused[0].At.IsZero())
		if status == superstep.StatusWaiting {
			_, err = th.Resume(t.Context(), true)
			require.NoError(t, err)
		}
	}
}
