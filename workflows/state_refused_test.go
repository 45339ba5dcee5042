package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// branchingGraph stops before its router, whose branch is as told.
func branchingGraph(branch graphadapter.BranchFunc) *graphadapter.Graph {
	router := says("router")
	router.Branches = []graphadapter.BranchFunc{branch}
	g := graph("branching", map[string]graphadapter.Node{"first": says("first"), "router": router, "left": says("left"), "right": says("right")},
		[]string{"first", "router", "left", "right"}, to(pregel.Start, "first"), to("first", "router"))
	g.Spec.Branches = []pregel.Branch{{From: "router", Targets: []string{"left", "right"}}}
	g.Spec.InterruptBefore = []string{"router"}
	return g
}

func (r *rig) stopped(thread string) protocol.State {
	r.t.Helper()
	return r.until(thread, "the stop", func(s protocol.State) bool { return s.Status == protocol.StatusStopped })
}

// TestStateUpdateThatCannotBeApplied: a branch that fails leaves everything as it was, earlier checkpoints of the same
// request included; the next update counts.
func TestStateUpdateThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	fails.Store(true)
	r := newRig(t)
	g := branchingGraph(func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		if fails.Load() {
			return nil, errors.New("no way on")
		}
		if !strings.Contains(string(s["log"].Value()), "two") {
			return nil, fmt.Errorf("the branch sees %s", s["log"].Value())
		}
		return []pregel.Target{{Node: "right"}}, nil
	})
	r.work(g)
	thread := testserver.Queue(t)
	memory := taskrun.NewMemory().Thread(g, thread)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	run := r.start(thread, protocol.GraphInput{Graph: "branching", Input: input(`{}`)})
	before := r.stopped(thread)
	req := protocol.UpdateStateRequest{ID: "u1", Edits: [][]graphadapter.StateUpdate{{as("first", "one")}, {as("router", "two")}}}
	if _, err := r.updateState(thread, req); errorKind(err) != protocol.ErrTypeBadUpdate || !strings.Contains(err.Error(), "no way on") {
		t.Fatalf("the update that fails is answered with %v", err)
	}
	if now := r.stopped(thread); asJSON(t, now.Snapshot) != asJSON(t, before.Snapshot) || len(r.lines(thread)) != 3 {
		t.Errorf("it left behind %s, was %s", asJSON(t, now.Snapshot), asJSON(t, before.Snapshot))
	}
	fails.Store(false)
	req.ID = "u2"
	reply, err := r.updateState(thread, req)
	if err != nil || strings.Join(reply.Next, " ") != "right" {
		t.Fatalf("the reply is %+v, %v", reply, err)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["first","one","two","right"]` {
		t.Errorf("it ended with %s", log)
	}
	for _, u := range []graphadapter.StateUpdate{as("first", "one"), as("router", "two")} {
		if _, err := memory.UpdateState(r.ctx, "", u); err != nil {
			t.Fatal(err)
		}
	}
	memorized(t, memory, protocol.Input{}, graphadapter.RunOptions{})
	r.samePast(thread, g, memory)
}

// TestRefusedStateCalls: each is told why, and leaves no trace in the run's history.
func TestRefusedStateCalls(t *testing.T) {
	t.Parallel()
	r, thread, s := asked(t)
	r.settled(thread)
	events := len(r.history(thread).Events)
	large := strings.Repeat("x", 1<<20)
	q := questionOf(t, s, "one")
	many := make([]graphadapter.StateUpdate, 1001)
	for i := range many {
		many[i] = as("one")
	}
	updates := []struct {
		name, reason string
		req          protocol.UpdateStateRequest
	}{
		{"no such node", `no node "nobody"`, one("1", as("nobody", "x"))},
		{"nothing", "no update", protocol.UpdateStateRequest{ID: "2"}},
		{"an empty checkpoint", "at least one", protocol.UpdateStateRequest{ID: "3", Edits: [][]graphadapter.StateUpdate{{}}}},
		{"too large", "at most 1048576 bytes", one("4", as("one", large))},
		{"too many", "at most 1000 updates", protocol.UpdateStateRequest{ID: "5", Edits: [][]graphadapter.StateUpdate{many}}},
		{"a bad state", "stored thread state", protocol.UpdateStateRequest{ID: "6", State: pregel.Value(`[]`), Edits: one("", as("one")).Edits}},
		{"no such subgraph", "no task of", protocol.UpdateStateRequest{ID: "7", Within: []string{"sub"}, Edits: one("", as("one")).Edits}},
		{"a reducer that fails", "append/v1", one("8", graphadapter.StateUpdate{AsNode: "one", Values: writes("log", 1).Update})},
	}
	for _, c := range updates {
		if _, err := r.updateState(thread, c.req); errorKind(err) != protocol.ErrTypeBadUpdate || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %s %v, want %q", c.name, errorKind(err), err, c.reason)
		}
	}
	invocations := []struct {
		name, kind, reason string
		req                protocol.InvokeRequest
	}{
		{"not an object", protocol.ErrTypeBadUpdate, "must be a JSON object", protocol.InvokeRequest{ID: "a", Input: input(`[]`)}},
		{"a reducer that fails", protocol.ErrTypeBadUpdate, "append/v1", protocol.InvokeRequest{ID: "b", Input: input(`{"log":1}`)}},
		{"a bad state", protocol.ErrTypeBadUpdate, "stored thread state", protocol.InvokeRequest{ID: "c", State: pregel.Value(`7`)}},
		{"too large", protocol.ErrTypeBadUpdate, "at most 1048576 bytes", protocol.InvokeRequest{ID: "d", Input: input(`{"log":["` + large + `"]}`)}},
		{"an ambiguous answer", protocol.ErrTypeBadUpdate, "answer by question id",
			protocol.InvokeRequest{ID: "e", Input: protocol.Input{Resume: &pregel.Resume{Scalar: pregel.Value(`"yes"`)}}}},
		{"an answer of another type", protocol.ErrTypeBadAnswer, "does not fit",
			protocol.InvokeRequest{ID: "f", Input: protocol.Input{Resume: &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`7`)}}}}},
		{"a large answer", protocol.ErrTypeBadAnswer, "at most",
			protocol.InvokeRequest{ID: "g", Input: protocol.Input{Resume: &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`"` + large[:300<<10] + `"`)}}}}},
	}
	for _, c := range invocations {
		if err := r.invoke(thread, c.req); errorKind(err) != c.kind || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %s %v, want %s: %q", c.name, errorKind(err), err, c.kind, c.reason)
		}
	}
	for _, req := range []protocol.DrainRequest{{ID: "x"}, {ID: "y", Reason: large}} {
		if err := r.call(thread, protocol.UpdateDrain, req.ID, req, nil); errorKind(err) != protocol.ErrTypeBadUpdate {
			t.Errorf("a drain with a reason of %d bytes is answered with %v", len(req.Reason), err)
		}
	}
	if now := r.asks(thread, 3); len(now.Answered) != 0 {
		t.Errorf("refused calls left answers behind: %+v", now.Answered)
	}
	r.settled(thread)
	if got := len(r.history(thread).Events); got != events {
		t.Errorf("refused calls left %d events behind", got-events)
	}
}

// TestARunUnderWayTakesNoUpdate: and says what to do.
func TestARunUnderWayTakesNoUpdate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "slow", Input: input(`{}`)})
	s := r.until(thread, "the question", func(s protocol.State) bool { return len(s.Questions) == 1 })
	if _, err := r.updateState(thread, one("u", as("slow"))); errorKind(err) != protocol.ErrTypeBusy {
		t.Errorf("the run under way answered %v", err)
	}
	close(release)
	if _, err := r.update(thread, answer("u2", s.Questions[0], `"yes"`)); err != nil {
		t.Fatal(err)
	}
	r.finished(run)
}
