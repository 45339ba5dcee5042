package superstep_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// decides is a graph that stops before b, whose branch behind a fails for a log that ends with "bad".
func decides() *superstep.Graph[counter] {
	g := superstep.NewStateGraph[counter]("decides")
	g.AddNode("a", appending("a"))
	g.AddNode("b", appending("b"))
	g.AddEdge(superstep.Start, "a")
	g.AddConditionalEdges("a", func(_ context.Context, s counter) ([]superstep.Target, error) {
		if log := s.Log.Get(); log[len(log)-1] == "bad" {
			return nil, errors.New("nowhere to go")
		}
		return superstep.To("b"), nil
	}, "b")
	return g.MustCompile(superstep.WithInterruptBefore("b"))
}

// TestFollowingFromAViewOn: what the open run did before the call that gave the view is old, and the branches of updates
// are no steps, those of refused ones neither.
func TestFollowingFromAViewOn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	g := decides()
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	var lines []string
	follow := func(since superstep.ThreadView) superstep.ThreadView {
		t.Helper()
		lines = nil
		v, err := s.Follow(t.Context(), since, func(p superstep.Progress) {
			lines = append(lines, p.Node+" "+p.State)
		})
		require.NoError(t, err)
		return v
	}
	a, b := []string{"a started", "a ok"}, []string{"b started", "b ok"}
	started, err := s.Start(t.Context(), superstep.StartRequest{Graph: g.Name(), Thread: s.queue, Input: []byte(`{}`)})
	require.NoError(t, err)
	stopped := follow(started)
	assert.Equal(t, superstep.StatusStopped, stopped.Status)
	assert.Equal(t, a, lines, "of a new run it is everything")

	_, err = th.Update(t.Context(), wrote("good"), superstep.AsNode("a"))
	require.NoError(t, err)
	_, err = th.Update(t.Context(), wrote("bad"), superstep.AsNode("a"))
	require.ErrorContains(t, err, "nowhere to go")

	on, err := s.Start(t.Context(), superstep.StartRequest{Graph: g.Name(), Thread: s.queue})
	require.NoError(t, err)
	assert.Equal(t, stopped.RunID, on.RunID)
	assert.Equal(t, superstep.StatusFinished, follow(on).Status)
	assert.Equal(t, b, lines, "what was before the second call is old")
	for _, whole := range []superstep.ThreadView{started, {Thread: s.queue}, {Thread: s.queue, RunID: "earlier", Events: 9}} {
		follow(whole)
		assert.Equal(t, slices.Concat(a, b), lines)
	}
	assert.Equal(t, []string{"a", "good", "b"}, logOf(t, th))
}

// TestWaitReturnsNothingThatRuns: a wait that ends by itself is over at any moment, also while Wait looks at it.
func TestWaitReturnsNothingThatRuns(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[counter]("naps")
	b.AddNode("nap", func(ctx context.Context, s counter) (counter, error) {
		_, err := superstep.WaitEvent[string](ctx, "alarm", 5*time.Millisecond)
		var late *superstep.EventTimeoutError
		if errors.As(err, &late) {
			s.Log.Append("slept")
			return s, nil
		}
		return s, err
	})
	b.AddEdge(superstep.Start, "nap")
	b.AddConditionalEdges("nap", func(_ context.Context, s counter) ([]superstep.Target, error) {
		if len(s.Log.Get()) < 20 {
			return superstep.To("nap"), nil
		}
		return superstep.To(superstep.End), nil
	}, "nap", superstep.End)
	g := b.MustCompile()
	s := newServer(t)
	s.work(g)
	_, err := s.Start(t.Context(), superstep.StartRequest{Graph: g.Name(), Thread: s.queue, Input: []byte(`{}`)})
	require.NoError(t, err)
	for status := superstep.StatusRunning; status != superstep.StatusFinished; {
		v, err := s.Wait(t.Context(), s.queue)
		require.NoError(t, err)
		status = v.Status
		require.Contains(t, []superstep.Status{superstep.StatusWaitingEvent, superstep.StatusFinished}, status)
	}
}
