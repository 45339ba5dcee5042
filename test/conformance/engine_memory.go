package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// memoryEngine is the in-process driver.
type memoryEngine struct{}

func (memoryEngine) serve(context.Context, []*graphadapter.Graph) (func() error, error) {
	return func() error { return nil }, nil
}

func (memoryEngine) patience() time.Duration { return 2 * time.Minute }

// parallel is what keeps the processors busy while some scripts sleep.
func (memoryEngine) parallel() int { return 2 * runtime.GOMAXPROCS(0) }

func (memoryEngine) close() error { return nil }

func (memoryEngine) open(_ context.Context, g *graphadapter.Graph) (threads, error) {
	return &memoryThreads{graph: g, store: taskrun.NewMemory()}, nil
}

type memoryThreads struct {
	graph *graphadapter.Graph
	store *taskrun.Memory
}

func (m *memoryThreads) run(ctx context.Context, thread string, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error {
	opts.Observer = rec.observe
	_, err := m.store.Thread(m.graph, thread).Run(ctx, in, opts)
	return err
}

func (m *memoryThreads) runOnce(ctx context.Context, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error {
	opts.Observer = rec.observe
	_, err := taskrun.Invoke(ctx, m.graph, in, opts)
	return err
}

func (m *memoryThreads) state(ctx context.Context, at place) (*pregel.Snapshot, error) {
	s, err := m.store.Thread(m.graph, at.thread).State(ctx, at.checkpoint)
	for _, node := range at.subgraph {
		if err != nil {
			return s, err
		}
		s, err = pending(s, node)
	}
	return s, err
}

// pending is the state of the subgraph that a node's task waits in.
func pending(s *pregel.Snapshot, node string) (*pregel.Snapshot, error) {
	for _, t := range s.Tasks {
		if t.Name == node && t.State != nil {
			return t.State, nil
		}
	}
	return nil, fmt.Errorf("no task of node %q has a pending subgraph", node)
}

func (m *memoryThreads) history(ctx context.Context, at place) ([]*pregel.Snapshot, error) {
	past, err := m.store.Thread(m.graph, at.thread).SubgraphHistory(ctx, at.subgraph, "")
	if err != nil {
		return nil, err
	}
	out := make([]*pregel.Snapshot, len(past))
	for i, c := range past {
		out[i] = c.Snapshot
	}
	return out, nil
}

func (m *memoryThreads) update(ctx context.Context, at place, u graphadapter.StateUpdate) error {
	_, err := m.store.Thread(m.graph, at.thread).Update(ctx, at.checkpoint, at.subgraph, [][]graphadapter.StateUpdate{{u}})
	return err
}

func (*memoryThreads) close() error { return nil }
