package remote_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"superstep.dev"
	"superstep.dev/internal/remote"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// served is the threads of a server of a test's own.
func served(s *rig.Server) *remote.Threads {
	threads, _ := remote.New(s.Temporal, remote.Config{TaskQueue: s.Queue, Namespace: "default", DataConverter: converter.GetDefaultDataConverter()})
	return threads
}

// TestContinueBehindSeveralRuns: a client that took its time continues a thread only when nobody else has since.
func TestContinueBehindSeveralRuns(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	var broken atomic.Bool
	g := rig.Fateful(&broken)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	var runs []string
	for range 3 {
		rig.Invoke(t, th, rig.Wrote("finish"))
		now, err := s.Show(t.Context(), th.ID())
		require.NoError(t, err)
		runs = append(runs, now.RunID)
	}
	for _, behind := range runs[:2] {
		assert.ErrorIs(t, remote.LaunchBehind(t.Context(), served(s), th.ID(), behind), thread.ErrRunning)
	}
	now, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, runs[2], now.RunID)
}

// heldGraph has a node that waits for let.
func heldGraph(name string, let <-chan struct{}) *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter](name)
	g.AddNode("held", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		select {
		case <-let:
		case <-ctx.Done():
		}
		s.Log.Append("held")
		return s, ctx.Err()
	})
	g.AddEdge(superstep.Start, "held")
	return g.MustCompile()
}

// TestReadersShareOneTail: of one run, however many they are; and nobody follows it when they are gone.
func TestReadersShareOneTail(t *testing.T) {
	const readers = 20
	let := make(chan struct{})
	s, g := rig.NewServer(t), heldGraph("shared_tail", let)
	s.Work(g)
	threads := served(s)
	require.NoError(t, g.Thread(s.Client, s.Queue).Start(t.Context(), rig.Counter{}))
	var begun, done sync.WaitGroup
	begun.Add(readers)
	var parts [readers][]thread.Part
	for i := range readers {
		done.Go(func() {
			for p, err := range threads.StreamRun(t.Context(), g.Adapter(), thread.StreamRequest{Thread: s.Queue, Modes: []thread.StreamMode{thread.StreamTasks}}) {
				if assert.NoError(t, err) && len(parts[i]) == 0 {
					begun.Done()
				}
				parts[i] = append(parts[i], p)
			}
		})
	}
	begun.Wait()
	assert.Equal(t, 1, remote.Followed(threads))
	close(let)
	done.Wait()
	for i := range readers {
		assert.Len(t, parts[i], 2)
		assert.Equal(t, parts[0], parts[i])
	}
	assert.Equal(t, 0, remote.Followed(threads))
}

// TestReadersBeyondTheTails look once a second instead.
func TestReadersBeyondTheTails(t *testing.T) {
	let := make(chan struct{})
	s, g := rig.NewServer(t), heldGraph("beyond_tails", let)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	defer remote.OccupyTails()()
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	var modes []string
	for p, err := range th.Stream(t.Context(), thread.StreamTasks, thread.StreamUpdates) {
		require.NoError(t, err)
		if len(modes) == 0 {
			close(let)
		}
		modes = append(modes, string(p.Mode))
	}
	assert.Equal(t, []string{"tasks", "updates", "tasks"}, modes)
}
