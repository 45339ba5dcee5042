package workflows_test

import (
	"context"
	"strings"
	"testing"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// slowGraph has a node that asks beside one that runs until release is closed.
func slowGraph() (g *graphadapter.Graph, release chan struct{}) {
	release = make(chan struct{})
	slow := graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		select {
		case <-release:
			return writes("log", []string{"slow"}), nil
		case <-ctx.Done():
			return pregel.Command{}, context.Cause(ctx)
		}
	}}
	return graph("slow", map[string]graphadapter.Node{"asker": asking("asker", "soon?"), "slow": slow},
		[]string{"asker", "slow"}, to(pregel.Start, "asker"), to(pregel.Start, "slow")), release
}

// pendingTask is how often a run's workflow task was tried without success.
func (r *rig) pendingTask(thread string) int32 {
	d, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
	if err != nil {
		return 0
	}
	return d.GetPendingWorkflowTask().GetAttempt()
}

// settled waits until a run has no workflow task under way: a query is answered from what the worker has computed, which
// may not be in the history yet.
func (r *rig) settled(thread string) {
	r.t.Helper()
	var task *workflowpb.PendingWorkflowTaskInfo
	await(r.t, "the end of the workflow task", func() bool {
		d, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
		task = d.GetPendingWorkflowTask()
		return err == nil && task == nil
	}, func() any { return task })
}

// TestAnUnknownGraphWaitsForItsWorker: the run does not fail; a worker that has the graph makes it go on.
func TestAnUnknownGraphWaitsForItsWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop := r.work(fanOutGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: protocol.Input{Value: pregel.Value(`{}`)}})
	await(t, "a failed workflow task", func() bool { return r.pendingTask(thread) > 1 }, func() any { return r.pendingTask(thread) })
	stop()
	r.work(chainGraph(), fanOutGraph())
	if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
		t.Errorf("the run ended with %s", log)
	}
}

// TestAnUnknownReducerWaitsForItsWorker is the same for a custom reducer that a deploy has lost.
func TestAnUnknownReducerWaitsForItsWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	without := reducingGraph(longer)
	without.Reducers = nil
	stop := r.work(without)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "reducing", Input: protocol.Input{Value: pregel.Value(`{}`)}})
	await(t, "a failed workflow task", func() bool { return r.pendingTask(thread) > 1 }, func() any { return r.pendingTask(thread) })
	stop()
	r.work(reducingGraph(longer))
	if best := string(r.finished(run).Output["best"]); best != `"much longer"` {
		t.Errorf("the run ended with %s", best)
	}
}

// TestNewInputForARunThatWaits: it abandons the questions. A run under way takes none.
func TestNewInputForARunThatWaits(t *testing.T) {
	t.Parallel()
	r, thread, s := asked(t)
	invoke := func(id, input string) error {
		handle, err := r.client.UpdateWorkflow(r.ctx, client.UpdateWorkflowOptions{
			WorkflowID: thread, UpdateID: id, UpdateName: protocol.UpdateInvoke, WaitForStage: client.WorkflowUpdateStageCompleted,
			Args: []any{protocol.InvokeRequest{ID: id, Input: protocol.Input{Value: pregel.Value(input)}}},
		})
		if err != nil {
			return err
		}
		return handle.Get(r.ctx, nil)
	}
	if err := invoke("again", `{"log":["again"]}`); err != nil {
		t.Fatal(err)
	}
	now := r.until(thread, "the new questions", func(now protocol.State) bool {
		return now.Status == protocol.StatusWaiting && len(now.Questions) == 3 && now.Questions[0].ID != s.Questions[0].ID
	})
	if log := string(now.Snapshot.Values["log"]); log != `["again"]` {
		t.Errorf("the new input is not in the state: %s", log)
	}
	if _, err := r.update(thread, answer("late", s.Questions[0], `"yes"`)); errorKind(err) != protocol.ErrTypeUnknownQuestion {
		t.Errorf("an abandoned question took an answer: %v", err)
	}
}

// TestARunUnderWayTakesNoInput: only one that waits does.
func TestARunUnderWayTakesNoInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "slow", Input: protocol.Input{Value: pregel.Value(`{}`)}})
	s := r.until(thread, "the question", func(s protocol.State) bool { return len(s.Questions) == 1 })
	handle, err := r.client.UpdateWorkflow(r.ctx, client.UpdateWorkflowOptions{
		WorkflowID: thread, UpdateName: protocol.UpdateInvoke, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{protocol.InvokeRequest{Input: protocol.Input{Value: pregel.Value(`{}`)}}},
	})
	if err == nil {
		err = handle.Get(r.ctx, nil)
	}
	if errorKind(err) != protocol.ErrTypeBusy {
		t.Errorf("the run under way answered %v", err)
	}
	close(release)
	if _, err := r.update(thread, answer("u", s.Questions[0], `"yes"`)); err != nil {
		t.Fatal(err)
	}
	r.finished(run)
}

// TestABareResumePassesABreakpoint, once each time.
func TestABareResumePassesABreakpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(chainGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "chain", Input: protocol.Input{Value: pregel.Value(`{}`)},
		Options: pregel.Options{InterruptBefore: []string{"b"}, InterruptAfter: []string{"c"}}})
	for i, next := range []string{"b", ""} {
		s := r.until(thread, "the breakpoint", func(s protocol.State) bool {
			return s.Status == protocol.StatusStopped && strings.Join(s.Snapshot.Next, " ") == next
		})
		if i == 0 {
			if _, err := r.update(thread, protocol.ResumeRequest{ID: "pass"}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if len(s.Refused) != 0 {
			t.Errorf("refused: %+v", s.Refused)
		}
		r.signal(thread, protocol.ResumeRequest{ID: "pass too"})
	}
	if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
		t.Errorf("the run ended with %s", log)
	}
}
