package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows"
)

// waits starts a run of the approval graph, here and in memory, and waits for its questions.
func waits(t *testing.T) (r *rig, thread string, memory *graphadapter.Thread, s workflows.State) {
	t.Helper()
	r, thread, s = asked(t)
	memory = graphadapter.NewMemory().Thread(approvalGraph(), thread)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	return r, thread, memory, s
}

// TestStateUpdatedWhileItWaits: its questions are gone, it stands still, and goes on as after the node of the update.
func TestStateUpdatedWhileItWaits(t *testing.T) {
	t.Parallel()
	r, thread, memory, s := waits(t)
	reply, err := r.updateState(thread, one("u1", as("one", "from outside")))
	if err != nil {
		t.Fatal(err)
	}
	want, err := memory.UpdateState(r.ctx, "", as("one", "from outside"))
	if err != nil {
		t.Fatal(err)
	}
	if reply.Checkpoint != want.Checkpoint || strings.Join(reply.Next, " ") != "end" {
		t.Errorf("the reply is %+v, in memory the checkpoint is %s", reply, want.Checkpoint)
	}
	now := r.until(thread, "the rest", func(s workflows.State) bool { return s.Status == workflows.StatusStopped })
	if len(now.Questions) != 0 || string(now.Snapshot.Values["log"]) != `["from outside"]` {
		t.Errorf("it has the values %s and asks %+v", now.Snapshot.Values, now.Questions)
	}
	if _, err := r.update(thread, answer("late", s.Questions[0], `"yes"`)); errorKind(err) != workflows.ErrTypeUnknownQuestion {
		t.Errorf("a question that is gone took an answer: %v", err)
	}
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	r.until(thread, "its end", func(s workflows.State) bool { return s.Status == workflows.StatusFinished })
	memorized(t, memory, pregel.Input{}, graphadapter.RunOptions{})
	r.sameLines(thread, memory)
	r.samePast(thread, approvalGraph(), memory)
}

// TestStateUpdatedToItsEnd: an update that leaves nothing to run finishes the run, and whoever updated is told.
func TestStateUpdatedToItsEnd(t *testing.T) {
	t.Parallel()
	r, thread, memory, _ := waits(t)
	reply, err := r.updateState(thread, one("u1", as("end", "that is all")))
	if err != nil || len(reply.Next) != 0 {
		t.Fatalf("the reply is %+v, %v", reply, err)
	}
	var result workflows.GraphResult
	if err := r.client.GetWorkflow(r.ctx, thread, "").Get(r.ctx, &result); err != nil {
		t.Fatal(err)
	}
	if string(result.Output["log"]) != `["that is all"]` {
		t.Errorf("it ended with %s", result.Output)
	}
	if _, err := memory.UpdateState(r.ctx, "", as("end", "that is all")); err != nil {
		t.Fatal(err)
	}
	r.sameLines(thread, memory)
	r.samePast(thread, approvalGraph(), memory)
}

// TestStateUpdatedByAnotherWorker: what was updated before the worker went is there for the next.
func TestStateUpdatedByAnotherWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop := r.work(approvalGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, workflows.GraphInput{Graph: "approval", Input: input(`{}`)})
	r.asks(thread, 3)
	if _, err := r.updateState(thread, one("u1", as("one", "first"))); err != nil {
		t.Fatal(err)
	}
	stop()
	r.work(approvalGraph())
	if _, err := r.updateState(thread, one("u2", as("two", "second"))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.updateState(thread, one("u1", as("one", "first"))); err != nil {
		t.Errorf("the first update, sent again, is answered with %v", err)
	}
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["first","second","end"]` {
		t.Errorf("it ended with %s", log)
	}
}

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

func (r *rig) stopped(thread string) workflows.State {
	r.t.Helper()
	return r.until(thread, "the stop", func(s workflows.State) bool { return s.Status == workflows.StatusStopped })
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
		if !strings.Contains(string(s["log"]), "two") {
			return nil, fmt.Errorf("the branch sees %s", s["log"])
		}
		return []pregel.Target{{Node: "right"}}, nil
	})
	r.work(g)
	thread := testserver.Queue(t)
	memory := graphadapter.NewMemory().Thread(g, thread)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	run := r.start(thread, workflows.GraphInput{Graph: "branching", Input: input(`{}`)})
	before := r.stopped(thread)
	req := workflows.UpdateStateRequest{ID: "u1", Edits: [][]graphadapter.StateUpdate{{as("first", "one")}, {as("router", "two")}}}
	if _, err := r.updateState(thread, req); errorKind(err) != workflows.ErrTypeBadUpdate || !strings.Contains(err.Error(), "no way on") {
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
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "on"}); err != nil {
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
	memorized(t, memory, pregel.Input{}, graphadapter.RunOptions{})
	r.samePast(thread, g, memory)
}

// TestStateUpdatedInASubgraph: whoever waits beside it goes on waiting.
func TestStateUpdatedInASubgraph(t *testing.T) {
	t.Parallel()
	g := nestedGraph()
	g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: "beside"})
	g.Spec.Edges = append(g.Spec.Edges, to("before", "beside"))
	g.Nodes["beside"] = asking("beside", "and you?")
	r := newRig(t)
	r.work(g)
	thread := testserver.Queue(t)
	memory := graphadapter.NewMemory().Thread(g, thread)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	run := r.start(thread, workflows.GraphInput{Graph: "nested", Input: input(`{}`)})
	r.asks(thread, 2)
	req := one("u", as("asker", "for the asker"))
	req.Within = []string{"sub"}
	if _, err := r.updateState(thread, req); err != nil {
		t.Fatal(err)
	}
	if _, err := memory.Update(r.ctx, "", req.Within, req.Edits); err != nil {
		t.Fatal(err)
	}
	now := r.asks(thread, 1)
	q := questionOf(t, now, "beside")
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "on", Input: pregel.Input{Resume: &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`"fine"`)}, By: "somebody"}}}); err != nil {
		t.Fatal(err)
	}
	memorized(t, memory, pregel.Input{Resume: &pregel.Resume{Answers: []pregel.Answer{{QuestionID: q.ID, Value: pregel.Value(`"fine"`), By: "somebody"}}}}, graphadapter.RunOptions{})
	result := r.finished(run)
	if log := string(result.Output["log"]); !strings.Contains(log, "for the asker") || len(result.Answered) != 1 || result.Answered[0].Question != q.ID {
		t.Errorf("it ended with %s, answers on record %+v", log, result.Answered)
	}
	r.samePast(thread, g, memory)
}

// TestStateUpdateOutlivesItsWorker: the worker goes between the update's acceptance and its completion.
func TestStateUpdateOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	began := make(chan struct{})
	g := branchingGraph(func(ctx context.Context, _ graphadapter.State) ([]pregel.Target, error) {
		if calls.Add(1) == 1 {
			close(began)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return []pregel.Target{{Node: "left"}}, nil
	})
	r := newRig(t)
	stop := r.workBriefly(g)
	thread := testserver.Queue(t)
	run := r.start(thread, workflows.GraphInput{Graph: "branching", Input: input(`{}`)})
	r.stopped(thread)
	req := one("u1", as("router", "by hand"))
	handle, err := r.client.UpdateWorkflow(r.ctx, client.UpdateWorkflowOptions{WorkflowID: thread, UpdateID: "u1",
		UpdateName: workflows.UpdateState, Args: []any{req}, WaitForStage: client.WorkflowUpdateStageAccepted})
	if err != nil {
		t.Fatal(err)
	}
	<-began
	// Meanwhile the thread is about to change: nobody else may use what it is now.
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "too early"}); errorKind(err) != workflows.ErrTypeBusy {
		t.Errorf("during the update an invocation is answered with %v", err)
	}
	stop()
	r.work(g)
	var reply workflows.UpdateStateReply
	if err := handle.Get(r.ctx, &reply); err != nil || strings.Join(reply.Next, " ") != "left" {
		t.Fatalf("the reply is %+v, %v", reply, err)
	}
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["first","by hand","left"]` {
		t.Errorf("it ended with %s", log)
	}
}

// TestManyUpdatesAtOnce: one at a time, none lost.
func TestManyUpdatesAtOnce(t *testing.T) {
	t.Parallel()
	r, thread, _, _ := waits(t)
	var all sync.WaitGroup
	errs := make(chan error, 10)
	for i := range 10 {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; ; n++ {
				_, err := r.updateState(thread, one(fmt.Sprintf("u%d-%d", i, n), as("one", fmt.Sprintf("w%d", i))))
				if errorKind(err) == workflows.ErrTypeBusy {
					continue
				}
				errs <- err
				return
			}
		}()
	}
	all.Wait()
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	s := r.stopped(thread)
	for i := range 10 {
		if strings.Count(string(s.Snapshot.Values["log"]), fmt.Sprintf(`"w%d"`, i)) != 1 {
			t.Errorf("update %d is lost or doubled: %s", i, s.Snapshot.Values["log"])
		}
	}
	ids := map[string]bool{}
	for _, l := range r.lines(thread) {
		ids[l.Checkpoint] = true
	}
	if len(ids) != 12 {
		t.Errorf("there are %d checkpoints, want 12", len(ids))
	}
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
		req          workflows.UpdateStateRequest
	}{
		{"no such node", `no node "nobody"`, one("1", as("nobody", "x"))},
		{"nothing", "no update", workflows.UpdateStateRequest{ID: "2"}},
		{"an empty checkpoint", "at least one", workflows.UpdateStateRequest{ID: "3", Edits: [][]graphadapter.StateUpdate{{}}}},
		{"too large", "at most 1048576 bytes", one("4", as("one", large))},
		{"too many", "at most 1000 updates", workflows.UpdateStateRequest{ID: "5", Edits: [][]graphadapter.StateUpdate{many}}},
		{"a bad state", "stored thread state", workflows.UpdateStateRequest{ID: "6", State: pregel.Value(`[]`), Edits: one("", as("one")).Edits}},
		{"no such subgraph", "no task of", workflows.UpdateStateRequest{ID: "7", Within: []string{"sub"}, Edits: one("", as("one")).Edits}},
		{"a reducer that fails", "append/v1", one("8", graphadapter.StateUpdate{AsNode: "one", Values: writes("log", 1).Update})},
	}
	for _, c := range updates {
		if _, err := r.updateState(thread, c.req); errorKind(err) != workflows.ErrTypeBadUpdate || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %s %v, want %q", c.name, errorKind(err), err, c.reason)
		}
	}
	invocations := []struct {
		name, kind, reason string
		req                workflows.InvokeRequest
	}{
		{"not an object", workflows.ErrTypeBadUpdate, "must be a JSON object", workflows.InvokeRequest{ID: "a", Input: input(`[]`)}},
		{"a reducer that fails", workflows.ErrTypeBadUpdate, "append/v1", workflows.InvokeRequest{ID: "b", Input: input(`{"log":1}`)}},
		{"a bad state", workflows.ErrTypeBadUpdate, "stored thread state", workflows.InvokeRequest{ID: "c", State: pregel.Value(`7`)}},
		{"too large", workflows.ErrTypeBadUpdate, "at most 1048576 bytes", workflows.InvokeRequest{ID: "d", Input: input(`{"log":["` + large + `"]}`)}},
		{"an ambiguous answer", workflows.ErrTypeBadUpdate, "answer by question id",
			workflows.InvokeRequest{ID: "e", Input: pregel.Input{Resume: &pregel.Resume{Scalar: pregel.Value(`"yes"`)}}}},
		{"an answer of another type", workflows.ErrTypeBadAnswer, "does not fit",
			workflows.InvokeRequest{ID: "f", Input: pregel.Input{Resume: &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`7`)}}}}},
		{"a large answer", workflows.ErrTypeBadAnswer, "at most",
			workflows.InvokeRequest{ID: "g", Input: pregel.Input{Resume: &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`"` + large[:300<<10] + `"`)}}}}},
	}
	for _, c := range invocations {
		if err := r.invoke(thread, c.req); errorKind(err) != c.kind || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %s %v, want %s: %q", c.name, errorKind(err), err, c.kind, c.reason)
		}
	}
	for _, req := range []workflows.DrainRequest{{ID: "x"}, {ID: "y", Reason: large}} {
		if err := r.call(thread, workflows.UpdateDrain, req.ID, req, nil); errorKind(err) != workflows.ErrTypeBadUpdate {
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
	run := r.start(thread, workflows.GraphInput{Graph: "slow", Input: input(`{}`)})
	s := r.until(thread, "the question", func(s workflows.State) bool { return len(s.Questions) == 1 })
	if _, err := r.updateState(thread, one("u", as("slow"))); errorKind(err) != workflows.ErrTypeBusy {
		t.Errorf("the run under way answered %v", err)
	}
	close(release)
	if _, err := r.update(thread, answer("u2", s.Questions[0], `"yes"`)); err != nil {
		t.Fatal(err)
	}
	r.finished(run)
}

// TestRunsThatOnlyUpdate a thread whose last run has ended.
func TestRunsThatOnlyUpdate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	memory := graphadapter.NewMemory().Thread(chainGraph(), thread)
	last := r.finished(r.start(thread, workflows.GraphInput{Graph: "chain", Input: input(`{}`)}))
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	edit := func(u graphadapter.StateUpdate) workflows.GraphInput {
		in := next("chain", last.Closing)
		in.Edits = [][]graphadapter.StateUpdate{{u}}
		if _, err := memory.UpdateState(r.ctx, "", u); err != nil && u.AsNode != "nobody" {
			t.Fatal(err)
		}
		return in
	}
	err := r.start(thread, edit(as("nobody", "x"))).Get(r.ctx, nil)
	left := closingOf(t, err)
	if !strings.Contains(err.Error(), `no node "nobody"`) || asJSON(t, left.State) != asJSON(t, last.State) {
		t.Errorf("an update that cannot be applied: %v, state %s", err, left.State)
	}
	last = r.finished(r.start(thread, edit(as("c", "the last"))))
	if got := string(last.Output["log"]); got != `["a","b","c","the last"]` {
		t.Errorf("after an update that leads nowhere: %s", got)
	}
	run := r.start(thread, edit(as("a", "on")))
	if s := r.stopped(thread); strings.Join(s.Snapshot.Next, " ") != "b" {
		t.Errorf("next is %v", s.Snapshot.Next)
	}
	r.sameLines(thread, memory)
	if _, err := r.update(thread, workflows.ResumeRequest{ID: "pass"}); err != nil {
		t.Fatal(err)
	}
	memorized(t, memory, pregel.Input{}, graphadapter.RunOptions{})
	r.finished(run)
	r.sameLines(thread, memory)
}

// TestForkWithinARun: a run that rests goes back to an earlier checkpoint; what comes is on a branch of its own.
func TestForkWithinARun(t *testing.T) {
	t.Parallel()
	r, thread, memory, s := waits(t)
	run := r.client.GetWorkflow(r.ctx, thread, "")
	q := questionOf(t, s, "one")
	if _, err := r.update(thread, answer("u", q, `"yes"`)); err != nil {
		t.Fatal(err)
	}
	r.asks(thread, 2)
	memorized(t, memory, pregel.Input{Resume: &pregel.Resume{Answers: []pregel.Answer{{QuestionID: q.ID, Value: pregel.Value(`"yes"`), By: "somebody"}}}}, graphadapter.RunOptions{})
	state, checkpoint := r.at(thread, run.GetRunID(), approvalGraph(), 0)
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "fork", State: state}); err != nil {
		t.Fatal(err)
	}
	now := r.until(thread, "the questions of the branch", func(now workflows.State) bool {
		return now.Status == workflows.StatusWaiting && len(now.Questions) == 3 && now.Questions[0].ID != s.Questions[0].ID
	})
	forked := memorized(t, memory, pregel.Input{}, graphadapter.RunOptions{Checkpoint: checkpoint})
	for i, q := range forked.Questions {
		if now.Questions[i].ID != q.ID {
			t.Errorf("question %d is %s, in memory %s", i, now.Questions[i].ID, q.ID)
		}
	}
	r.sameLines(thread, memory)
	r.samePast(thread, approvalGraph(), memory)
	r.answerAll(thread, run.GetRunID())
	if log := string(r.finished(run).Output["log"]); strings.Count(log, "yes to") != 4 || strings.Contains(log, `\"yes\"`) {
		t.Errorf("the branch ended with %s", log)
	}
}

// TestUpdateOfAnEarlierState is a branch as well.
func TestUpdateOfAnEarlierState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	memory := graphadapter.NewMemory().Thread(chainGraph(), thread)
	opts := pregel.Options{InterruptBefore: []string{"c"}}
	run := r.start(thread, workflows.GraphInput{Graph: "chain", Input: input(`{}`), Options: opts})
	r.stopped(thread)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{Options: opts})
	state, checkpoint := r.at(thread, run.GetRunID(), chainGraph(), 1)
	for i := range 2 { // the same twice: two branches
		req := one(fmt.Sprint("u", i), as("a", "branch"))
		req.State = state
		reply, err := r.updateState(thread, req)
		if err != nil {
			t.Fatal(err)
		}
		want, err := memory.UpdateState(r.ctx, checkpoint, as("a", "branch"))
		if err != nil {
			t.Fatal(err)
		}
		if reply.Checkpoint != want.Checkpoint {
			t.Errorf("the checkpoint is %s, in memory %s", reply.Checkpoint, want.Checkpoint)
		}
	}
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "on", Settings: &workflows.Settings{}}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["a","branch","b","c"]` {
		t.Errorf("it ended with %s", log)
	}
	memorized(t, memory, pregel.Input{}, graphadapter.RunOptions{})
	r.sameLines(thread, memory)
	r.samePast(thread, chainGraph(), memory)
}

// TestACommandAsInput answers, writes and routes at once; what it answers is on record.
func TestACommandAsInput(t *testing.T) {
	t.Parallel()
	r, thread, memory, s := waits(t)
	q := questionOf(t, s, "one")
	in := pregel.Input{
		Resume:  &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`"yes"`), "q-nobody": pregel.Value(`"x"`)}, By: "somebody", AskAgain: true},
		Control: &pregel.Command{Update: writes("log", []string{"by command"}).Update, Goto: []pregel.Target{{Node: "end"}}},
	}
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "c", Input: in}); err != nil {
		t.Fatal(err)
	}
	now := r.until(thread, "two questions", func(s workflows.State) bool { return s.Status == workflows.StatusWaiting && len(s.Questions) == 2 })
	if len(now.Answered) != 1 || now.Answered[0].Question != q.ID || now.Answered[0].By != "somebody" || now.Answered[0].RequestID != "c" {
		t.Errorf("on record is %+v", now.Answered)
	}
	if _, err := r.update(thread, answer("again", q, `"no"`)); errorKind(err) != workflows.ErrTypeAnswered {
		t.Errorf("a second answer is answered with %v", err)
	}
	memorized(t, memory, in, graphadapter.RunOptions{})
	r.sameLines(thread, memory)
	r.samePast(thread, approvalGraph(), memory)
	r.answerAll(thread, "")
	if log := string(r.finished(r.client.GetWorkflow(r.ctx, thread, "")).Output["log"]); !strings.HasPrefix(log, `["by command"`) {
		t.Errorf("it ended with %s", log)
	}
}

// TestStateCallsWithoutCache runs those of above again in a process that keeps no workflow between tasks.
func TestStateCallsWithoutCache(t *testing.T) {
	if os.Getenv(uncachedEnv) != "" {
		t.Skip("this is that process")
	}
	uncached(t, "^(TestState|TestFork|TestUpdateOf|TestACommand|TestRunsThatOnly|TestExit|TestDrain|TestSupersteps|TestSeveral)")
}

// TestForkOfAThreadThatEnded: a new run starts from an earlier checkpoint of the last one, on a branch of its own.
func TestForkOfAThreadThatEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	memory := graphadapter.NewMemory().Thread(chainGraph(), thread)
	run := r.start(thread, workflows.GraphInput{Graph: "chain", Input: input(`{}`)})
	last := r.finished(run)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	in := next("chain", last.Closing)
	state, checkpoint := r.at(thread, run.GetRunID(), chainGraph(), 1)
	in.State, in.Replay = state, true
	if log := string(r.finished(r.start(thread, in)).Output["log"]); log != `["a","b","c"]` {
		t.Errorf("the branch ended with %s", log)
	}
	memorized(t, memory, pregel.Input{}, graphadapter.RunOptions{Checkpoint: checkpoint})
	r.sameLines(thread, memory)
}

// TestARunThatStartsWithAnswers puts them on record.
func TestARunThatStartsWithAnswers(t *testing.T) {
	t.Parallel()
	r, thread, s := asked(t)
	if err := r.client.CancelWorkflow(r.ctx, thread, ""); err != nil {
		t.Fatal(err)
	}
	in := next("approval", closingOf(t, r.client.GetWorkflow(r.ctx, thread, "").Get(r.ctx, nil)))
	q := questionOf(t, s, "one")
	in.Input.Resume = &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`"yes"`)}, By: "somebody"}
	r.start(thread, in)
	now := r.asks(thread, 2)
	if len(now.Answered) != 1 || now.Answered[0].Question != q.ID || now.Answered[0].By != "somebody" || now.Answered[0].Node != "one" {
		t.Errorf("on record is %+v", now.Answered)
	}
	if _, err := r.update(thread, answer("again", q, `"no"`)); errorKind(err) != workflows.ErrTypeAnswered {
		t.Errorf("a second answer is answered with %v", err)
	}
}

// TestManyForksAtOnce: the run takes one at a time, and each is a branch of its own.
func TestManyForksAtOnce(t *testing.T) {
	t.Parallel()
	r, thread, _, _ := waits(t)
	run := r.client.GetWorkflow(r.ctx, thread, "").GetRunID()
	state, checkpoint := r.at(thread, run, approvalGraph(), 0)
	var all sync.WaitGroup
	for i := range 5 {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; ; n++ {
				err := r.invoke(thread, workflows.InvokeRequest{ID: fmt.Sprintf("f%d-%d", i, n), State: state})
				if errorKind(err) != workflows.ErrTypeBusy {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		}()
	}
	all.Wait()
	r.asks(thread, 3)
	ids, forks := map[string]bool{}, 0
	for _, l := range r.lines(thread) {
		ids[l.Checkpoint] = true
		if l.Source == pregel.SourceFork && l.Parent == checkpoint {
			forks++
		}
	}
	if len(ids) != 7 || forks != 5 {
		t.Errorf("there are %d checkpoints and %d forks, want 7 and 5: %+v", len(ids), forks, r.lines(thread))
	}
}

// TestSeveralUpdatesOfOneCheckpoint, of a node with a branch too, and twice the same; then new input, and a copy.
func TestSeveralUpdatesOfOneCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(branchingGraph(func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		if strings.Contains(string(s["log"]), "go left") {
			return []pregel.Target{{Node: "left"}}, nil
		}
		return []pregel.Target{{Node: "right"}}, nil
	}))
	thread := testserver.Queue(t)
	run := r.start(thread, workflows.GraphInput{Graph: "branching", Input: input(`{}`)})
	before := r.stopped(thread)
	reply, err := r.updateState(thread, workflows.UpdateStateRequest{ID: "u", Edits: [][]graphadapter.StateUpdate{
		{as("router", "go left"), as("router", "on")}}})
	if err != nil || strings.Join(reply.Next, " ") != "left right" {
		t.Fatalf("the reply is %+v, %v", reply, err)
	}
	lines := r.lines(thread)
	if last := lines[len(lines)-1]; last.Checkpoint != reply.Checkpoint || last.Parent != before.Snapshot.Checkpoint || last.Source != pregel.SourceUpdate {
		t.Errorf("the update's checkpoint is %+v", last)
	}
	if _, err := r.updateState(thread, one("copy", graphadapter.StateUpdate{AsNode: pregel.AsCopy})); err != nil {
		t.Fatal(err)
	}
	if copied := r.lines(thread)[len(lines)]; copied.Source != pregel.SourceFork || copied.Parent != before.Snapshot.Checkpoint {
		t.Errorf("the copy is %+v", copied)
	}
	if _, err := r.updateState(thread, workflows.UpdateStateRequest{ID: "two", Edits: [][]graphadapter.StateUpdate{
		{as("router"), {AsNode: pregel.AsCopy}}}}); errorKind(err) != workflows.ErrTypeBadUpdate {
		t.Errorf("a copy beside another update is answered with %v", err)
	}
	if err := r.invoke(thread, workflows.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["first","go left","on","left","right"]` {
		t.Errorf("it ended with %s", log)
	}
}
