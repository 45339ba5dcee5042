package graphadapter

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"superstep.dev/graphadapter/pregel"
)

// laneRun runs the node of a task in a lane.
func laneRun(t *testing.T, ctx context.Context, l *lane, node NodeFunc) result {
	t.Helper()
	run, err := newTaskRun(oneNode(node), payTask(), Env{Thread: "r-7"})
	if err != nil {
		t.Fatal(err)
	}
	bounded, stop := run.bound(ctx)
	defer stop()
	return l.run(bounded, run)
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	var stack [64]byte
	return strings.Fields(string(stack[:runtime.Stack(stack[:], false)]))[1]
}

// TestALaneRunsNodesOnOneGoroutine, until one does not come back: what runs next does not wait for it.
func TestALaneRunsNodesOnOneGoroutine(t *testing.T) {
	ends := func(context.Context, Input) (pregel.Command, error) {
		runtime.Goexit()
		return pregel.Command{}, nil
	}
	synctest.Test(t, func(t *testing.T) {
		var l lane
		where := ""
		note := func(context.Context, Input) (pregel.Command, error) {
			where = goroutine()
			return pregel.Command{}, nil
		}
		next := func() string {
			if r := laneRun(t, t.Context(), &l, note); r.err != nil {
				t.Fatal(r.err)
			}
			return where
		}
		first := next()
		if again := next(); again != first || first == goroutine() {
			t.Errorf("two nodes ran on the goroutines %s and %s, the lane is run from %s", first, again, goroutine())
		}
		var broken *PanicError
		if r := laneRun(t, t.Context(), &l, ends); !r.gone || !errors.As(r.err, &broken) {
			t.Errorf("a node that ends its goroutine came back with %+v", r)
		}
		second := next()
		if second == first {
			t.Error("a node ran on a goroutine that has ended")
		}
		cancelled, cancel := context.WithCancel(t.Context())
		late := make(chan struct{})
		cancel()
		deaf := func(context.Context, Input) (pregel.Command, error) {
			<-late
			return pregel.Command{}, nil
		}
		if r := laneRun(t, cancelled, &l, deaf); !r.left || !errors.Is(r.err, context.Canceled) {
			t.Errorf("a deaf node came back with %+v", r)
		}
		if next() == second {
			t.Error("a node ran on the goroutine of one that has not come back")
		}
		close(late)
		l.end() // the test waits for all goroutines
	})
}
