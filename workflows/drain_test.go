package workflows_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestDrainStopsBeforeTheNextSuperstep: the superstep under way ends and is kept, and the run goes on when it is told.
func TestDrainStopsBeforeTheNextSuperstep(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"invoke", "bare resume"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			began, release := make(chan struct{}), make(chan struct{})
			g := chainGraph()
			g.Nodes["a"] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
				close(began)
				select {
				case <-release:
				case <-ctx.Done():
				}
				return writes("log", []string{"a"}), context.Cause(ctx)
			}}
			r.work(g)
			thread := testserver.Queue(t)
			run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: input(`{}`)})
			<-began
			if err := r.call(thread, protocol.UpdateDrain, "d", protocol.DrainRequest{ID: "d", Reason: "a deploy"}, nil); err != nil {
				t.Fatal(err)
			}
			close(release)
			s := r.stopped(thread)
			if s.Drained != "a deploy" || strings.Join(s.Snapshot.Next, " ") != "b" || string(s.Snapshot.Values["log"]) != `["a"]` {
				t.Errorf("drained, it is %+v", s)
			}
			// A run that has stopped is told nothing new: it goes on all the same.
			if err := r.call(thread, protocol.UpdateDrain, "d2", protocol.DrainRequest{ID: "d2", Reason: "again"}, nil); err != nil {
				t.Fatal(err)
			}
			var err error
			if how == "invoke" {
				err = r.invoke(thread, protocol.InvokeRequest{ID: "on"})
			} else {
				_, err = r.update(thread, protocol.ResumeRequest{ID: "on"})
			}
			if err != nil {
				t.Fatal(err)
			}
			if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
				t.Errorf("it ended with %s", log)
			}
			if s, err := r.state(thread); err != nil || s.Drained != "" {
				t.Errorf("finished, it is said to be drained: %q, %v", s.Drained, err)
			}
		})
	}
}

// TestDrainByANode, and in the last superstep, which ends the run as ever.
func TestDrainByANode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var times atomic.Int32
	drains := func(name string) graphadapter.Node {
		return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			task, _ := taskrun.TaskFrom(ctx)
			task.Drain(name + " says so")
			times.Add(1)
			return writes("log", []string{name}), nil
		}}
	}
	g := chainGraph()
	g.Nodes["b"], g.Nodes["c"] = drains("b"), drains("c")
	r.work(g)
	thread := testserver.Queue(t)
	memory := taskrun.NewMemory().Thread(g, thread)
	run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: input(`{}`)})
	if s := r.stopped(thread); s.Drained != "b says so" || strings.Join(s.Snapshot.Next, " ") != "c" {
		t.Errorf("drained, it is %+v", s)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` || times.Load() != 2 {
		t.Errorf("it ended with %s, and %d drains", log, times.Load())
	}
	for _, in := range []protocol.Input{input(`{}`), {}} {
		memorized(t, memory, in, graphadapter.RunOptions{})
	}
	r.samePast(thread, g, memory)
}

// TestDrainInASubgraph holds its parent too; nothing that finished runs again.
func TestDrainInASubgraph(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var times atomic.Int32
	g := nestedGraph()
	g.Subgraphs["inner"].Nodes["first"] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		task.Drain("inside")
		times.Add(1)
		return writes("log", []string{"first"}), nil
	}}
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "nested", Input: input(`{}`)})
	if s := r.stopped(thread); s.Drained != "inside" || strings.Join(s.Snapshot.Next, " ") != "sub" {
		t.Errorf("drained, it is %+v", s)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	r.asks(thread, 1)
	r.answerAll(thread, run.GetRunID())
	if log := string(r.finished(run).Output["log"]); log != `["before","first","asker","\"yes to inside\"","after"]` || times.Load() != 1 {
		t.Errorf("it ended with %s after %d runs of the inner node", log, times.Load())
	}
}

// asksOnce is a node that asks, and one behind it.
func asksOnce() *graphadapter.Graph {
	return graph("asks", map[string]graphadapter.Node{"one": asking("one", "first"), "end": says("end")}, []string{"one", "end"},
		to(pregel.Start, "one"), to("one", "end"))
}

// drainedWhilePaused waits for the question of asksOnce, pauses the run, answers and drains it.
func (r *rig) drainedWhilePaused(thread string) {
	r.t.Helper()
	s := r.asks(thread, 1)
	_, err := r.pausing(thread, protocol.PauseRequest{ID: "p"})
	if err == nil {
		_, err = r.update(thread, answer("1", s.Questions[0], `"yes"`))
	}
	if err == nil {
		err = r.call(thread, protocol.UpdateDrain, "d", protocol.DrainRequest{ID: "d", Reason: "a deploy"}, nil)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestADrainOfAPausedRunThatWasAnswered: it counts when the run goes on with the answers, also as another execution.
func TestADrainOfAPausedRunThatWasAnswered(t *testing.T) {
	for mode, in := range allModes() {
		t.Run("paused"+mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(asksOnce())
			thread := testserver.Queue(t)
			in.Graph, in.Input, in.ContinueAt = "asks", input(`{}`), always
			run := r.start(thread, in)
			r.drainedWhilePaused(thread)
			r.continued(thread, run.GetRunID())
			r.paused(thread)
			r.unpause(thread)
			if s := r.stopped(thread); s.Drained != "a deploy" || strings.Join(s.Snapshot.Next, " ") != "end" {
				t.Errorf("drained, it is %+v", s)
			}
			if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
				t.Fatal(err)
			}
			r.logIs(r.client.GetWorkflow(r.ctx, thread, ""), `["one","\"yes\"","end"]`)
		})
	}
}
