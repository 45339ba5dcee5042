package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestExitKeepsOneCheckpoint of each invocation, as in memory.
func TestExitKeepsOneCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(approvalGraph())
	thread := testserver.Queue(t)
	memory := taskrun.NewMemory().Thread(approvalGraph(), thread)
	opts := graphadapter.RunOptions{Durability: graphadapter.DurabilityExit}
	in := protocol.GraphInput{Graph: "approval", Input: input(`{}`), Durability: opts.Durability}
	run := r.start(thread, in)
	s := r.asks(thread, 3)
	memorized(t, memory, input(`{}`), opts)
	r.sameLines(thread, memory)
	if _, err := r.updateState(thread, one("u", as("one", "x"))); err != nil {
		t.Fatal(err)
	}
	if _, err := memory.UpdateState(r.ctx, "", as("one", "x")); err != nil {
		t.Fatal(err)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	in = next("approval", r.finished(run).Closing)
	memorized(t, memory, protocol.Input{}, opts)
	r.sameLines(thread, memory)
	in.Input, in.Durability = input(`{}`), opts.Durability
	r.start(thread, in)
	again := r.asks(thread, 3)
	memorized(t, memory, input(`{}`), opts)
	r.sameLines(thread, memory)
	if lines := r.lines(thread); len(lines) != 4 || s.Snapshot.Checkpoint == again.Snapshot.Checkpoint {
		t.Errorf("there are %d checkpoints, want one for each of three invocations and one update", len(lines))
	}
}

// crowd counts how many nodes run at once, and the most that did. Each waits until that were want, and a moment for more.
type crowd struct{ now, most, want atomic.Int32 }

func (c *crowd) join(ctx context.Context) {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for {
		seen := c.most.Load()
		if now <= seen || c.most.CompareAndSwap(seen, now) {
			break
		}
	}
	tick := time.NewTicker(20 * time.Millisecond) // long enough for others to begin
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if c.most.Load() >= c.want.Load() {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// crowdGraph runs n nodes side by side.
func crowdGraph(n int, of *crowd) *graphadapter.Graph {
	nodes, order := map[string]graphadapter.Node{}, []string{}
	var edges []pregel.Edge
	for i := range n {
		name := fmt.Sprintf("n%02d", i)
		nodes[name] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			of.join(ctx)
			task, _ := taskrun.TaskFrom(ctx)
			return writes("log", []string{name + string(task.RunContext())}), nil
		}}
		order, edges = append(order, name), append(edges, to(pregel.Start, name))
	}
	return graph("crowd", nodes, order, edges...)
}

// TestSuperstepsOfBoundedWidth: no more tasks than allowed are under way, and all of them run, with the run's context.
func TestSuperstepsOfBoundedWidth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	of := &crowd{}
	of.want.Store(2)
	r.work(crowdGraph(9, of))
	thread := testserver.Queue(t)
	result := r.finished(r.start(thread, protocol.GraphInput{Graph: "crowd", Input: input(`{}`), MaxConcurrency: 2, Context: pregel.Value(`777`)}))
	if of.most.Load() != 2 {
		t.Errorf("%d tasks ran at once, want 2", of.most.Load())
	}
	log := string(result.Output["log"])
	for i := range 9 {
		if !strings.Contains(log, fmt.Sprintf(`"n%02d777"`, i)) {
			t.Errorf("node %d is missing, or its context: %s", i, log)
		}
	}
	of.want.Store(3)
	wide := r.finished(r.start(thread, protocol.GraphInput{Graph: "crowd", Input: input(`{}`)}))
	if of.most.Load() < 3 || strings.Contains(string(wide.Output["log"]), "777") {
		t.Errorf("without a bound %d tasks ran at once and wrote %s", of.most.Load(), wide.Output["log"])
	}
}

// hangingGraph has a node that hangs until it is cancelled, the first time, beside one that finishes.
func hangingGraph(runs *atomic.Int32) *graphadapter.Graph {
	hangs := graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		if runs.Add(1) == 1 {
			<-ctx.Done()
			return pregel.Command{}, context.Cause(ctx)
		}
		return writes("log", []string{"hangs"}), nil
	}}
	return graph("hanging", map[string]graphadapter.Node{"before": says("before"), "hangs": hangs, "quick": says("quick"), "end": says("end")},
		[]string{"before", "hangs", "quick", "end"}, to(pregel.Start, "before"), to("before", "hangs"), to("before", "quick"), to("hangs", "end"))
}

// TestSuperstepsOutOfTime fail the run; what finished is kept, and the thread goes on.
func TestSuperstepsOutOfTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var runs atomic.Int32
	r.work(hangingGraph(&runs))
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "hanging", Input: input(`{}`), StepTimeout: steady.Milliseconds()})
	err := run.Get(r.ctx, nil)
	left := closingOf(t, err)
	if !strings.Contains(err.Error(), `superstep 2 of graph "hanging" ran longer than `+steady.String()) || left.Step != 1 {
		t.Fatalf("it ended at step %d with %v", left.Step, err)
	}
	if left.Failure == nil || left.Failure.Type != "StepTimeout" {
		t.Errorf("the failure is %+v", left.Failure)
	}
	in := next("hanging", left)
	in.Suspect, in.StepTimeout = true, patience.Milliseconds()
	log := string(r.finished(r.start(thread, in)).Output["log"])
	if log != `["before","hangs","quick","end"]` {
		t.Errorf("the next run ended with %s", log)
	}
	if strings.Contains(asJSON(t, r.history(thread)), "hanging.quick") {
		t.Error("the finished task ran again")
	}
}

// TestSuperstepsInTime: each has the whole time, and a run that waits is not timed.
func TestSuperstepsInTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(approvalGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "approval", Input: input(`{}`), StepTimeout: patience.Milliseconds()})
	r.asks(thread, 3)
	r.settled(thread)
	started, ended := 0, 0
	for _, e := range r.history(thread).Events {
		switch e.EventType {
		case enumspb.EVENT_TYPE_TIMER_STARTED:
			started++
		case enumspb.EVENT_TYPE_TIMER_CANCELED:
			ended++
		}
	}
	if started != 1 || ended != 1 {
		t.Errorf("while it waits %d timers were started and %d stopped, want one of each", started, ended)
	}
	r.answerAll(thread, run.GetRunID())
	r.finished(run)
}

// TestASuperstepOutOfTimeIsNoFailureOfItsNodes: their error handlers do not run, neither then nor when the thread goes
// on.
func TestASuperstepOutOfTimeIsNoFailureOfItsNodes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var runs atomic.Int32
	g := hangingGraph(&runs)
	g.Nodes["helper"] = graphadapter.Node{Handle: func(_ context.Context, _ graphadapter.Input, failure *pregel.NodeError) (pregel.Command, error) {
		return writes("log", []string{"helper of " + failure.Type}), nil
	}}
	g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: "helper", Handler: true})
	g.Spec.Nodes[1].ErrorHandler = "helper"
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "hanging", Input: input(`{}`), StepTimeout: steady.Milliseconds()})
	left := closingOf(t, run.Get(r.ctx, nil))
	if left.Failure == nil || left.Failure.Type != "StepTimeout" {
		t.Errorf("the failure is %+v", left.Failure)
	}
	if log := string(r.finished(r.start(thread, next("hanging", left))).Output["log"]); log != `["before","hangs","quick","end"]` {
		t.Errorf("the next run ended with %s", log)
	}
}
