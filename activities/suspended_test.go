package activities_test

import (
	"context"
	"errors"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// operator changes the one pending activity of a run from outside.
type operator func(execution *commonpb.WorkflowExecution, activity string) error

func (r *rig) operate(run client.WorkflowRun, do operator) {
	r.t.Helper()
	d, err := r.client.DescribeWorkflowExecution(r.ctx, run.GetID(), run.GetRunID())
	if err != nil {
		r.t.Fatal(err)
	}
	execution := &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()}
	if err := do(execution, d.GetPendingActivities()[0].GetActivityId()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) pause(e *commonpb.WorkflowExecution, id string) error {
	_, err := r.client.WorkflowService().PauseActivity(r.ctx, &workflowservice.PauseActivityRequest{
		Namespace: "default", Execution: e, Activity: &workflowservice.PauseActivityRequest_Id{Id: id}})
	return err
}

func (r *rig) unpause(e *commonpb.WorkflowExecution, id string) error {
	_, err := r.client.WorkflowService().UnpauseActivity(r.ctx, &workflowservice.UnpauseActivityRequest{
		Namespace: "default", Execution: e, Activity: &workflowservice.UnpauseActivityRequest_Id{Id: id}})
	return err
}

func (r *rig) reset(e *commonpb.WorkflowExecution, id string) error {
	_, err := r.client.WorkflowService().ResetActivity(r.ctx, &workflowservice.ResetActivityRequest{
		Namespace: "default", Execution: e, Activity: &workflowservice.ResetActivityRequest_Id{Id: id}})
	return err
}

// suspends runs a node that is stopped as often as there are causes, and returns how its executions began.
func (r *rig) suspends(made func(*graphadapter.Graph) *graphadapter.Graph, stop func(client.WorkflowRun), causes ...error) []taskrun.Info {
	r.t.Helper()
	infos, calls := &seen[taskrun.Info]{}, &seen[string]{}
	started, told := make(chan struct{}), make(chan error, len(causes))
	r.work(made(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		n := infos.add(task.Info())
		if err := memo(ctx, task, "paid", calls); err != nil {
			return pregel.Command{}, err
		}
		if n > len(causes) {
			return logs("done"), nil
		}
		started <- struct{}{}
		<-ctx.Done()
		told <- context.Cause(ctx)
		return pregel.Command{}, errors.New("it was stopped in the middle")
	})))
	run := r.start(protocol.GraphInput{Graph: "one"})
	for i, want := range causes {
		<-started
		stop(run)
		if cause := <-told; !errors.Is(cause, want) {
			r.t.Errorf("execution %d was told %v, want %v", i+1, cause, want)
		}
	}
	if log := r.log(run); log != `["done"]` {
		r.t.Errorf("the run ended with %s", log)
	}
	if made := calls.list(); len(made) != 1 {
		r.t.Errorf("the call was made %d times", len(made))
	}
	return infos.list()
}

// inBoth runs a test with a task that is an activity of its own, and with one that begins within a workflow task.
func inBoth(t *testing.T, test func(r *rig, made func(*graphadapter.Graph) *graphadapter.Graph)) {
	t.Parallel()
	for name, made := range map[string]func(*rig) func(*graphadapter.Graph) *graphadapter.Graph{
		"activity": func(r *rig) func(*graphadapter.Graph) *graphadapter.Graph { return r.pinned },
		"segment": func(*rig) func(*graphadapter.Graph) *graphadapter.Graph {
			return func(g *graphadapter.Graph) *graphadapter.Graph { return g }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			test(r, made(r))
		})
	}
}

// TestAPausedNodeHasNotFailed: it has no retry policy, and yet runs again when the operator lets it, with what it did.
func TestAPausedNodeHasNotFailed(t *testing.T) {
	inBoth(t, func(r *rig, made func(*graphadapter.Graph) *graphadapter.Graph) {
		infos := r.suspends(made, func(run client.WorkflowRun) {
			r.operate(run, r.pause)
			r.pending(run, "the task given back", func(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
				for _, a := range d.GetPendingActivities() {
					if a.GetLastFailure().GetApplicationFailureInfo().GetType() == graphadapter.NodeStoppedType {
						return a.GetPaused()
					}
				}
				return false
			})
			r.operate(run, r.unpause)
		}, activity.ErrActivityPaused)
		if len(infos) != 2 || infos[1].Attempt != 1 || !infos[1].Suspect {
			r.t.Errorf("the executions were %+v", infos)
		}
	})
}

// TestAResetNodeHasNotFailed: it has no retry policy, and yet runs again, with what it did. The server counts its attempts
// from 1 again, so that an execution which was not the first is told that the task is not its own any more.
func TestAResetNodeHasNotFailed(t *testing.T) {
	inBoth(t, func(r *rig, made func(*graphadapter.Graph) *graphadapter.Graph) {
		infos := r.suspends(made, func(run client.WorkflowRun) { r.operate(run, r.reset) },
			activity.ErrActivityReset, graphadapter.ErrFenced)
		if len(infos) != 3 || infos[0].Suspect {
			r.t.Fatalf("the executions were %+v", infos)
		}
		for _, i := range infos[1:] {
			if i.Attempt != 1 || !i.Suspect {
				r.t.Errorf("a later execution began as %+v", i)
			}
		}
	})
}
