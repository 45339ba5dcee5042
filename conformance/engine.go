package main

import (
	"context"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// engine is what is tested: something that keeps threads of graphs and runs them.
type engine interface {
	// open returns an empty store for the threads of one case's graph.
	open(ctx context.Context, g *graphadapter.Graph) (threads, error)
}

// threads are the threads of one graph. close gives back what they hold.
type threads interface {
	// run runs a thread; what it streams goes to opts.Observer.
	run(ctx context.Context, thread string, in pregel.Input, opts graphadapter.RunOptions) error
	// runOnce runs the graph without a thread: nothing is kept.
	runOnce(ctx context.Context, in pregel.Input, opts graphadapter.RunOptions) error
	state(ctx context.Context, at place) (*pregel.Snapshot, error)
	// history is newest first.
	history(ctx context.Context, at place) ([]*pregel.Snapshot, error)
	update(ctx context.Context, at place, u graphadapter.StateUpdate) error
	close() error
}

// place is a thread, or a subgraph pending in it, at a checkpoint; an empty checkpoint is the newest one.
type place struct {
	thread     string
	checkpoint string
	// subgraph are the names of the nodes whose tasks hold the subgraph, outermost first; empty for the root.
	subgraph []string
}

// UnsupportedError says that an engine has no way to do what an action asks for. It is no answer that a case could
// expect: the case fails with it.
type UnsupportedError struct{ Engine, What string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("the %s engine cannot %s", e.Engine, e.What)
}

// UnavailableError says that an engine is not part of this build.
type UnavailableError struct{ Engine string }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the engine %q is not available in this build: use -engine memory", e.Engine)
}

// newEngine returns the engine of that name.
func newEngine(name string) (engine, error) {
	switch name {
	case "memory":
		return memoryEngine{}, nil
	case "temporal":
		return nil, &UnavailableError{Engine: name}
	}
	return nil, fmt.Errorf("there is no engine %q: the engines are memory and temporal", name)
}
