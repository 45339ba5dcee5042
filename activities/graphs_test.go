package activities_test

import (
	"context"
	"encoding/json"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// nodeFunc is a node that gets its task.
type nodeFunc func(ctx context.Context, task *taskrun.TaskRun) (pregel.Command, error)

// one is a graph whose only node runs fn.
func one(fn nodeFunc, retry ...graphadapter.RetryPolicy) *graphadapter.Graph {
	return &graphadapter.Graph{
		Spec: &pregel.Spec{
			Version: pregel.SpecVersion, Name: "one",
			Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}},
			Nodes:    []pregel.NodeSpec{{Name: "work"}},
			Edges:    []pregel.Edge{{From: pregel.Start, To: "work"}},
		},
		Nodes: map[string]graphadapter.Node{"work": {Retry: retry, Run: run(fn)}},
	}
}

// pinned makes each task an activity of its own in all modes, as those of another task queue are.
func (r *rig) pinned(g *graphadapter.Graph) *graphadapter.Graph {
	for i := range g.Spec.Nodes {
		g.Spec.Nodes[i].TaskQueue = r.queue
	}
	return g
}

func run(fn nodeFunc) graphadapter.NodeFunc {
	return func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		return fn(ctx, task)
	}
}

func logs(words ...string) pregel.Command {
	text, err := json.Marshal(words)
	if err != nil {
		panic(err)
	}
	return pregel.Command{Update: []pregel.Write{{Channel: "log", Value: text}}}
}

// seen collects what executions of a node tell a test.
type seen[T any] struct {
	mu  sync.Mutex
	all []T
}

func (s *seen[T]) add(v T) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, v)
	return len(s.all)
}

func (s *seen[T]) list() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]T(nil), s.all...)
}
