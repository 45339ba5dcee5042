package activities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// manyWriters is a superstep of n tasks of "work", each by a Send of its own, with an effect that anybody may call.
func manyWriters(n int, work nodeFunc) *graphadapter.Graph {
	targets := make([]pregel.Target, n)
	for i := range targets {
		targets[i] = pregel.Target{Node: "work", Send: true, Arg: pregel.Value(fmt.Sprint(i))}
	}
	g := one(work)
	g.Spec.Nodes = []pregel.NodeSpec{{Name: "fan"}, {Name: "work"}}
	g.Spec.Edges = []pregel.Edge{{From: pregel.Start, To: "fan"}}
	g.Nodes["fan"] = graphadapter.Node{Run: run(func(context.Context, *taskrun.TaskRun) (pregel.Command, error) {
		return pregel.Command{Goto: targets}, nil
	})}
	g.Effects = map[string]graphadapter.Effect{"pay": {Name: "pay", Target: ledger.TargetNone,
		Do: func(_ context.Context, key string, params pregel.Value) (pregel.Value, error) {
			return pregel.Value(`"` + strings.Repeat("r", 300) + `"`), nil
		}}}
	return g
}

// busyPatience is for a test whose tasks alone keep a small machine busy.
const busyPatience = 8 * time.Minute

// TestManyTasksWithFullLedgers: 500 tasks of one superstep fill what their heartbeats may carry, all at the same time, and
// then record more. Together they stay below what a run's mutable state may hold; no call is made twice, and the run
// finishes.
func TestManyTasksWithFullLedgers(t *testing.T) {
	if testing.Short() {
		t.Skip("keeps a server busy with 500 tasks")
	}
	const tasks, before, after = 500, 1, 1
	r, full := newRig(t), make(chan struct{})
	r.lostAfter = 30 * time.Second // 500 tasks that say every few seconds that they live leave no time for anything else
	ctx, cancel := context.WithTimeout(context.Background(), 2*busyPatience)
	t.Cleanup(cancel)
	r.ctx = ctx
	r.work(manyWriters(tasks, func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		for i := range before + after {
			_, err := task.Memo(ctx, "call", "", func(context.Context) (pregel.Value, error) {
				return pregel.Value(`"` + strings.Repeat("x", 7500) + `"`), nil
			})
			if err != nil {
				return pregel.Command{}, err
			}
			if i == before-1 {
				select {
				case <-full:
				case <-ctx.Done(): // a server that is busy enough may count a task as lost: it begins again here
					return pregel.Command{}, context.Cause(ctx)
				}
			}
		}
		return logs("done"), nil
	}))
	run := r.start(protocol.GraphInput{Graph: "one"})
	stored, pending := 0, 0
	awaitLong(t, busyPatience, "every ledger to be full", func() bool {
		d, err := r.client.DescribeWorkflowExecution(r.ctx, run.GetID(), run.GetRunID())
		if err != nil {
			return false
		}
		stored, pending = 0, len(d.GetPendingActivities())
		for _, a := range d.GetPendingActivities() {
			stored += a.GetHeartbeatDetails().Size()
		}
		return pending == tasks && stored > tasks*before*7500
	}, func() any { return []int{pending, stored} })
	t.Logf("%d tasks under way have stored %d bytes", tasks, stored)
	if stored > 5<<20 {
		t.Errorf("the run's mutable state holds %d bytes of heartbeat details", stored)
	}
	close(full)
	if log := r.log(run); strings.Count(log, "done") != tasks {
		t.Errorf("%d tasks finished", strings.Count(log, "done"))
	}
}

// TestAFailedRunKeepsManyLedgers: what 400 tasks did outside is more than the last event of a failed run holds. That it
// was done is kept, so a retry calls nothing again.
func TestAFailedRunKeepsManyLedgers(t *testing.T) {
	if testing.Short() {
		t.Skip("keeps a server busy with hundreds of tasks")
	}
	t.Parallel()
	const tasks, each = 400, 10
	r := newRig(t)
	var broken atomic.Bool
	var calls, found sync.Map // by key
	broken.Store(true)
	g := manyWriters(tasks, func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
		for i := range each {
			if _, err := task.Effect(ctx, "pay", pregel.Value(fmt.Sprint(i)), graphadapter.CallOptions{}); err != nil {
				return pregel.Command{}, err
			}
		}
		if broken.Load() {
			return pregel.Command{}, graphadapter.Permanent(errors.New("not today"))
		}
		return logs("done"), nil
	})
	pay := g.Effects["pay"]
	do := pay.Do
	pay.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		if _, before := calls.LoadOrStore(key, true); before {
			t.Errorf("the call %s was made twice", key)
		}
		return do(ctx, key, params)
	}
	pay.Lookup = func(_ context.Context, key string, _ pregel.Value) (graphadapter.Finding, error) {
		found.Store(key, true) // of an execution that another one took over
		return graphadapter.Finding{Status: ledger.FindingCommitted, Receipt: pregel.Value(`"found"`)}, nil
	}
	g.Effects["pay"] = pay
	r.work(r.pinned(g))
	run := r.start(protocol.GraphInput{Graph: "one", Durability: graphadapter.DurabilityExit})
	var failed *temporal.ApplicationError
	if err := run.Get(r.ctx, nil); !errors.As(err, &failed) {
		t.Fatalf("the run ended with %v", err)
	}
	var left protocol.GraphResult
	if err := failed.Details(&left); err != nil || left.State == nil {
		t.Fatalf("what the run left: %s %v", left.Error, err)
	}
	broken.Store(false)
	again, err := r.client.ExecuteWorkflow(r.ctx, client.StartWorkflowOptions{
		ID: run.GetID(), TaskQueue: r.queue, WorkflowTaskTimeout: 3 * time.Second,
	}, protocol.GraphWorkflow, protocol.GraphInput{Graph: "one", Spec: left.Spec, State: left.State, Suspect: true})
	if err != nil {
		t.Fatal(err)
	}
	if log := r.log(again); strings.Count(log, "done") != tasks {
		t.Errorf("%d tasks finished", strings.Count(log, "done"))
	}
	all := 0
	calls.Range(func(any, any) bool { all++; return true })
	found.Range(func(key, _ any) bool {
		if _, made := calls.Load(key); !made {
			all++
		}
		return true
	})
	if all != tasks*each {
		t.Errorf("%d calls were made or found, want %d", all, tasks*each)
	}
}
