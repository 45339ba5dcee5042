package thread_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestWhatNoRunWouldTakeIsRefusedAtOnce: the server refuses what is larger than a payload before a run sees it, so nobody could say why.
// The thread goes on as if nothing had been sent.
func TestWhatNoRunWouldTakeIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("oversized")
	b.AddNode("fill", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.Log.Append(strings.Repeat("x", 1300<<10))
		return s, nil
	})
	b.AddNode("ask", rig.Asking("ask"))
	b.AddEdge(superstep.Start, "fill")
	b.AddEdge("fill", "ask")
	g := b.MustCompile()
	s := rig.NewServer(t)
	s.Work(g)
	large := func(size int) rig.Counter { return rig.Wrote(strings.Repeat("y", size)) }
	for name, open := range map[string]bool{"open": true, "closed": false} {
		t.Run(name, func(t *testing.T) {
			th := g.Thread(s.Client, graphtest.ThreadID(t))
			rig.Invoke(t, th, rig.Counter{})
			history := rig.HistoryOf(t, th)
			if !open {
				require.NoError(t, th.Cancel(t.Context(), ""))
			}
			began := time.Now()
			refused := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, thread.ErrBadInput)
				assert.Contains(t, err.Error(), "bytes")
			}
			for _, size := range []int{1200 << 10, 2300 << 10, 5 << 20} {
				_, err := th.Update(t.Context(), large(size), superstep.AsNode("fill"))
				refused(err)
				_, err = th.Command(t.Context(), superstep.Command[rig.Counter]{Update: large(size)})
				refused(err)
			}
			at := history[0].Checkpoint
			_, err := th.Update(t.Context(), large(900<<10), superstep.AsNode("fill"), superstep.AtCheckpoint(at))
			refused(err)
			_, err = th.Command(t.Context(), superstep.Command[rig.Counter]{Update: large(900 << 10)}, superstep.FromCheckpoint(at))
			refused(err)
			assert.Less(t, time.Since(began), time.Minute, "nobody waits for a worker")
			if !open {
				_, err = th.Retry(t.Context())
				require.NoError(t, err)
			}
			got, err := th.Resume(t.Context(), true)
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFinished, got.Status)
		})
	}
}
