package thread_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// troubles are those of a storage that is there, each with what a workflow task fails with that meets it.
var troubles = map[string]struct {
	trouble
	reason string
}{
	"slow": {trouble{any: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}}, "no answer within 5s"},
	"full":    {trouble{put: syscall.ENOSPC}, syscall.ENOSPC.Error()},
	"garbage": {trouble{get: []byte("\x00well formed, and not it")}, "is not what was stored"},
}

// awaitTrouble waits until a run cannot have gone on because of its storage: a task is held for longer than a call of the storage is
// repeated, behind the first one that met the trouble, or a workflow task has failed for the reason.
func awaitTrouble(t *testing.T, s *rig.Server, at *troubled, id, reason string) {
	t.Helper()
	const long = 7 * time.Second
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		met, held, failed := at.metAt(id), time.Duration(0), ""
		if !assert.False(c, met.IsZero(), "nobody has met the trouble") {
			return
		}
		d, err := s.Temporal.DescribeWorkflowExecution(t.Context(), id, "")
		if !assert.NoError(c, err) {
			return
		}
		for _, a := range d.GetPendingActivities() {
			assert.EqualValues(c, 1, a.GetAttempt())
			held = max(held, a.GetLastHeartbeatTime().AsTime().Sub(met))
		}
		events := s.Temporal.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if !assert.NoError(c, err) {
				return
			}
			failed += e.GetWorkflowTaskFailedEventAttributes().GetFailure().GetMessage()
		}
		if held <= long {
			assert.Contains(c, failed, reason)
		}
	}, 2*time.Minute, 100*time.Millisecond)
}

// gated is a graph of which a node writes a long text once its gate is open, and the next one reads it.
type gated struct {
	graph       *superstep.Graph[rig.Counter]
	began, gate chan struct{}
	wrote, read atomic.Int32
}

func newGated(name string, opts ...superstep.CompileOption) *gated {
	g := &gated{began: make(chan struct{}, 100), gate: make(chan struct{})}
	b := superstep.NewStateGraph[rig.Counter](name)
	b.AddNode("write", func(ctx context.Context, c rig.Counter) (rig.Counter, error) {
		g.wrote.Add(1)
		g.began <- struct{}{}
		select {
		case <-g.gate:
		case <-ctx.Done():
		}
		c.Log.Append(said(100_000, 1))
		return c, ctx.Err()
	})
	b.AddNode("read", func(_ context.Context, c rig.Counter) (rig.Counter, error) {
		g.read.Add(1)
		c.N.Set(int64(len(c.Log.Get()[0])))
		return c, nil
	})
	b.AddEdge(superstep.Start, "write")
	b.AddEdge("write", "read")
	g.graph = b.MustCompile(opts...)
	return g
}

// went holds that a run of the graph has come to its end.
func (g *gated) went(t *testing.T, got superstep.Result[rig.Counter], err error) {
	t.Helper()
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, got.Status)
	assert.Equal(t, []string{said(100_000, 1)}, got.Output.Log.Get())
	assert.EqualValues(t, 100_000, got.Output.N.Get())
}

// TestAStorageInTrouble while a node is under way, of which the result is stored: it is slow, full, or has something else. The run stands, as
// a running one, and goes on when the trouble is over, with what the node has returned.
func TestAStorageInTrouble(t *testing.T) {
	t.Parallel()
	for what, c := range troubles {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, at := newTroubled(t)
			runs, serves := map[string]*gated{}, []superstep.Runnable(nil)
			for mode, opts := range rig.Modes {
				runs[mode] = newGated("trouble-"+mode, opts...)
				serves = append(serves, runs[mode].graph)
			}
			s.work(serves...)
			of := func(c *superstep.Client, mode string) *superstep.Thread[rig.Counter] {
				return runs[mode].graph.Thread(c, s.Queue+"-"+mode)
			}
			for mode, g := range runs {
				require.NoError(t, of(s.Client, mode).Start(t.Context(), rig.Counter{}))
				<-g.began
				awaitTaken(t, s.Server, of(s.Client, mode).ID())
			}
			at.trouble.Store(&c.trouble)
			for _, g := range runs {
				close(g.gate)
			}
			for mode := range runs {
				awaitTrouble(t, s.Server, at, of(s.Client, mode).ID(), c.reason)
				stillRuns(t, s, of(s.Client, mode).ID())
				awaitProblem(t, s, of(s.Client, mode).ID(), c.reason)
			}
			at.trouble.Store(nil)

			other := fromTroubled(t, s.Server, at)
			for mode, g := range runs {
				got, err := of(s.Client, mode).Wait(t.Context())
				g.went(t, got, err)
				assert.EqualValues(t, 1, g.wrote.Load(), "%s: its worker has held the result", mode)
				assert.EqualValues(t, 1, g.read.Load(), mode)
				assert.Equal(t, []string{said(100_000, 1)}, rig.LogOf(t, of(other.Client, mode)), mode)
			}
		})
	}
}

// TestAStorageInTroubleAtOnce: it is in trouble before a run begins, of which the first node is over at once, so that no task may be there
// that holds what it has returned. Then the node runs again, as the first half second of a run may.
func TestAStorageInTroubleAtOnce(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"slow", "full"} { // nobody has to read anything
		c := troubles[what]
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, at := newTroubled(t)
			runs, serves := map[string]*gated{}, []superstep.Runnable(nil)
			for mode, opts := range rig.Modes {
				runs[mode] = newGated("trouble-"+mode, opts...)
				close(runs[mode].gate)
				serves = append(serves, runs[mode].graph)
			}
			s.work(serves...)
			at.trouble.Store(&c.trouble)
			for mode, g := range runs {
				require.NoError(t, g.graph.Thread(s.Client, s.Queue+"-"+mode).Start(t.Context(), rig.Counter{}))
			}
			for mode := range runs {
				awaitTrouble(t, s.Server, at, s.Queue+"-"+mode, c.reason)
				stillRuns(t, s, s.Queue+"-"+mode)
			}
			at.trouble.Store(nil)
			for mode, g := range runs {
				got, err := g.graph.Thread(s.Client, s.Queue+"-"+mode).Wait(t.Context())
				g.went(t, got, err)
			}
		})
	}
}

// awaitTaken waits until an activity has what a run does.
func awaitTaken(t *testing.T, s *rig.Server, id string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		d, err := s.Temporal.DescribeWorkflowExecution(t.Context(), id, "")
		if assert.NoError(c, err) && assert.Len(c, d.GetPendingActivities(), 1) {
			assert.Equal(c, enumspb.PENDING_ACTIVITY_STATE_STARTED, d.GetPendingActivities()[0].GetState())
		}
	}, 2*time.Minute, 50*time.Millisecond)
}

// stillRuns holds that a run is shown as running, to a client with the same storage.
func stillRuns(t *testing.T, s *shared, id string) {
	t.Helper()
	view, err := s.Show(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusRunning, view.Status)
	assert.Empty(t, view.Error)
	assert.Nil(t, view.Failure)
}

// awaitProblem waits until the reason why a run stands is shown: between two tries no task of it is there that has failed.
func awaitProblem(t *testing.T, s *shared, id, reason string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		view, err := s.Show(t.Context(), id)
		if assert.NoError(c, err) {
			assert.Contains(c, view.Problem, reason)
		}
	}, 2*time.Minute, 100*time.Millisecond)
}
