package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev"
	"superstep.dev/thread"
)

// startPatience is how long a worker that has just begun to poll may take to be seen by the server.
const startPatience = 15 * time.Second

// startThread starts a run with a small state.
func startThread(ctx context.Context, c *superstep.Client, graph, thread string) (thread.View, error) {
	return startWith(ctx, c, graph, thread, chainNote)
}

// startWith starts a run as users do, with that state.
func startWith(ctx context.Context, c *superstep.Client, graph, threadID, note string) (thread.View, error) {
	return startRequest(ctx, c, thread.StartRequest{Graph: graph, Thread: threadID, Input: fmt.Appendf(nil, `{"note":%q}`, note)})
}

// startRequest starts a run, and waits for the first worker if it has to.
func startRequest(ctx context.Context, c *superstep.Client, req thread.StartRequest) (thread.View, error) {
	deadline := time.Now().Add(startPatience)
	for {
		view, err := c.Start(ctx, req)
		if !errors.Is(err, thread.ErrNoWorker) || time.Now().After(deadline) {
			return view, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return view, err
		}
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
