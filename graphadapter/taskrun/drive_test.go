package taskrun

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// sideBySide is a graph whose nodes all run in its first superstep.
func sideBySide(nodes map[string]graphadapter.Node) *graphadapter.Graph {
	g := &graphadapter.Graph{Nodes: nodes, Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "side-by-side",
		Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}}}}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: name})
		g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: pregel.Start, To: name})
	}
	return g
}

// TestTasksOfASuperstepRunAtOnce: each waits for the other.
func TestTasksOfASuperstepRunAtOnce(t *testing.T) {
	var together sync.WaitGroup
	together.Add(2)
	meet := graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		together.Done()
		together.Wait()
		return said("met"), nil
	}}
	result, err := Invoke(t.Context(), sideBySide(map[string]graphadapter.Node{"a": meet, "b": meet}), input(`{}`), graphadapter.RunOptions{})
	if err != nil || string(result.Output["log"]) != `["met","met"]` {
		t.Errorf("the run ended with %+v, %v", result, err)
	}
}

// TestAFailureWaitsForItsSiblings, whose results are kept.
func TestAFailureWaitsForItsSiblings(t *testing.T) {
	failed := make(chan struct{})
	var fails, runs atomic.Int32
	g := sideBySide(map[string]graphadapter.Node{
		"bad": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
			if fails.Add(1) == 1 {
				close(failed)
				return pregel.Command{}, errors.New("no")
			}
			return said("bad"), nil
		}},
		"good": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
			<-failed
			runs.Add(1)
			return said("good"), nil
		}},
	})
	thread := NewMemory().Thread(g, "r-7")
	var why *pregel.NodeError
	if _, err := thread.Run(t.Context(), input(`{}`), graphadapter.RunOptions{}); !errors.As(err, &why) || why.Node != "bad" {
		t.Fatalf("the run ended with %v", err)
	}
	if log := mustRun(t, thread, pregel.Input{}, graphadapter.RunOptions{}); log != `["bad","good"]` || runs.Load() != 1 {
		t.Errorf("continued, it ended with %s; the sibling ran %d times", log, runs.Load())
	}
}

// TestRetriesAreThePolicys: attempts are numbered, what failed ones emitted is not taken back, and their memoised calls
// count.
func TestRetriesAreThePolicys(t *testing.T) {
	var calls atomic.Int32
	policy := graphadapter.RetryPolicy{InitialInterval: -1, NoJitter: true, MaxAttempts: 3}
	g := sideBySide(map[string]graphadapter.Node{"flaky": {Retry: []graphadapter.RetryPolicy{policy}, Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := TaskFrom(ctx)
		if _, err := task.Memo(ctx, "call", "", func(context.Context) (pregel.Value, error) {
			calls.Add(1)
			return pregel.Null, nil
		}); err != nil {
			return pregel.Command{}, err
		}
		if err := task.Emit(pregel.Value([]byte{'0' + byte(task.Info().Attempt)})); err != nil {
			return pregel.Command{}, err
		}
		if task.Info().Attempt < 3 {
			return pregel.Command{}, errors.New("not yet")
		}
		return said("done"), nil
	}}})
	emitted := ""
	_, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{Observer: func(e pregel.Event) {
		switch e.Kind {
		case pregel.EventCustom:
			emitted += string(e.Value)
		case pregel.EventReset:
			emitted += "r"
		}
	}})
	if err != nil || emitted != "1r2r3" || calls.Load() != 1 {
		t.Errorf("the run ended with %v, emitted %s and made the call %d times", err, emitted, calls.Load())
	}
}

// TestCancellationKeepsWhatFinished: the cause is returned, and the thread goes on from there.
func TestCancellationKeepsWhatFinished(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	var runs atomic.Int32
	began := make(chan struct{})
	g := sideBySide(map[string]graphadapter.Node{
		"quick": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
			<-began // what has not begun when its time is over does not run
			cancel(why)
			return said("quick"), nil
		}},
		"slow": {Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			if runs.Add(1) > 1 {
				return said("slow"), nil
			}
			close(began)
			<-ctx.Done()
			return pregel.Command{}, context.Cause(ctx)
		}},
	})
	thread := NewMemory().Thread(g, "r-7")
	if _, err := thread.Run(ctx, input(`{}`), graphadapter.RunOptions{}); !errors.Is(err, why) {
		t.Fatalf("the cancelled run ended with %v", err)
	}
	if log := mustRun(t, thread, pregel.Input{}, graphadapter.RunOptions{}); log != `["quick","slow"]` {
		t.Errorf("continued, it ended with %s", log)
	}
}

// TestAnUnservedNodeFailsInMemory: there is no other worker to wait for.
func TestAnUnservedNodeFailsInMemory(t *testing.T) {
	g := sideBySide(map[string]graphadapter.Node{"absent": {}})
	var why *pregel.NodeError
	if _, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{}); !errors.As(err, &why) || why.Node != "absent" {
		t.Errorf("the run ended with %v", err)
	}
}

// TestMaxConcurrency: tasks start in their order, never more at once than allowed, and all of them run.
func TestMaxConcurrency(t *testing.T) {
	const most = 2
	var mu sync.Mutex
	var started []string
	running, greatest := 0, 0
	node := graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := TaskFrom(ctx)
		mu.Lock()
		started = append(started, task.Info().Node)
		running++
		greatest = max(greatest, running)
		mu.Unlock()
		time.Sleep(time.Second) // of the bubble's clock
		mu.Lock()
		running--
		mu.Unlock()
		return said(task.Info().Node), nil
	}}
	nodes := map[string]graphadapter.Node{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		nodes[name] = node
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		result, err := Invoke(t.Context(), sideBySide(nodes), input(`{}`), graphadapter.RunOptions{MaxConcurrency: most})
		if err != nil || string(result.Output["log"]) != `["a","b","c","d","e"]` {
			t.Errorf("the run ended with %+v, %v", result, err)
		}
		if took := time.Since(began); greatest != most || took != 3*time.Second {
			t.Errorf("%d ran at once, and all of them took %v", greatest, took)
		}
		slices.Sort(started[:2]) // the two of a pair start together
		slices.Sort(started[2:4])
		if got := strings.Join(started, ""); got != "abcde" {
			t.Errorf("they started in the order %s", got)
		}
	})
}

// TestACancelledRunStartsNothing.
func TestACancelledRunStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := sideBySide(map[string]graphadapter.Node{"a": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) { panic("it ran") }}})
	if _, err := Invoke(ctx, g, input(`{}`), graphadapter.RunOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
}

// TestTheRunsContextReachesEverything: nodes, branches, effects, error handlers and graphs that nodes call.
func TestTheRunsContextReachesEverything(t *testing.T) {
	const tenant = `{"tenant":"acme"}`
	var mu sync.Mutex
	var seen []string
	see := func(ctx context.Context, who string) {
		task, _ := TaskFrom(ctx)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, who+string(task.RunContext()))
	}
	inner := oneNode(func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		see(ctx, "inner")
		return pregel.Command{}, nil
	})
	g := oneNode(func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		see(ctx, "node")
		task, _ := TaskFrom(ctx)
		if _, err := task.Effect(ctx, "pay", pregel.Value(`{}`), graphadapter.CallOptions{}); err != nil {
			return pregel.Command{}, err
		}
		_, err := InvokeNested(ctx, inner, pregel.Value(`{"amount":1}`))
		return pregel.Command{}, err
	}, graphadapter.Effect{Name: "pay", Do: func(ctx context.Context, _ string, _ pregel.Value) (pregel.Value, error) {
		see(ctx, "effect")
		return pregel.Null, nil
	}})
	pay := g.Nodes["pay"]
	pay.Branches = []graphadapter.BranchFunc{func(ctx context.Context, _ graphadapter.State) ([]pregel.Target, error) {
		see(ctx, "branch")
		return []pregel.Target{{Node: pregel.End}}, nil
	}}
	g.Nodes["pay"] = pay
	g.Spec.Branches = []pregel.Branch{{From: "pay"}}
	if _, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{Context: pregel.Value(tenant)}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, " "); got != "node"+tenant+" effect"+tenant+" inner"+tenant+" branch"+tenant {
		t.Errorf("seen: %s", got)
	}
}
