package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	testrig "superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// briskNodes are those of brisk, which takes more than a second: it begins in its workflow task and goes on in an activity.
const briskNodes = 8

// brisk is a chain of nodes of a tenth of a second. One of them does not look at its context while it works for three.
func brisk() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("brisk")
	last := superstep.Start
	for i := range briskNodes {
		name := fmt.Sprint("brisk ", i)
		g.AddNode(name, func(ctx context.Context, s work) (work, error) {
			if err := noted(s.Dir.Get(), name); err != nil {
				return s, err
			}
			s.Log.Append(name)
			if i == 3 {
				time.Sleep(300 * time.Millisecond)
				return s, nil
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			return s, context.Cause(ctx)
		})
		g.AddEdge(last, name)
		last = name
	}
	return g.MustCompile()
}

// TestKilledAroundTheFirstHalfSecond: the worker is killed within the workflow task that a run begins in, as that hands the run over to
// an activity, and a moment later. Another one goes on: what was stored does not run again, and each node's write is there once.
func TestKilledAroundTheFirstHalfSecond(t *testing.T) {
	moments := []time.Duration{100 * time.Millisecond, 499 * time.Millisecond, 530 * time.Millisecond, 700 * time.Millisecond}
	if testing.Short() {
		moments = moments[1:2]
	}
	r := newRig(t)
	worker := r.graphsWorker("worker")
	for i, moment := range moments {
		began := r.ran("brisk 0")
		threads := map[superstep.Durability]string{}
		for _, mode := range []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit} {
			threads[mode] = testserver.Queue(t)
			r.again("brisk", threads[mode], r.steered(), mode)
		}
		r.until("all have begun", func() bool { return r.ran("brisk 0") == began+len(threads) })
		time.Sleep(moment) // not a wait for anything: it is the moment of the kill
		r.kill(worker)
		worker = r.graphsWorker(fmt.Sprint("worker-", i))
		var want []string
		for n := range briskNodes {
			want = append(want, fmt.Sprint("brisk ", n))
		}
		for mode, id := range threads {
			r.wait(id, thread.StatusFinished)
			require.Equal(t, want, value[[]string](r, id, "log"), "%s, killed after %s", mode, moment)
		}
		for _, node := range want {
			require.LessOrEqual(t, r.ran(node), 2*len(threads)*(i+1), "%s ran again without a reason", node)
		}
	}
}

// TestKilledWhereARunIsContinued: a conversation whose run is continued as a new one behind every third turn loses its worker again and
// again, and each turn is given twice. All are there once, in their order.
func TestKilledWhereARunIsContinued(t *testing.T) {
	t.Run("where it rests", func(t *testing.T) { killedWhereARunIsContinued(t, protocol.ContinueAt{Updates: 3, Life: 1}) })
	t.Run("under way", func(t *testing.T) {
		killedWhereARunIsContinued(t, protocol.ContinueAt{Updates: 3, MostUpdates: 3, Life: 1})
	})
}

func killedWhereARunIsContinued(t *testing.T, at protocol.ContinueAt) {
	r := newRig(t)
	temporal, err := client.DialContext(t.Context(), client.Options{HostPort: r.address, Logger: silent{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{testrig.ContinuedAt(at)}}})
	require.NoError(t, err)
	defer temporal.Close()
	c, err := superstep.NewClient(temporal, superstep.ClientConfig{TaskQueue: r.queue})
	require.NoError(t, err)
	worker, threadID := r.graphsWorker("worker"), testserver.Queue(t)
	turns := 24
	if testing.Short() {
		turns = 8
	}
	var want []string
	for turn := range turns {
		note := fmt.Sprint("turn ", turn)
		want = append(want, note)
		req := thread.StartRequest{Graph: "adds", Thread: threadID, ID: note, Input: encode(t, map[string]string{"note": note}), KeepOpen: true}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				var err error
				assert.Eventually(t, func() bool { // who waited too long for a worker is told so, and gives the turn once more
					_, err = c.Start(t.Context(), req)
					return !errors.Is(err, thread.ErrNoWorker) && !errors.Is(err, thread.ErrBusy)
				}, patience, poll)
				assert.NoError(t, err)
			})
		}
		if turn%3 != 1 {
			time.Sleep(time.Duration(turn) * 3 * time.Millisecond) // not a wait for anything: it is the moment of the kill
			r.kill(worker)
			worker = r.graphsWorker(fmt.Sprint("worker-", turn))
		}
		both.Wait()
		r.wait(threadID, thread.StatusFinished)
		require.Equal(t, want, value[[]string](r, threadID, "log"))
	}
}
