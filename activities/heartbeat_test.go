package activities_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// memo makes a memoised call that returns its name.
func memo(ctx context.Context, task *taskrun.TaskRun, name string, calls *seen[string]) error {
	_, err := task.Memo(ctx, name, "", func(context.Context) (pregel.Value, error) {
		calls.add(name)
		return pregel.Value(`"` + name + `"`), nil
	})
	return err
}

// TestHeartbeatsAreSentForWhatMustLast: a short node sends none, a memoised call sends one in sync mode, which waits
// until it is stored, and none at once in the others.
func TestHeartbeatsAreSentForWhatMustLast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode  graphadapter.Durability
		calls int
		want  int
	}{
		{graphadapter.DurabilitySync, 0, 0},
		{graphadapter.DurabilitySync, 2, 2},
		{"", 1, 1},
		{graphadapter.DurabilityAsync, 2, 0},
		{graphadapter.DurabilityExit, 2, 0},
	} {
		r, calls := newRig(t), &seen[string]{}
		r.lostAfter = patience // a node that took a third of this would beat
		l, _ := r.work(r.pinned(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
			for range c.calls {
				if err := memo(ctx, task, "call", calls); err != nil {
					return pregel.Command{}, err
				}
			}
			return logs("done"), nil
		})))
		if log := r.log(r.start(protocol.GraphInput{Graph: "one", Durability: c.mode})); log != `["done"]` {
			t.Errorf("%s: the run ended with %s", c.mode, log)
		}
		if got := l.count(); got != c.want || len(calls.list()) != c.calls {
			t.Errorf("in mode %q %d calls sent %d heartbeats, want %d", c.mode, len(calls.list()), got, c.want)
		}
	}
}

// TestALongNodeBeats: from a third of the timeout on. What it did goes along, except in exit mode, which keeps nothing.
func TestALongNodeBeats(t *testing.T) {
	t.Parallel()
	for mode, kept := range map[graphadapter.Durability]bool{
		graphadapter.DurabilitySync: true, graphadapter.DurabilityAsync: true, graphadapter.DurabilityExit: false,
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r, calls := newRig(t), &seen[string]{}
			release := make(chan struct{})
			l, _ := r.work(r.pinned(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
				if err := memo(ctx, task, "paid", calls); err != nil {
					return pregel.Command{}, err
				}
				<-release
				return logs("done"), nil
			})))
			run := r.start(protocol.GraphInput{Graph: "one", Durability: mode})
			await(t, "a heartbeat", func() bool { return l.count() > 1 }, func() any { return l.count() })
			close(release)
			r.log(run)
			var progress graphadapter.Progress
			l.mu.Lock()
			last := l.beats[len(l.beats)-1]
			l.mu.Unlock()
			if err := converter.GetDefaultDataConverter().FromPayloads(last.GetDetails(), &progress); err != nil {
				t.Fatal(err)
			}
			if carried := fmt.Sprintf("%s", progress.Tasks); strings.Contains(carried, "paid") != kept {
				t.Errorf("the heartbeat carried %s", carried)
			}
		})
	}
}

// TestCancellationReachesTheNode: its context ends, and what it did outside is in the run's last event.
func TestCancellationReachesTheNode(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), &seen[string]{}
	started, causes := make(chan struct{}), make(chan error, 1)
	r.work(r.pinned(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		if err := memo(ctx, task, "paid", calls); err != nil {
			return pregel.Command{}, err
		}
		close(started)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return pregel.Command{}, context.Cause(ctx)
	})))
	run := r.start(protocol.GraphInput{Graph: "one"})
	<-started
	if err := r.client.CancelWorkflow(r.ctx, run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	var cancelled *temporal.CanceledError
	if err := run.Get(r.ctx, nil); !errors.As(err, &cancelled) {
		t.Fatalf("the run ended with %v", err)
	}
	if cause := <-causes; !errors.As(cause, new(*temporal.CanceledError)) {
		t.Errorf("the node was told %v", cause)
	}
	var result protocol.GraphResult
	if err := cancelled.Details(&result); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(result.State), "paid") {
		t.Errorf("what the task did is not in the state %s", result.State)
	}
}

// TestAFencedExecutionStops: once its task has gone to somebody else it starts no new call and can record nothing.
func TestAFencedExecutionStops(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), &seen[string]{}
	started, after := make(chan struct{}), make(chan []error, 1)
	r.work(r.pinned(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		close(started)
		<-ctx.Done()
		// A node that goes on with its context makes no call; one that goes on without it cannot record what it made.
		after <- []error{context.Cause(ctx), memo(ctx, task, "late", calls), memo(context.WithoutCancel(ctx), task, "careless", calls)}
		return logs("lost"), nil
	})))
	run := r.start(protocol.GraphInput{Graph: "one"})
	<-started
	d, err := r.client.DescribeWorkflowExecution(r.ctx, run.GetID(), "")
	if err != nil {
		t.Fatal(err)
	}
	id := d.GetPendingActivities()[0].GetActivityId()
	err = r.client.CompleteActivityByID(r.ctx, "default", run.GetID(), "", id, pregel.Outcome{Command: logs("somebody else")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := <-after
	for i, err := range told {
		if !errors.Is(err, graphadapter.ErrFenced) {
			t.Errorf("answer %d to the fenced execution is %v", i, err)
		}
	}
	if made := calls.list(); slices.Contains(made, "late") {
		t.Errorf("after the fence it made the calls %v", made)
	}
	if log := r.log(run); log != `["somebody else"]` {
		t.Errorf("the run ended with %s", log)
	}
}

// TestALostLineStopsTheNode: a worker that cannot reach the server gives its task up, and another execution takes it
// over, which knows that it is not the first. To the node's retry policy it is no attempt.
func TestALostLineStopsTheNode(t *testing.T) {
	t.Parallel()
	r, infos := newRig(t), &seen[taskrun.Info]{}
	causes := make(chan error, 1)
	started := make(chan struct{})
	g := one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		if infos.add(task.Info()) > 1 {
			return logs("done"), nil
		}
		close(started)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return pregel.Command{}, context.Cause(ctx)
	}, graphadapter.RetryPolicy{MaxAttempts: 1})
	l, _ := r.work(g)
	l.cutOff(status.Error(codes.Unavailable, "no line"))
	run := r.start(protocol.GraphInput{Graph: "one"})
	<-started
	if cause := <-causes; !errors.Is(cause, graphadapter.ErrFenced) {
		t.Errorf("the node was told %v", cause)
	}
	if log := r.log(run); log != `["done"]` {
		t.Errorf("the run ended with %s", log)
	}
	all := infos.list()
	if len(all) != 2 || all[0].Suspect || !all[1].Suspect || all[1].Attempt != 1 {
		t.Errorf("the executions were %+v", all)
	}
}

// TestAServerThatIsSlowIsNoFailure of the node that waits for it to store something, in an activity of its own and in a
// segment: a heartbeat without an answer is sent again.
func TestAServerThatIsSlowIsNoFailure(t *testing.T) {
	for name, in := range map[string]protocol.GraphInput{
		"activity": {Graph: "one"},
		"segment":  {Graph: "one", Fused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, calls := newRig(t), &seen[string]{}
			var l *line
			l, _ = r.work(one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
				l.cutOff(status.Error(codes.DeadlineExceeded, "slow"))
				if err := memo(ctx, task, "call", calls); err != nil {
					return pregel.Command{}, err
				}
				return logs("done"), nil
			}, graphadapter.RetryPolicy{MaxAttempts: 1}))
			run := r.start(in)
			await(t, "a second heartbeat", func() bool { return l.count() > 1 }, func() any { return l.count() })
			l.cutOff(nil)
			if log := r.log(run); log != `["done"]` || len(calls.list()) != 1 {
				t.Errorf("the run ended with %s after the calls %v", log, calls.list())
			}
		})
	}
}

// TestOnlyALostWorkersRunIsFreedOfIt: once by whoever takes the attempt over, for that run. An attempt that fails on a worker
// that lives frees nothing, nor does the first one.
func TestOnlyALostWorkersRunIsFreedOfIt(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]protocol.GraphInput{"task": {}, "segment": {Fused: true}, "relaxed segment": {Durability: graphadapter.DurabilityExit}} {
		for _, lost := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, lost %t", name, lost), func(t *testing.T) {
				t.Parallel()
				r, attempts := newRig(t), &seen[int]{}
				began := make(chan struct{}, 9)
				g := one(func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
					n := attempts.add(task.Info().Attempt)
					began <- struct{}{}
					switch {
					case n > 1:
						return logs("done"), nil
					case lost:
						<-ctx.Done()
						return pregel.Command{}, context.Cause(ctx)
					}
					return pregel.Command{}, errors.New("not yet")
				}, every(time.Millisecond, 2))
				l, want := newLine(), []string(nil)
				lose := r.workOn(l, g, worker.Options{})
				mode.Graph = "one"
				run := r.start(mode)
				<-began
				if lost {
					r.pending(run, "the node's activity", func(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
						return len(d.GetPendingActivities()) == 1
					})
					lose()
					l, _ = r.work(g)
					want = []string{run.GetID() + " " + run.GetRunID()}
				}
				if log := r.log(run); log != `["done"]` {
					t.Errorf("the run ended with %s", log)
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				if !slices.Equal(l.freed, want) {
					t.Errorf("freed were %v, not %v", l.freed, want)
				}
			})
		}
	}
}
