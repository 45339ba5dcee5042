package activities_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// large makes a memoised call with a result of that many bytes.
func large(ctx context.Context, task *taskrun.TaskRun, name string, size int, calls *seen[string]) error {
	v, err := task.Memo(ctx, name, "", func(context.Context) (pregel.Value, error) {
		calls.add(name)
		return pregel.Value(`"` + strings.Repeat("x", size) + `"`), nil
	})
	if err == nil && len(v) != size+2 {
		return fmt.Errorf("the call returned %d bytes, want %d", len(v), size+2)
	}
	return err
}

// TestALedgerLargerThanItsHeartbeats travels with the task's end and its next input: nothing is called twice, be it
// many results or a single one, and the run does not fail.
func TestALedgerLargerThanItsHeartbeats(t *testing.T) {
	t.Parallel()
	for _, mode := range []graphadapter.Durability{graphadapter.DurabilitySync, graphadapter.DurabilityAsync, graphadapter.DurabilityExit} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r, calls := newRig(t), &seen[string]{}
			l, _ := r.work(r.pinned(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
				for i, size := range []int{50 << 10, 50 << 10, 50 << 10, 200 << 10, 10} {
					if err := large(ctx, task, fmt.Sprint("call-", i), size, calls); err != nil {
						return pregel.Command{}, err
					}
				}
				return logs("done"), nil
			})))
			run := r.start(protocol.GraphInput{Graph: "one", Durability: mode})
			if log := r.log(run); log != `["done"]` {
				t.Errorf("the run ended with %s", log)
			}
			if got := calls.list(); !reflect.DeepEqual(got, []string{"call-0", "call-1", "call-2", "call-3", "call-4"}) {
				t.Errorf("the calls were %v", got)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, beat := range l.beats {
				if size := beat.GetDetails().Size(); size > 129<<10 {
					t.Errorf("a heartbeat carried %d bytes", size)
				}
			}
		})
	}
}

// TestWhatAFailedAttemptDidOutlastsACancelledWait: of an activity that waits for its next attempt the server forgets
// everything when it is cancelled, so what the attempt did is in the run before.
func TestWhatAFailedAttemptDidOutlastsACancelledWait(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), &seen[string]{}
	r.work(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		if err := memo(ctx, task, "paid", calls); err != nil {
			return pregel.Command{}, err
		}
		return pregel.Command{}, errors.New("after paying")
	}, every(time.Hour, 2)))
	run := r.start(protocol.GraphInput{Graph: "one"})
	r.pending(run, "the wait", func(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
		for _, a := range d.GetPendingActivities() {
			if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED && a.GetAttempt() > 1 {
				return strings.Contains(a.GetLastFailure().GetMessage(), "after paying")
			}
		}
		return false
	})
	if err := r.client.CancelWorkflow(r.ctx, run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	result := r.cancelled(run)
	if !strings.Contains(string(result.State), "paid") || len(calls.list()) != 1 {
		t.Errorf("after %d calls the state is %s", len(calls.list()), result.State)
	}
}

// cancelled waits for a run's cancelled end and returns what it left.
func (r *rig) cancelled(run interface {
	Get(context.Context, any) error
}) protocol.GraphResult {
	r.t.Helper()
	var result protocol.GraphResult
	var cancelled *temporal.CanceledError
	if err := run.Get(r.ctx, nil); !errors.As(err, &cancelled) {
		r.t.Fatalf("the run ended with %v, want cancelled", err)
	}
	if err := cancelled.Details(&result); err != nil {
		r.t.Fatal(err)
	}
	return result
}

// TestAWorkerThatStopsHandsOverWhatWasDone, at once and without a lost worker's lease to wait for.
func TestAWorkerThatStopsHandsOverWhatWasDone(t *testing.T) {
	t.Parallel()
	r, calls, attempts := newRig(t), &seen[string]{}, &seen[int]{}
	begun := make(chan struct{}, 2)
	node := func(stays bool) *graphadapter.Graph {
		return one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
			attempts.add(task.Info().Attempt)
			if err := memo(ctx, task, "paid", calls); err != nil {
				return pregel.Command{}, err
			}
			if stays {
				begun <- struct{}{}
				<-ctx.Done()
				return pregel.Command{}, context.Cause(ctx)
			}
			return logs("done"), nil
		}, graphadapter.RetryPolicy{MaxAttempts: 1})
	}
	_, stop := r.work(node(true))
	run := r.start(protocol.GraphInput{Graph: "one"})
	<-begun
	stop()
	r.work(node(false))
	if log := r.log(run); log != `["done"]` {
		t.Errorf("the run ended with %s", log)
	}
	if len(calls.list()) != 1 || !reflect.DeepEqual(attempts.list(), []int{1, 1}) {
		t.Errorf("calls %v in attempts %v", calls.list(), attempts.list())
	}
}

// TestALostWorkersLedgerIsReadWhenTheRunIsCancelled: no activity is left to tell, so the last heartbeat does.
func TestALostWorkersLedgerIsReadWhenTheRunIsCancelled(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), &seen[string]{}
	begun, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	l, _ := r.work(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		if err := memo(ctx, task, "paid", calls); err != nil {
			return pregel.Command{}, err
		}
		close(begun)
		<-release // frozen: it does not hear of its end
		return logs("too late"), nil
	}))
	run := r.start(protocol.GraphInput{Graph: "one"})
	<-begun
	l.freeze()
	if err := r.client.CancelWorkflow(r.ctx, run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	if result := r.cancelled(run); !strings.Contains(string(result.State), "paid") {
		t.Errorf("the state is %s", result.State)
	}
}

// TestATaskKeepsItsThreadsKeys: two tasks of a superstep, a loop and a later run of the thread want one business key.
// It is called once, and all have its receipt.
func TestATaskKeepsItsThreadsKeys(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), &seen[string]{}
	g := one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		receipt, err := task.Effect(ctx, "pay", pregel.Value(`{"order":"o-7"}`), graphadapter.CallOptions{Key: "o-7", ThreadWide: true})
		return logs(strings.Trim(string(receipt), `"`)), err
	})
	g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: "too"}, pregel.NodeSpec{Name: "again"})
	g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: pregel.Start, To: "too"}, pregel.Edge{From: "work", To: "again"})
	g.Nodes["too"], g.Nodes["again"] = g.Nodes["work"], g.Nodes["work"]
	g.Effects = map[string]graphadapter.Effect{"pay": {Name: "pay", Target: ledger.TargetNone,
		Do: func(_ context.Context, key string, _ pregel.Value) (pregel.Value, error) {
			return pregel.Value(fmt.Sprintf(`"rf-%d"`, calls.add(key))), nil
		}}}
	r.work(g)
	run := r.start(protocol.GraphInput{Graph: "one"})
	if log := r.log(run); log != `["rf-1","rf-1","rf-1"]` || len(calls.list()) != 1 {
		t.Errorf("after %d calls: %s", len(calls.list()), log)
	}
}
