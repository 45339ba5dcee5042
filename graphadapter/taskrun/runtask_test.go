package taskrun

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestASubgraphsPolicyIsAsked: nothing runs, and the failure is what its RetryOn sees.
func TestASubgraphsPolicyIsAsked(t *testing.T) {
	policy := graphadapter.RetryPolicy{InitialInterval: -1, NoJitter: true, MaxAttempts: 2, RetryOn: isNodeError("Timeout")}
	g := &graphadapter.Graph{Spec: &pregel.Spec{Name: "root"}, Nodes: map[string]graphadapter.Node{"sub": {Retry: []graphadapter.RetryPolicy{policy}}}}
	for _, c := range []struct {
		name, node, kind string
		attempt          int
		again            bool
	}{
		{"taken", "sub", "Timeout", 1, true},
		{"given up", "sub", "Timeout", 2, false},
		{"another error", "sub", "declinedError", 1, false},
		{"not here", "nobody", "Timeout", 1, false},
	} {
		task := &pregel.Task{Node: c.node, Path: c.node, Retry: &pregel.NodeError{Type: c.kind}, Attempt: c.attempt}
		out, _ := RunTask(t.Context(), g, task, Env{})
		if out.Again != c.again || out.Error != nil {
			t.Errorf("%s: %+v", c.name, out)
		}
	}
}

// TestASubgraphsPolicyWaits, and a cancelled run no longer.
func TestASubgraphsPolicyWaits(t *testing.T) {
	policy := graphadapter.RetryPolicy{InitialInterval: time.Hour, MaxInterval: time.Hour, NoJitter: true}
	g := &graphadapter.Graph{Spec: &pregel.Spec{Name: "root"}, Nodes: map[string]graphadapter.Node{"sub": {Retry: []graphadapter.RetryPolicy{policy}}}}
	task := &pregel.Task{Node: "sub", Retry: &pregel.NodeError{Type: "x"}, Attempt: 1}
	for end, again := range map[time.Duration]bool{2 * time.Hour: true, time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), end)
			defer cancel()
			began := time.Now()
			out, _ := RunTask(ctx, g, task, Env{})
			if waited := time.Since(began); out.Again != again || waited != min(end, time.Hour) {
				t.Errorf("after %v: %+v", waited, out)
			}
		})
	}
}

// TestARetriedSubgraphRunsOn in memory: what it had finished does not run again, and its attempts are the policy's.
func TestARetriedSubgraphRunsOn(t *testing.T) {
	var ran []string
	fails := 2
	inner := &graphadapter.Graph{
		Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "inner", Nodes: []pregel.NodeSpec{{Name: "first"}, {Name: "second"}},
			Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}},
			Edges:    []pregel.Edge{{From: pregel.Start, To: "first"}, {From: "first", To: "second"}}},
		Nodes: map[string]graphadapter.Node{
			"first": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
				ran = append(ran, "first")
				return said("first"), nil
			}},
			"second": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
				ran = append(ran, "second")
				if fails--; fails >= 0 {
					return pregel.Command{}, errors.New("not yet")
				}
				return said("second"), nil
			}},
		},
	}
	g := sideBySide(map[string]graphadapter.Node{"sub": {Retry: []graphadapter.RetryPolicy{{InitialInterval: -1, NoJitter: true, MaxAttempts: 3}}}})
	g.Spec.Nodes[0].Subgraph, g.Spec.Nodes[0].Retried = "inner", true
	g.Spec.Subgraphs, g.Subgraphs = map[string]*pregel.Spec{"inner": inner.Spec}, map[string]*graphadapter.Graph{"inner": inner}
	result, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{})
	if err != nil || string(result.Output["log"]) != `["first","second"]` {
		t.Errorf("the run ended with %+v, %v", result, err)
	}
	if got := strings.Join(ran, " "); got != "first second second second" {
		t.Errorf("it ran %s", got)
	}
}

// TestANodesOwnCancellationIsAFailure: it is retried, and kept apart from a cancelled run.
func TestANodesOwnCancellationIsAFailure(t *testing.T) {
	attempts := 0
	g := sideBySide(map[string]graphadapter.Node{"quits": {
		Retry: []graphadapter.RetryPolicy{{InitialInterval: -1, NoJitter: true, MaxAttempts: 2}},
		Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			attempts++
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return pregel.Command{}, ctx.Err()
		},
	}})
	_, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{})
	var why *pregel.NodeError
	if !errors.As(err, &why) || why.Type != "NodeCancelled" || attempts != 2 {
		t.Errorf("after %d attempts the run ended with %v", attempts, err)
	}
}

// TestADrainIsTheFirstReason, cut, and that of the attempt that counts.
func TestADrainIsTheFirstReason(t *testing.T) {
	for want, reasons := range map[string][]string{
		"":            nil,
		"maintenance": {"maintenance", "later"},
		`node "pay" of graph "refund" asked for it`: {""},
	} {
		out, err := attemptOf(t, oneNode(calling(func(_ context.Context, task *TaskRun) error {
			for _, reason := range reasons {
				task.Drain(reason)
			}
			return nil
		})), Env{})
		if err != nil || out.Drain != want {
			t.Errorf("the drain's reason is %q, want %q, %v", out.Drain, want, err)
		}
	}
	out, _ := attemptOf(t, oneNode(calling(func(_ context.Context, task *TaskRun) error {
		task.Drain(strings.Repeat("x", 1<<20))
		return nil
	})), Env{})
	if len(out.Drain) > maxDrainReason {
		t.Errorf("the reason has %d bytes", len(out.Drain))
	}
	out, _ = attemptOf(t, oneNode(calling(func(_ context.Context, task *TaskRun) error {
		task.Drain("maintenance")
		return errors.New("no")
	})), Env{})
	if out.Drain != "" {
		t.Errorf("a failed attempt drains: %q", out.Drain)
	}
}

// TestLastStep follows LangGraph: a run limited to n supersteps can finish after step n-1 at the latest.
func TestLastStep(t *testing.T) {
	const limit = 4
	var seen []Info
	g := oneNode(calling(func(_ context.Context, task *TaskRun) error {
		seen = append(seen, task.Info())
		return nil
	}))
	g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: "pay", To: "pay"})
	_, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{Options: pregel.Options{RecursionLimit: limit}})
	if !is[*pregel.RecursionError](err) || len(seen) != limit {
		t.Fatalf("the run ended after %d supersteps with %v", len(seen), err)
	}
	for i, info := range seen {
		if step := i + 1; info.Step != step || info.StepsLeft != limit-step || info.LastStep != (step == limit-1) {
			t.Errorf("superstep %d: %+v", step, info)
		}
	}
}
