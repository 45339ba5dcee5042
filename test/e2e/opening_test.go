package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
	"superstep.dev/thread"
)

// briskNodes are those of brisk, which takes more than a second: it begins in its workflow task and goes on in an activity.
const briskNodes = 8

// brisk is a chain of nodes of a tenth of a second, which note their thread too. One of them does not look at its context while it works
// for three.
func brisk() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("brisk")
	last := superstep.Start
	for i, name := range briskly() {
		g.AddNode(name, func(ctx context.Context, s work) (work, error) {
			if err := noted(s.Dir.Get(), of(superstep.Info(ctx).Thread, name)); err != nil {
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

// briskly are the nodes of brisk, in their order.
func briskly() (nodes []string) {
	for i := range briskNodes {
		nodes = append(nodes, fmt.Sprint("brisk ", i))
	}
	return nodes
}

// of is what a node of brisk notes of a thread.
func of(threadID, node string) string { return threadID + " " + node }

// halfSecond is how long a segment stays within its workflow task, counted from when the server gave that to the worker.
const halfSecond = 500 * time.Millisecond

// TestKilledAroundTheFirstHalfSecond: the worker is killed within the workflow task that a run begins in, as that hands the run over to
// an activity, and a moment later. Another one goes on: what was stored does not run again, and each node's write is there once.
func TestKilledAroundTheFirstHalfSecond(t *testing.T) {
	k := &killing{rig: newRig(t)}
	k.next()
	for _, moment := range []time.Duration{100 * time.Millisecond, 499 * time.Millisecond, 530 * time.Millisecond, 700 * time.Millisecond} {
		for {
			within := k.after(moment)
			if within || moment > halfSecond/2 {
				break
			}
			t.Log("the kill came too late on this machine: once more")
		}
	}
}

// killing kills one worker after the other.
type killing struct {
	*rig
	worker  *processes.Process
	workers int
}

// next starts the next worker.
func (k *killing) next() {
	k.t.Helper()
	k.workers++
	k.worker = k.graphsWorker(fmt.Sprint("worker-", k.workers))
}

// after kills the worker at a moment behind the beginning of a run in each mode, lets another one go on with them, and reports whether the
// kill came within all their openings for certain.
func (k *killing) after(moment time.Duration) (within bool) {
	t := k.t
	t.Helper()
	modes := []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit}
	threads := map[superstep.Durability]string{}
	for _, mode := range modes {
		threads[mode] = testserver.Queue(t)
		k.again("brisk", threads[mode], k.steered(), mode)
	}
	k.until("all have begun", func() bool {
		return !slices.ContainsFunc(modes, func(m superstep.Durability) bool { return k.ran(of(threads[m], "brisk 0")) == 0 })
	})
	time.Sleep(moment) // not a wait for anything: it is the moment of the kill
	k.kill(k.worker)
	killed := time.Now()

	within = true
	stored := map[superstep.Durability]int{}
	for _, mode := range modes {
		h := k.past(threads[mode])
		stored[mode] = h.outcomes + k.recorded(threads[mode])
		t.Logf("%s, killed %s after the first workflow task began, for %s behind the first nodes: activities %v, %d nodes stored",
			mode, killed.Sub(h.began).Round(time.Millisecond), moment, h.activities, stored[mode])
		if killed.Sub(h.began) >= halfSecond { // the kill, and the worker's half second, may have begun later
			within = false
			continue
		}
		require.Empty(t, h.activities, "%s, killed after %s", mode, moment)
		require.True(t, mode == superstep.DurabilitySync || stored[mode] == 0, "%s: %d are stored, of a run in its first workflow task", mode, stored[mode])
	}
	k.next()
	for _, mode := range modes {
		k.wait(threads[mode], thread.StatusFinished)
		require.Equal(t, briskly(), value[[]string](k.rig, threads[mode], "log"), "%s, killed after %s", mode, moment)
		for i, node := range briskly() {
			times := k.ran(of(threads[mode], node))
			if i < stored[mode] {
				require.Equal(t, 1, times, "%s, killed after %s: %s was stored", mode, moment, node)
			}
			require.Contains(t, []int{1, 2}, times, "%s, killed after %s: %s", mode, moment, node)
		}
	}
	return within
}
