package activities_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// nested is a graph whose only node, "sub", runs the graph "one" again as its policy says.
func nested(fn nodeFunc, policy graphadapter.RetryPolicy) *graphadapter.Graph {
	inner := one(fn)
	return &graphadapter.Graph{
		Spec: &pregel.Spec{
			Version: pregel.SpecVersion, Name: "nested", Channels: inner.Spec.Channels,
			Nodes:     []pregel.NodeSpec{{Name: "sub", Subgraph: "one", Retried: true}},
			Edges:     []pregel.Edge{{From: pregel.Start, To: "sub"}},
			Subgraphs: map[string]*pregel.Spec{"one": inner.Spec},
		},
		Nodes:     map[string]graphadapter.Node{"sub": {Retry: []graphadapter.RetryPolicy{policy}}},
		Subgraphs: map[string]*graphadapter.Graph{"one": inner},
	}
}

// retryTask is the task that asks whether a failed subgraph is to be run on.
func retryTask(attempt int) pregel.Task {
	return pregel.Task{Step: 1, Path: "sub", Node: "sub", Retry: &pregel.NodeError{Type: "boom", Message: "boom"}, Attempt: attempt}
}

func every(wait time.Duration, attempts int) graphadapter.RetryPolicy {
	return graphadapter.RetryPolicy{InitialInterval: wait, BackoffFactor: 1, NoJitter: true, MaxAttempts: attempts}
}

// lastFailure waits until a run's one activity has failed with an error of that type.
func (r *rig) lastFailure(run interface{ GetID() string }, kind string) {
	r.t.Helper()
	await(r.t, "a failure of type "+kind, func() bool {
		d, err := r.client.DescribeWorkflowExecution(r.ctx, run.GetID(), "")
		for _, a := range d.GetPendingActivities() {
			if err == nil && a.GetLastFailure().GetApplicationFailureInfo().GetType() == kind {
				return true
			}
		}
		return false
	}, func() any { return nil })
}

// TestASubgraphIsRunOn as its node's policy says, until the policy gives up.
func TestASubgraphIsRunOn(t *testing.T) {
	t.Parallel()
	for fails, ends := range map[int]string{2: `["done"]`, 3: "attempt 3"} {
		r, attempts := newRig(t), &seen[string]{}
		r.work(nested(func(context.Context, *taskrun.TaskRun) (pregel.Command, error) {
			if n := attempts.add("x"); n <= fails {
				return pregel.Command{}, fmt.Errorf("attempt %d", n)
			}
			return logs("done"), nil
		}, every(10*time.Millisecond, 3)))
		run := r.start(protocol.GraphInput{Graph: "nested"})
		if fails == 3 {
			if failure := r.failureOf(run); failure.Message != ends || failure.Node != "work" {
				t.Errorf("the failure is %+v", failure)
			}
		} else if log := r.log(run); log != ends {
			t.Errorf("the run ended with %s", log)
		}
		if n := len(attempts.list()); n != 3 {
			t.Errorf("the subgraph was run %d times", n)
		}
	}
}

// TestASubgraphsWaitHoldsNoWorker: the worker that was asked is gone when the wait ends; another one says yes, and a
// policy that says no says so at once.
func TestASubgraphsWaitHoldsNoWorker(t *testing.T) {
	t.Parallel()
	const wait = 20 * time.Second // the worker is gone long before
	r := newRig(t)
	_, stop := r.work(nested(nil, every(wait, 2)))
	began := time.Now()
	run := r.task("nested", retryTask(1))
	r.lastFailure(run, graphadapter.NodeRetryType)
	stop()
	r.work(nested(nil, every(time.Hour, 2))) // asked anew, it would wait an hour
	if out := r.outcome(run); !out.Again || time.Since(began) < wait {
		t.Errorf("after %v the answer is %+v", time.Since(began), out)
	}
	if out := r.outcome(r.task("nested", retryTask(2))); out.Again || out.Error != nil {
		t.Errorf("after the last attempt the answer is %+v", out)
	}
}

// TestALostWorkerDoesNotShortenTheWait, nor does it make the task wait again: it died with the failed attempt on record
// and not reported, so the server runs the task before its time.
func TestALostWorkerDoesNotShortenTheWait(t *testing.T) {
	t.Parallel()
	const wait = 4 * lostAfter // well above the heartbeat timeout, after which the server notices
	for name, task := range map[string]pregel.Task{"subgraph": retryTask(1), "node": {Step: 1, Path: "flaky", Node: "flaky"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, times, numbers := newRig(t), &seen[time.Time]{}, &seen[int]{}
			g := nested(nil, every(wait, 2))
			g.Nodes["flaky"] = graphadapter.Node{Retry: g.Nodes["sub"].Retry, Run: run(func(_ context.Context, task *taskrun.TaskRun) (pregel.Command, error) {
				numbers.add(task.Info().Attempt)
				if times.add(time.Now()) == 1 {
					return pregel.Command{}, errors.New("not yet")
				}
				return pregel.Command{}, nil
			})}
			l, stop := r.work(g)
			l.muffle(true)
			began := time.Now()
			run := r.task("nested", task)
			<-l.heard // the attempt is on record
			stop()
			r.work(g)
			out := r.outcome(run)
			took := time.Since(began)
			if took < wait || took > 2*wait {
				t.Errorf("the wait of %v took %v", wait, took)
			}
			if name == "subgraph" {
				if !out.Again {
					t.Errorf("the answer is %+v", out)
				}
				return
			}
			if got := numbers.list(); !reflect.DeepEqual(got, []int{1, 2}) {
				t.Errorf("the attempts were %v", got)
			}
			if all := times.list(); len(all) == 2 && all[1].Sub(all[0]) < wait-100*time.Millisecond {
				t.Errorf("the second attempt came %v after the first", all[1].Sub(all[0]))
			}
		})
	}
}

// TestASubgraphsPolicyElsewhere: a worker without the node has no say.
func TestASubgraphsPolicyElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	whole := nested(nil, every(-1, 2))
	_, stop := r.work(&graphadapter.Graph{Spec: whole.Spec})
	run := r.task("nested", retryTask(1))
	r.lastFailure(run, graphadapter.NodeUnservedType)
	stop()
	r.work(whole)
	if out := r.outcome(run); !out.Again {
		t.Errorf("the answer is %+v", out)
	}
}
