package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// engine is what is tested: something that keeps threads of graphs and runs them.
type engine interface {
	// serve makes graphs known, before any of them is opened, until stop is called.
	serve(ctx context.Context, graphs []*graphadapter.Graph) (stop func() error, err error)
	// open returns an empty store for the threads of one case's graph. It is safe for concurrent use.
	open(ctx context.Context, g *graphadapter.Graph) (threads, error)
	// patience bounds one case: an engine that hangs fails the case instead of the whole run.
	patience() time.Duration
	// parallel is how many cases at a time suit the engine.
	parallel() int
	// close ends the engine.
	close() error
}

// threads are the threads of one graph. close gives back what they hold.
type threads interface {
	// run runs a thread; what it streams goes to the recorder.
	run(ctx context.Context, thread string, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error
	// runOnce runs the graph without a thread: nothing is kept.
	runOnce(ctx context.Context, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error
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

// The names of the engines.
const (
	engineMemory   = "memory"
	engineTemporal = "temporal"
)

// newEngine returns the engine that the flags ask for.
func newEngine(s *settings, log io.Writer) (engine, error) {
	if s.engine == engineTemporal {
		return newTemporalEngine(s.address, s.durability == modeFused, log)
	}
	return memoryEngine{}, nil
}
