package stream_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

// TestFollowingFromAViewOn: what the open run did before the call that gave the view is old, and the branches of updates
// are no steps, those of refused ones neither.
func TestFollowingFromAViewOn(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	g := rig.Decides()
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	var lines []string
	follow := func(since thread.View) thread.View {
		t.Helper()
		lines = nil
		v, err := s.Follow(t.Context(), since, func(p thread.Progress) {
			lines = append(lines, p.Node+" "+p.State)
		})
		require.NoError(t, err)
		return v
	}
	a, b := []string{"a ok"}, []string{"b ok"} // each within the workflow task that it begins with
	started, err := s.Start(t.Context(), thread.StartRequest{Graph: g.Name(), Thread: s.Queue, Input: []byte(`{}`)})
	require.NoError(t, err)
	stopped := follow(started)
	assert.Equal(t, thread.StatusStopped, stopped.Status)
	assert.Equal(t, a, lines, "of a new run it is everything")

	_, err = th.Update(t.Context(), rig.Wrote("good"), superstep.AsNode("a"))
	require.NoError(t, err)
	_, err = th.Update(t.Context(), rig.Wrote("bad"), superstep.AsNode("a"))
	require.ErrorContains(t, err, "nowhere to go")

	on, err := s.Start(t.Context(), thread.StartRequest{Graph: g.Name(), Thread: s.Queue})
	require.NoError(t, err)
	assert.Equal(t, stopped.RunID, on.RunID)
	assert.Equal(t, thread.StatusFinished, follow(on).Status)
	assert.Equal(t, b, lines, "what was before the second call is old")
	for _, whole := range []thread.View{started, {Thread: s.Queue}, {Thread: s.Queue, RunID: "earlier", Events: 9}} {
		follow(whole)
		assert.Equal(t, slices.Concat(a, b), lines)
	}
	assert.Equal(t, []string{"a", "good", "b"}, rig.LogOf(t, th))
}

// TestWaitReturnsNothingThatRuns: a wait that ends by itself is over at any moment, also while Wait looks at it.
func TestWaitReturnsNothingThatRuns(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("naps")
	b.AddNode("nap", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		_, err := superstep.WaitEvent[string](ctx, "alarm", 5*time.Millisecond)
		var late *superstep.EventTimeoutError
		if errors.As(err, &late) {
			s.Log.Append("slept")
			return s, nil
		}
		return s, err
	})
	b.AddEdge(superstep.Start, "nap")
	b.AddConditionalEdges("nap", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
		if len(s.Log.Get()) < 20 {
			return superstep.To("nap"), nil
		}
		return superstep.To(superstep.End), nil
	}, "nap", superstep.End)
	g := b.MustCompile()
	s := rig.NewServer(t)
	s.Work(g)
	_, err := s.Start(t.Context(), thread.StartRequest{Graph: g.Name(), Thread: s.Queue, Input: []byte(`{}`)})
	require.NoError(t, err)
	for status := thread.StatusRunning; status != thread.StatusFinished; {
		v, err := s.Wait(t.Context(), s.Queue)
		require.NoError(t, err)
		status = v.Status
		require.Contains(t, []thread.Status{thread.StatusWaitingEvent, thread.StatusFinished}, status)
	}
}

// TestFollowingAFailure: whatever the mode, a node that failed is shown as failed, with its error, and what a node took is
// told.
func TestFollowingAFailure(t *testing.T) {
	const nap = 20 * time.Millisecond
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := superstep.NewStateGraph[rig.Counter]("follows_failure")
			b.AddNode("works", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
				time.Sleep(nap) // the time is what is tested
				return s, nil
			})
			b.AddNode("breaks", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
				return s, superstep.Permanent(errors.New("the books are closed"))
			})
			b.AddEdge(superstep.Start, "works")
			b.AddEdge("works", "breaks")
			g := b.MustCompile(opts...)
			s := rig.NewServer(t)
			s.Work(g)
			started, err := s.Start(t.Context(), thread.StartRequest{Graph: g.Name(), Thread: s.Queue, Input: []byte(`{}`)})
			require.NoError(t, err)
			ended := map[string]thread.Progress{}
			v, err := s.Follow(t.Context(), started, func(p thread.Progress) {
				if p.State != thread.ProgressStarted {
					ended[p.Node] = p
				}
			})
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFailed, v.Status)
			assert.Equal(t, thread.ProgressOK, ended["works"].State)
			assert.GreaterOrEqual(t, ended["works"].Duration, nap)
			assert.Less(t, ended["works"].Duration, 2*time.Minute)
			assert.Equal(t, thread.ProgressFailed, ended["breaks"].State)
			assert.Contains(t, ended["breaks"].Error, "the books are closed")
		})
	}
}

// TestFollowATaskThatIsGivenBack: an activity that gives its task back, to be run again with what it has recorded, is no success.
func TestFollowATaskThatIsGivenBack(t *testing.T) {
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bank := rig.NewBank()
			pay := bank.Effect("bank.pay")
			b := superstep.NewStateGraph[rig.Payment]("given_back")
			b.AddEffect(pay)
			for _, node := range []string{"also", "pay"} { // each has to own the key first, and is given back for that
				b.AddNode(node, func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
					_, err := pay.Call(ctx, rig.Transfer{To: "ann", Amount: 1}, superstep.WithThreadKey("ann"))
					return s, err
				}, superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 5, InitialInterval: 100 * time.Millisecond, NoJitter: true}))
				b.AddEdge(superstep.Start, node)
			}
			var calls atomic.Int32
			bank.Failing(func(call string) error {
				if call == "pay ann" && calls.Add(1) <= 3 {
					return errors.New("not now")
				}
				return nil
			}, nil)
			g := b.MustCompile(opts...)
			s := rig.NewServer(t)
			s.Work(g)
			started, err := s.Start(t.Context(), thread.StartRequest{Graph: g.Name(), Thread: s.Queue, Input: []byte(`{}`)})
			require.NoError(t, err)
			var ended []string
			v, err := s.Follow(t.Context(), started, func(p thread.Progress) {
				if p.State != thread.ProgressStarted {
					ended = append(ended, p.Node+" "+p.State)
				}
			})
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFinished, v.Status)
			slices.Sort(ended)
			assert.Equal(t, []string{"also ok", "pay ok"}, ended)
		})
	}
}

// TestFollowingRetries: who follows a run hears of an attempt that failed while the task waits for the next one, and show has it too.
func TestFollowingRetries(t *testing.T) {
	for _, name := range []string{"sync", "async"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			b := superstep.NewStateGraph[rig.Counter]("follows_retries")
			b.AddNode("charge", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
				if calls.Add(1) == 1 {
					return s, errors.New("the bank is closed")
				}
				return s, nil
			}, superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 3, InitialInterval: 7 * time.Second, NoJitter: true}))
			b.AddEdge(superstep.Start, "charge")
			g := b.MustCompile(rig.Modes[name]...)
			s := rig.NewServer(t)
			s.Work(g)
			_, err := s.Start(t.Context(), thread.StartRequest{Graph: g.Name(), Thread: s.Queue, Input: []byte(`{}`)})
			require.NoError(t, err)
			var told []thread.Progress
			var shown thread.View
			v, err := s.Follow(t.Context(), thread.View{Thread: s.Queue}, func(p thread.Progress) {
				if p.State == thread.ProgressRetrying {
					told = append(told, p)
					shown, err = s.Show(t.Context(), s.Queue)
					assert.NoError(t, err)
				}
			})
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFinished, v.Status)
			require.Len(t, told, 1, "each attempt once")
			assert.Equal(t, 2, told[0].Attempt)
			assert.Equal(t, "charge", told[0].Node)
			assert.Equal(t, 1, told[0].Step)
			assert.Contains(t, told[0].Error, "the bank is closed")
			assert.WithinDuration(t, time.Now(), told[0].RetryAt, time.Minute)
			require.Len(t, shown.Attempts, 1)
			assert.Equal(t, 2, shown.Attempts[0].Attempt)
			assert.Contains(t, shown.Attempts[0].Error, "the bank is closed")
			assert.True(t, told[0].RetryAt.Equal(shown.Attempts[0].RetryAt))
		})
	}
}

// TestFollowingSends: each task of a Send says of how many it is one.
func TestFollowingSends(t *testing.T) {
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const parts = 5
			b := superstep.NewStateGraph[rig.Counter]("follows_sends")
			b.AddNode("split", func(_ context.Context, s rig.Counter) (rig.Counter, error) { return s, nil })
			superstep.AddInputNode(b, "load", func(context.Context, int) (superstep.Command[rig.Counter], error) {
				return superstep.Command[rig.Counter]{}, nil
			})
			b.AddEdge(superstep.Start, "split")
			b.AddConditionalEdges("split", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
				return superstep.SendEach("load", []int{1, 2, 3, 4, 5}), nil
			}, "load")
			g := b.MustCompile(opts...)
			s := rig.NewServer(t)
			s.Work(g)
			_, err := s.Start(t.Context(), thread.StartRequest{Graph: g.Name(), Thread: s.Queue, Input: []byte(`{}`)})
			require.NoError(t, err)
			loads := 0
			_, err = s.Follow(t.Context(), thread.View{Thread: s.Queue}, func(p thread.Progress) {
				if p.State == thread.ProgressOK {
					assert.Equal(t, p.Node == "load", p.Send)
					if p.Send {
						loads++
						assert.Equal(t, parts, p.Of)
					}
				}
			})
			require.NoError(t, err)
			assert.Equal(t, parts, loads)
		})
	}
}
