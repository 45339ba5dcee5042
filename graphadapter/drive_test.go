package graphadapter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// sideBySide is a graph whose nodes all run in its first superstep.
func sideBySide(nodes map[string]Node) *Graph {
	g := &Graph{Nodes: nodes, Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "side-by-side",
		Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}}}}
	for _, name := range sortedNames(nodes) {
		g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: name})
		g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: pregel.Start, To: name})
	}
	return g
}

// TestTasksOfASuperstepRunAtOnce: each waits for the other.
func TestTasksOfASuperstepRunAtOnce(t *testing.T) {
	var together sync.WaitGroup
	together.Add(2)
	meet := Node{Run: func(context.Context, Input) (pregel.Command, error) {
		together.Done()
		together.Wait()
		return said("met"), nil
	}}
	result, err := sideBySide(map[string]Node{"a": meet, "b": meet}).Invoke(t.Context(), input(`{}`), RunOptions{})
	if err != nil || string(result.Output["log"]) != `["met","met"]` {
		t.Errorf("the run ended with %+v, %v", result, err)
	}
}

// TestAFailureWaitsForItsSiblings, whose results are kept.
func TestAFailureWaitsForItsSiblings(t *testing.T) {
	failed := make(chan struct{})
	var fails, runs atomic.Int32
	g := sideBySide(map[string]Node{
		"bad": {Run: func(context.Context, Input) (pregel.Command, error) {
			if fails.Add(1) == 1 {
				close(failed)
				return pregel.Command{}, errors.New("no")
			}
			return said("bad"), nil
		}},
		"good": {Run: func(context.Context, Input) (pregel.Command, error) {
			<-failed
			runs.Add(1)
			return said("good"), nil
		}},
	})
	thread := NewMemory().Thread(g, "r-7")
	var why *pregel.NodeError
	if _, err := thread.Run(t.Context(), input(`{}`), RunOptions{}); !errors.As(err, &why) || why.Node != "bad" {
		t.Fatalf("the run ended with %v", err)
	}
	if log := mustRun(t, thread, pregel.Input{}, RunOptions{}); log != `["bad","good"]` || runs.Load() != 1 {
		t.Errorf("continued, it ended with %s; the sibling ran %d times", log, runs.Load())
	}
}

// TestRetriesAreThePolicys: attempts are numbered, what failed ones emitted is not taken back, and their memoised calls
// count.
func TestRetriesAreThePolicys(t *testing.T) {
	var calls atomic.Int32
	policy := RetryPolicy{InitialInterval: -1, NoJitter: true, MaxAttempts: 3}
	g := sideBySide(map[string]Node{"flaky": {Retry: []RetryPolicy{policy}, Run: func(ctx context.Context, _ Input) (pregel.Command, error) {
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
	_, err := g.Invoke(t.Context(), input(`{}`), RunOptions{Observer: func(e pregel.Event) {
		if e.Kind == pregel.EventCustom {
			emitted += string(e.Value)
		}
	}})
	if err != nil || emitted != "123" || calls.Load() != 1 {
		t.Errorf("the run ended with %v, emitted %s and made the call %d times", err, emitted, calls.Load())
	}
}

// TestCancellationKeepsWhatFinished: the cause is returned, and the thread goes on from there.
func TestCancellationKeepsWhatFinished(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	var runs atomic.Int32
	g := sideBySide(map[string]Node{
		"quick": {Run: func(context.Context, Input) (pregel.Command, error) {
			runs.Add(1)
			cancel(why)
			return said("quick"), nil
		}},
		"slow": {Run: func(ctx context.Context, _ Input) (pregel.Command, error) {
			if runs.Load() == 2 {
				return said("slow"), nil
			}
			<-ctx.Done()
			runs.Add(1)
			return pregel.Command{}, context.Cause(ctx)
		}},
	})
	thread := NewMemory().Thread(g, "r-7")
	if _, err := thread.Run(ctx, input(`{}`), RunOptions{}); !errors.Is(err, why) {
		t.Fatalf("the cancelled run ended with %v", err)
	}
	if log := mustRun(t, thread, pregel.Input{}, RunOptions{}); log != `["quick","slow"]` {
		t.Errorf("continued, it ended with %s", log)
	}
}

// TestAnUnservedNodeFailsInMemory: there is no other worker to wait for.
func TestAnUnservedNodeFailsInMemory(t *testing.T) {
	g := sideBySide(map[string]Node{"absent": {}})
	var why *pregel.NodeError
	if _, err := g.Invoke(t.Context(), input(`{}`), RunOptions{}); !errors.As(err, &why) || why.Node != "absent" {
		t.Errorf("the run ended with %v", err)
	}
}
