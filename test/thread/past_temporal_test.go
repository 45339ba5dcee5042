package thread_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

// seen is all that can be read of a thread.
type seen struct {
	now     thread.StateView
	history []thread.CheckpointView
	at      []thread.StateView
}

func look(s *rig.Server, threadID string) seen {
	s.T.Helper()
	var out seen
	var err error
	out.now, err = s.State(s.T.Context(), thread.StateRequest{Thread: threadID, Subgraphs: true})
	require.NoError(s.T, err)
	out.history, err = s.History(s.T.Context(), thread.HistoryRequest{Thread: threadID, Values: true})
	require.NoError(s.T, err)
	for _, c := range out.history {
		view, err := s.State(s.T.Context(), thread.StateRequest{Thread: threadID, Checkpoint: c.Checkpoint})
		require.NoError(s.T, err)
		out.at = append(out.at, view)
	}
	return out
}

// TestThePastNeedsNoWorker: what can be read while a worker runs can be read by another process without any, of threads
// that wait, finished, failed, were cancelled or terminated; and a worker that comes later goes on with them.
func TestThePastNeedsNoWorker(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	var broken atomic.Bool
	broken.Store(true)
	g := rig.Fateful(&broken)
	stop := s.Work(g)
	th := func(kind string) *superstep.Thread[rig.Counter] { return g.Thread(s.Client, s.Queue+"-"+kind) }
	_, err := th("fail").Invoke(t.Context(), rig.Wrote("fail"))
	require.Error(t, err)
	for _, kind := range []string{"ask", "cancel", "terminate"} {
		rig.Invoke(t, th(kind), rig.Wrote("ask"))
	}
	for range 2 {
		rig.Invoke(t, th("finish"), rig.Wrote("finish"))
	}
	require.NoError(t, th("cancel").Cancel(t.Context(), "no need"))
	require.NoError(t, s.Temporal.TerminateWorkflow(t.Context(), th("terminate").ID(), "", "by hand"))

	kinds := map[string]thread.Status{"fail": thread.StatusFailed, "ask": thread.StatusWaiting,
		"cancel": thread.StatusCancelled, "terminate": thread.StatusTerminated, "finish": thread.StatusFinished}
	before := map[string]seen{}
	for kind, status := range kinds {
		before[kind] = look(s, th(kind).ID())
		assert.Equal(t, status, before[kind].now.Status, kind)
		assert.Len(t, before[kind].history, map[bool]int{true: 8, false: 3}[kind == "finish"], kind)
	}
	stop()
	for kind := range kinds {
		assert.Equal(t, before[kind], look(s, th(kind).ID()), kind)
	}

	s.Work(g)
	broken.Store(false)
	got := rig.Invoke(t, th("fail"), nil)
	assert.Equal(t, []string{"fail", "a", "b"}, got.Output.Log.Get())
	for _, kind := range []string{"ask", "cancel", "terminate"} {
		th := th(kind)
		state, err := th.Update(t.Context(), rig.Wrote("by hand"), superstep.AsNode("b"))
		require.NoError(t, err, kind)
		assert.Equal(t, []string{"ask", "a", "by hand"}, state.State.Log.Get(), kind)
		afterA := rig.AtStep(t, th, 1)
		th, err = th.Fork(t.Context(), afterA.Checkpoint, "")
		require.NoError(t, err, kind)
		got, err := th.Wait(t.Context())
		require.NoError(t, err, kind)
		assert.Equal(t, thread.StatusWaiting, got.Status, kind)
		got, err = th.Resume(t.Context(), true)
		require.NoError(t, err, kind)
		assert.Equal(t, []string{"ask", "a", "b true"}, got.Output.Log.Get(), kind)
	}
}

// TestForksAtOnce: one of several clients that continue a thread wins, the others are told, and every branch is whole.
func TestForksAtOnce(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	g := rig.Chain("raced", "a", "b", "c").MustCompile()
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	rig.Invoke(t, th, rig.Counter{})
	before := rig.HistoryOf(t, th)
	afterA := rig.AtStep(t, th, 1)
	const clients = 5
	refused := make(chan error, clients)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			_, err := th.Fork(t.Context(), afterA.Checkpoint, "")
			refused <- err
		})
	}
	all.Wait()
	close(refused)
	won := 0
	for err := range refused {
		if err == nil {
			won++
			continue
		}
		assert.ErrorIs(t, err, thread.ErrRunning)
	}
	assert.Positive(t, won)
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
	history := rig.HistoryOf(t, th)
	assert.Len(t, history, len(before)+3*won, "a fork, b and c for each that won")
	distinct := map[string]bool{}
	for _, c := range history {
		distinct[c.Checkpoint] = true
	}
	assert.Len(t, distinct, len(history))
}

// TestUpdatesAtOnce: every update that was accepted is there, once.
func TestUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	g := rig.Chain("crowded", "a", "b").MustCompile(superstep.WithInterruptBefore("b"))
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	rig.Invoke(t, th, rig.Counter{})
	var accepted sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			word := fmt.Sprint("update ", i)
			if _, err := th.Update(t.Context(), rig.Wrote(word), superstep.AsNode("a")); err == nil {
				accepted.Store(word, true)
			} else {
				assert.ErrorIs(t, err, thread.ErrRunning)
			}
		})
	}
	all.Wait()
	got := rig.LogOf(t, th)
	require.Equal(t, "a", got[0])
	for _, word := range got[1:] {
		_, ok := accepted.LoadAndDelete(word)
		assert.True(t, ok, "%s was not accepted, or is there twice", word)
	}
	accepted.Range(func(word, _ any) bool { t.Errorf("%v was accepted and lost", word); return true })
}

// TestARefusedBranchFromEarlierLosesNothing: an update of an earlier checkpoint that fails in a branch function leaves a
// finished thread as it was, with all that came after that checkpoint.
func TestARefusedBranchFromEarlierLosesNothing(t *testing.T) {
	t.Parallel()
	rig.OnRuntimes(t, rig.Decides(), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		rig.Invoke(t, th, nil)
		before := rig.HistoryOf(t, th)
		_, err := th.Update(t.Context(), rig.Wrote("bad"), superstep.AsNode("a"), superstep.AtCheckpoint(rig.AtStep(t, th, 1).Checkpoint))
		require.ErrorIs(t, err, thread.ErrBadInput)
		require.ErrorContains(t, err, "nowhere to go")
		assert.Equal(t, []string{"a", "b"}, rig.LogOf(t, th))
		assert.Equal(t, before, rig.HistoryOf(t, th))
		rig.Invoke(t, th, rig.Wrote("again"))
		assert.Equal(t, []string{"a", "b", "again", "a", "b"}, rig.Invoke(t, th, nil).Output.Log.Get())
	})
}
