package workflows_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// waits starts a run of the approval graph, here and in memory, and waits for its questions.
func waits(t *testing.T) (r *rig, thread string, memory *taskrun.Thread, s protocol.State) {
	t.Helper()
	r, thread, s = asked(t)
	memory = taskrun.NewMemory().Thread(approvalGraph(), thread)
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
	now := r.until(thread, "the rest", func(s protocol.State) bool { return s.Status == protocol.StatusStopped })
	if len(now.Questions) != 0 || string(now.Snapshot.Values["log"]) != `["from outside"]` {
		t.Errorf("it has the values %s and asks %+v", now.Snapshot.Values, now.Questions)
	}
	if _, err := r.update(thread, answer("late", s.Questions[0], `"yes"`)); errorKind(err) != protocol.ErrTypeUnknownQuestion {
		t.Errorf("a question that is gone took an answer: %v", err)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	r.until(thread, "its end", func(s protocol.State) bool { return s.Status == protocol.StatusFinished })
	memorized(t, memory, protocol.Input{}, graphadapter.RunOptions{})
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
	var result protocol.GraphResult
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
	run := r.start(thread, protocol.GraphInput{Graph: "approval", Input: input(`{}`)})
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
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	if log := string(r.finished(run).Output["log"]); log != `["first","second","end"]` {
		t.Errorf("it ended with %s", log)
	}
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
	memory := taskrun.NewMemory().Thread(g, thread)
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	run := r.start(thread, protocol.GraphInput{Graph: "nested", Input: input(`{}`)})
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
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on", Input: protocol.Input{Resume: &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`"fine"`)}, By: "somebody"}}}); err != nil {
		t.Fatal(err)
	}
	memorized(t, memory, protocol.Input{Resume: &pregel.Resume{Answers: []pregel.Answer{{QuestionID: q.ID, Value: pregel.Value(`"fine"`), By: "somebody"}}}}, graphadapter.RunOptions{})
	result := r.finished(run)
	if log := string(result.Output["log"]); !strings.Contains(log, "for the asker") || len(result.Life.Answered) != 1 || result.Life.Answered[0].Question != q.ID {
		t.Errorf("it ended with %s, answers on record %+v", log, result.Life.Answered)
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
	run := r.start(thread, protocol.GraphInput{Graph: "branching", Input: input(`{}`)})
	r.stopped(thread)
	req := one("u1", as("router", "by hand"))
	handle, err := r.client.UpdateWorkflow(r.ctx, client.UpdateWorkflowOptions{WorkflowID: thread, UpdateID: "u1",
		UpdateName: protocol.UpdateState, Args: []any{req}, WaitForStage: client.WorkflowUpdateStageAccepted})
	if err != nil {
		t.Fatal(err)
	}
	<-began
	// Meanwhile the thread is about to change: nobody else may use what it is now.
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "too early"}); errorKind(err) != protocol.ErrTypeBusy {
		t.Errorf("during the update an invocation is answered with %v", err)
	}
	stop()
	r.work(g)
	var reply protocol.UpdateStateReply
	if err := handle.Get(r.ctx, &reply); err != nil || strings.Join(reply.Next, " ") != "left" {
		t.Fatalf("the reply is %+v, %v", reply, err)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "on"}); err != nil {
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
				if errorKind(err) == protocol.ErrTypeBusy {
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

// TestRunsThatOnlyUpdate a thread whose last run has ended.
func TestRunsThatOnlyUpdate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	memory := taskrun.NewMemory().Thread(chainGraph(), thread)
	last := r.finished(r.start(thread, protocol.GraphInput{Graph: "chain", Input: input(`{}`)}))
	memorized(t, memory, input(`{}`), graphadapter.RunOptions{})
	edit := func(u graphadapter.StateUpdate) protocol.GraphInput {
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
	if _, err := r.update(thread, protocol.ResumeRequest{ID: "pass"}); err != nil {
		t.Fatal(err)
	}
	memorized(t, memory, protocol.Input{}, graphadapter.RunOptions{})
	r.finished(run)
	r.sameLines(thread, memory)
}

// TestACommandAsInput answers, writes and routes at once; what it answers is on record.
func TestACommandAsInput(t *testing.T) {
	t.Parallel()
	r, thread, memory, s := waits(t)
	q := questionOf(t, s, "one")
	in := protocol.Input{
		Resume:  &pregel.Resume{ByID: map[string]pregel.Value{q.ID: pregel.Value(`"yes"`), "q-nobody": pregel.Value(`"x"`)}, By: "somebody", AskAgain: true},
		Control: &pregel.Command{Update: writes("log", []string{"by command"}).Update, Goto: []pregel.Target{{Node: "end"}}},
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "c", Input: in}); err != nil {
		t.Fatal(err)
	}
	now := r.until(thread, "two questions", func(s protocol.State) bool { return s.Status == protocol.StatusWaiting && len(s.Questions) == 2 })
	if len(now.Answered) != 1 || now.Answered[0].Question != q.ID || now.Answered[0].By != "somebody" || now.Answered[0].RequestID != "c" {
		t.Errorf("on record is %+v", now.Answered)
	}
	if _, err := r.update(thread, answer("again", q, `"no"`)); errorKind(err) != protocol.ErrTypeAnswered {
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
	t.Parallel()
	if os.Getenv(uncachedEnv) != "" {
		t.Skip("this is that process")
	}
	uncached(t, "^(TestState|TestFork|TestUpdateOf|TestACommand|TestRunsThatOnly|TestExit|TestDrain|TestSupersteps|TestSeveral)")
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
	if _, err := r.update(thread, answer("again", q, `"no"`)); errorKind(err) != protocol.ErrTypeAnswered {
		t.Errorf("a second answer is answered with %v", err)
	}
}
