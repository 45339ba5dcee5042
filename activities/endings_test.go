package activities_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// lastSeen tells what a run waits for.
func (r *rig) lastSeen(run client.WorkflowRun) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	described, err := r.client.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("pending: %v %v;", described.GetPendingActivities(), described.GetPendingWorkflowTask())
	history := r.client.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			return text + err.Error()
		}
		text += fmt.Sprintf("\n%s %s", e.GetEventTime().AsTime().Format(time.TimeOnly), e.GetEventType())
	}
	return text
}

// failureOf waits for a run's failure and returns what it says of the node.
func (r *rig) failureOf(run client.WorkflowRun) *pregel.NodeError {
	r.t.Helper()
	var failed *temporal.ApplicationError
	err := run.Get(r.ctx, nil)
	if !errors.As(err, &failed) {
		r.t.Fatalf("the run ended with %v, want a failure; %s", err, r.lastSeen(run))
	}
	var result protocol.GraphResult
	if err := failed.Details(&result); err != nil || result.Failure == nil {
		r.t.Fatalf("the run failed without a reason: %v", err)
	}
	return result.Failure
}

// TestRetriesAreCountedAcrossWorkers: the node's policy counts its attempts, whoever makes them, and gives up after
// the last.
func TestRetriesAreCountedAcrossWorkers(t *testing.T) {
	t.Parallel()
	r, attempts := newRig(t), &seen[string]{}
	worker := func(name string, wait time.Duration) *graphadapter.Graph {
		return r.pinned(one(func(_ context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
			attempts.add(fmt.Sprintf("%d by %s", task.Info().Attempt, name))
			return pregel.Command{}, errors.New("not today")
		}, every(wait, 3)))
	}
	_, stop := r.work(worker("first", 20*time.Second)) // it is gone before it could make another attempt
	run := r.start(protocol.GraphInput{Graph: "one"})
	r.lastFailure(run, graphadapter.NodeRetryType)
	stop()
	r.work(worker("second", time.Second))
	failure := r.failureOf(run)
	if failure.Message != "not today" || failure.Node != "work" || failure.Graph != "one" {
		t.Errorf("the failure is %+v", failure)
	}
	if got := attempts.list(); !reflect.DeepEqual(got, []string{"1 by first", "2 by second", "3 by second"}) {
		t.Errorf("the attempts were %v", got)
	}
	if n := r.events(run, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED); n != 1 {
		t.Errorf("three attempts took %d activities", n)
	}
}

// TestARepeatedAttemptFindsItsLedger: what a failed attempt did is there for the next, on another worker too.
func TestARepeatedAttemptFindsItsLedger(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), &seen[string]{}
	attempts := &seen[int]{}
	r.work(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		if err := memo(ctx, task, "paid", calls); err != nil {
			return pregel.Command{}, err
		}
		if attempts.add(task.Info().Attempt) < 3 {
			return pregel.Command{}, errors.New("after paying")
		}
		return logs("done"), nil
	}, graphadapter.RetryPolicy{InitialInterval: -1, NoJitter: true}))
	r.log(r.start(protocol.GraphInput{Graph: "one"}))
	if made := calls.list(); len(made) != 1 {
		t.Errorf("over %d attempts the call was made %d times", len(attempts.list()), len(made))
	}
}

// TestANodesOwnCancellationIsAFailure, whatever kind of it the node returns: only the run is ever cancelled.
func TestANodesOwnCancellationIsAFailure(t *testing.T) {
	t.Parallel()
	for kind, own := range map[string]error{"NodeCancelled": context.Canceled, "CanceledError": temporal.NewCanceledError()} {
		r, attempts := newRig(t), &seen[int]{}
		r.work(one(func(_ context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
			attempts.add(task.Info().Attempt)
			return pregel.Command{}, fmt.Errorf("call: %w", own)
		}, every(time.Millisecond, 2)))
		if failure := r.failureOf(r.start(protocol.GraphInput{Graph: "one"})); failure.Type != kind {
			t.Errorf("the failure is %+v", failure)
		}
		if got := attempts.list(); !reflect.DeepEqual(got, []int{1, 2}) {
			t.Errorf("the attempts were %v", got)
		}
	}
}

// TestAnErrorOfAnySizeIsRetried: reported whole, it would not get through.
func TestAnErrorOfAnySizeIsRetried(t *testing.T) {
	t.Parallel()
	r, attempts := newRig(t), &seen[int]{}
	r.work(r.pinned(one(func(_ context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		if attempts.add(task.Info().Attempt) == 1 {
			return pregel.Command{}, errors.New(strings.Repeat("x", 5<<20))
		}
		return logs("done"), nil
	}, every(time.Millisecond, 2))))
	if log := r.log(r.start(protocol.GraphInput{Graph: "one"})); log != `["done"]` {
		t.Errorf("the run ended with %s", log)
	}
	if got := attempts.list(); !reflect.DeepEqual(got, []int{1, 2}) {
		t.Errorf("the attempts were %v", got)
	}
}

// TestCancellationEndsAWait for the next attempt at once.
func TestCancellationEndsAWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(one(func(context.Context, *taskrun.TaskRun) (pregel.Command, error) {
		return pregel.Command{}, errors.New("not yet")
	}, every(time.Hour, 2)), nested(nil, every(time.Hour, 2)))
	for _, run := range []client.WorkflowRun{r.start(protocol.GraphInput{Graph: "one"}), r.task("nested", retryTask(1))} {
		r.lastFailure(run, graphadapter.NodeRetryType)
		if err := r.client.CancelWorkflow(r.ctx, run.GetID(), ""); err != nil {
			t.Fatal(err)
		}
		var cancelled *temporal.CanceledError
		if err := run.Get(r.ctx, nil); !errors.As(err, &cancelled) {
			t.Errorf("the run ended with %v", err)
		}
	}
}

// TestAResultTooLargeToStoreFailsTheNode, with the size and what to do; sent all the same, it would be repeated for
// ever.
func TestAResultTooLargeToStoreFailsTheNode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(one(func(context.Context, *taskrun.TaskRun) (pregel.Command, error) {
		return logs(strings.Repeat("x", 2<<20)), nil
	}))
	failure := r.failureOf(r.start(protocol.GraphInput{Graph: "one"}))
	if failure.Type != "PayloadTooLarge" || failure.Node != "work" || !strings.Contains(failure.Message, "write a reference") {
		t.Errorf("the failure is %+v", failure)
	}
}

// TestAnUnservedNodeWaitsForItsWorker: giving a task back is no attempt of the node.
func TestAnUnservedNodeWaitsForItsWorker(t *testing.T) {
	t.Parallel()
	r, infos := newRig(t), &seen[taskrun.Info]{}
	whole := one(func(_ context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		infos.add(task.Info())
		return logs("served"), nil
	}, graphadapter.RetryPolicy{MaxAttempts: 1})
	older := &graphadapter.Graph{Spec: whole.Spec, Nodes: map[string]graphadapter.Node{}}
	_, stop := r.work(older)
	run := r.start(protocol.GraphInput{Graph: "one"})
	r.pending(run, "the task given back", func(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
		for _, a := range d.GetPendingActivities() {
			if a.GetLastFailure().GetApplicationFailureInfo().GetType() == graphadapter.NodeUnservedType {
				return strings.Contains(a.GetLastFailure().GetMessage(), `does not serve node "work"`)
			}
		}
		return false
	})
	stop()
	r.work(whole)
	if log := r.log(run); log != `["served"]` {
		t.Errorf("the run ended with %s", log)
	}
	if all := infos.list(); len(all) != 1 || all[0].Attempt != 1 {
		t.Errorf("the node was run as %+v", all)
	}
}

// TestATaskThatKeepsLosingItsWorkersAsksAPerson, who may say no.
func TestATaskThatKeepsLosingItsWorkersAsksAPerson(t *testing.T) {
	t.Parallel()
	for answer, ends := range map[string]string{"true": `["done"]`, "false": "given up after 10 lost workers in a row"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			r, calls := newRig(t), &seen[string]{}
			var well atomic.Bool
			var l *line
			var ready sync.WaitGroup
			ready.Add(1)
			l, _ = r.work(r.pinned(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
				ready.Wait()
				if !well.Load() {
					// What cannot be recorded is not known to have ended: to the next execution its worker was lost.
					l.cutOnce(status.Error(codes.InvalidArgument, "no line"))
					return pregel.Command{}, errors.New("no line")
				}
				return logs("done"), memo(ctx, task, "paid", calls)
			}, graphadapter.RetryPolicy{InitialInterval: -1, NoJitter: true, MaxAttempts: 100})))
			ready.Done()
			run := r.start(protocol.GraphInput{Graph: "one"})
			q := r.question(run)
			if !strings.Contains(string(q.Value), "10 workers in a row") || q.Node != "work" {
				t.Errorf("the question is %+v", q)
			}
			well.Store(true)
			err := r.client.SignalWorkflow(r.ctx, run.GetID(), "", protocol.SignalResume,
				protocol.ResumeRequest{ID: "a", Question: q.ID, Value: pregel.Value(answer)})
			if err != nil {
				t.Fatal(err)
			}
			if answer == "true" {
				if log := r.log(run); log != ends {
					t.Errorf("the run ended with %s", log)
				}
				return
			}
			if failure := r.failureOf(run); failure.Type != "LostWorkers" || failure.Message != ends {
				t.Errorf("the failure is %+v", failure)
			}
		})
	}
}
