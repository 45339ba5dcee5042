package workflows_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// following is a rig whose workers have workflow tasks follow each other.
func following(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.follows = true
	return r
}

// lengthened is a chain whose supersteps bring so much that each is a segment of its own in every mode; only sync mode does without.
// The last one leaves a short state.
func lengthened(g *graphadapter.Graph) *graphadapter.Graph {
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "long", Kind: pregel.KindLast})
	for name, node := range g.Nodes {
		run, long := node.Run, strings.Repeat(name, 1600<<10)
		if name == "c" {
			long = ""
		}
		node.Run = func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			c, err := run(ctx, in)
			c.Update = append(c.Update, writes("long", long).Update...)
			return c, err
		}
		g.Nodes[name] = node
	}
	return g
}

// followedModes are inputs in all modes, for a graph that is lengthened unless the mode is sync.
func followedModes() map[string]protocol.GraphInput {
	modes := relaxedModes()
	modes["sync"], modes["fused"] = protocol.GraphInput{}, protocol.GraphInput{Fused: true}
	return modes
}

func followedChain(mode string) *graphadapter.Graph {
	if mode == "sync" {
		return chainGraph()
	}
	return lengthened(chainGraph())
}

// TestSuperstepsFollow: each that is a segment of its own is stored with the workflow task that it ran in, and a worker may take the run
// over at each.
func TestSuperstepsFollow(t *testing.T) {
	for mode, in := range followedModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := following(t)
			r.work(followedChain(mode))
			in.Graph, in.Input = "chain", input(`{}`)
			var h *historypb.History
			inTime(t, func() bool {
				run := r.start(testserver.Queue(t), in)
				if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
					t.Errorf("it ended with %s", log)
				}
				h = r.history(run.GetID())
				got, want := countsOf(h), (counts{3, 3, 3, 0})
				if got != want && got.activities == 0 {
					t.Errorf("a run of three supersteps took %+v, want %+v", got, want)
				}
				return got.activities == 0
			})
			for n, e := range h.Events {
				if e.GetWorkflowTaskScheduledEventAttributes() == nil || n < 3 {
					continue
				}
				if err := replay(t, &historypb.History{Events: h.Events[:n]}, followedChain(mode)); err != nil {
					t.Errorf("up to event %d: %v", n, err)
				}
			}
			if err := replay(t, h, followedChain(mode)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestASuperstepThatTakesLong: it goes on in its activity, and what comes behind it begins in activities.
func TestASuperstepThatTakesLong(t *testing.T) {
	t.Parallel()
	r, g, ran := following(t), chainGraph(), &atomic.Int32{}
	began, release := make(chan struct{}), make(chan struct{})
	g.Nodes["b"] = counting(ran, "b", func(context.Context) error { began <- struct{}{}; <-release; return nil })
	r.work(g)
	tries := int32(0)
	inTime(t, func() bool {
		tries++
		run := r.start(testserver.Queue(t), protocol.GraphInput{Graph: "chain", Input: input(`{}`)})
		<-began
		r.pending(run.GetID(), "the segment's activity", func(attempts []int32) bool { return slices.Equal(attempts, []int32{1}) })
		release <- struct{}{}
		if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` || ran.Load() != tries {
			t.Errorf("it ended with %s, and the node ran %d times in %d runs", log, ran.Load(), tries)
		}
		h := r.history(run.GetID())
		if err := replay(t, h, chainGraph()); err != nil {
			t.Error(err)
		}
		got := countsOf(h)
		if got.throughs == 0 {
			return false
		}
		if got.openings != 2 || got.throughs != 1 || got.activities != 1 {
			t.Errorf("it took %+v", got)
		}
		return true
	})
}

// TestAWorkerLostBetweenSupersteps: what was stored does not run again, and the superstep that was lost begins in an activity, which
// counts lost workers. The next worker need not have workflow tasks follow each other.
func TestAWorkerLostBetweenSupersteps(t *testing.T) {
	for mode, in := range followedModes() {
		for name, follows := range map[string]bool{"to one like it": true, "to one that has no tasks follow": false} {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				inTime(t, func() bool { return lostBetween(t, mode, in, follows) })
			})
		}
	}
}

// lostBetween reports whether the first superstep was through in its opening.
func lostBetween(t *testing.T, mode string, in protocol.GraphInput, follows bool) bool {
	r, gone := newRig(t), following(t)
	gone.queue, r.follows = r.queue, follows
	g, first, ran, began, release := chainGraph(), &atomic.Int32{}, &atomic.Int32{}, make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	g.Nodes["a"] = counting(first, "a", nil)
	g.Nodes["b"] = counting(ran, "b", func(context.Context) error {
		if ran.Load() == 1 {
			close(began)
			<-release
		}
		return nil
	})
	if mode != "sync" {
		g = lengthened(g)
	}
	in.Graph, in.Input = "chain", input(`{}`)
	stop := gone.workAs(g, worker.Options{WorkerStopTimeout: time.Millisecond})
	run := r.start(testserver.Queue(t), in)
	<-began
	gone.client.Close() // the workflow task is lost with the worker
	stop()
	defer r.work(g)()
	if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
		t.Errorf("it ended with %s", log)
	}
	if first.Load() != 1 || ran.Load() != 2 {
		t.Errorf("the nodes ran %d and %d times, want once and twice", first.Load(), ran.Load())
	}
	got := countsOf(r.history(run.GetID()))
	if got.throughs >= 1 && got.activities < 1 {
		t.Errorf("behind the lost worker it took %+v", got)
	}
	return got.throughs >= 1
}

// TestWhatArrivesBetweenSupersteps counts before the next one begins.
func TestWhatArrivesBetweenSupersteps(t *testing.T) {
	for name, c := range map[string]struct {
		send func(r *rig, thread string) error
		// then waits for what comes of it, and lets the run go on.
		then func(r *rig, thread string) error
	}{
		"a pause": {func(r *rig, thread string) error {
			return r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalPause, protocol.PauseRequest{ID: "p"})
		}, func(r *rig, thread string) error {
			r.paused(thread)
			_, err := r.pausing(thread, protocol.PauseRequest{ID: "u", Unpause: true})
			return err
		}},
		"a cancellation": {func(r *rig, thread string) error { return r.client.CancelWorkflow(r.ctx, thread, "") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, g, ran := following(t), chainGraph(), &atomic.Int32{}
			thread := testserver.Queue(t)
			g.Nodes["b"] = counting(&atomic.Int32{}, "b", func(context.Context) error { return c.send(r, thread) })
			g.Nodes["c"] = counting(ran, "c", nil)
			r.work(g)
			run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: input(`{}`)})
			if c.then == nil {
				if err := run.Get(r.ctx, nil); err == nil {
					t.Error("the run was cancelled, and ended well")
				}
				if ran.Load() != 0 {
					t.Error("a superstep began behind the cancellation")
				}
				return
			}
			r.until(thread, "the second superstep", func(s protocol.State) bool { return string(s.Snapshot.Values["log"]) == `["a","b"]` })
			if ran.Load() != 0 {
				t.Error("a superstep began behind what had arrived")
			}
			if err := c.then(r, thread); err != nil {
				t.Fatal(err)
			}
			if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` || ran.Load() != 1 {
				t.Errorf("it ended with %s, and the last node ran %d times", log, ran.Load())
			}
		})
	}
}

// TestAWorkerThatDrainsHandsOver: one whose run goes on from workflow task to workflow task ends soon, and nothing runs twice.
func TestAWorkerThatDrainsHandsOver(t *testing.T) {
	t.Parallel()
	r, ran, reached := following(t), &atomic.Int32{}, make(chan struct{})
	var stopped atomic.Bool
	const some = 20
	g := roundsGraph()
	round := g.Nodes["round"]
	round.Run = counting(ran, "r", func(context.Context) error {
		switch n := ran.Load(); {
		case n == some:
			close(reached)
		case n > some && !stopped.Load():
			<-time.After(100 * time.Millisecond) // whoever stops the worker need not hurry
		}
		return nil
	}).Run
	g.Nodes["round"] = round
	stop := r.work(g)
	run := r.start(testserver.Queue(t), protocol.GraphInput{Graph: "rounds", Input: input(`{}`), Options: pregel.Options{RecursionLimit: 2 * manyRounds}})
	<-reached
	stop()
	stopped.Store(true)
	by := ran.Load()
	r.work(g)
	if log := strings.Count(string(r.finished(run).Output["log"]), "r"); log != manyRounds || ran.Load() != manyRounds {
		t.Errorf("it has %d rounds, and the node ran %d times, want %d", log, ran.Load(), manyRounds)
	}
	if by == manyRounds {
		t.Error("the worker did not end before its run had")
	}
}
