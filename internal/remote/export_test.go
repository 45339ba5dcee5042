package remote

import (
	"context"

	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Followed counts the runs that are followed.
func Followed(c *Threads) int {
	c.feeds.mu.Lock()
	defer c.feeds.mu.Unlock()
	return len(c.feeds.byKey)
}

// OccupyTails takes every long poll that this process may hold, until release is called.
func OccupyTails() (release func()) {
	taken := 0
	for free := true; free; {
		select {
		case tails <- struct{}{}:
			taken++
		default:
			free = false
		}
	}
	return func() {
		for range taken {
			<-tails
		}
	}
}

// LaunchBehind continues a thread as a client does that read its last run some time ago: at that run.
func LaunchBehind(ctx context.Context, c *Threads, id, run string) error {
	last, err := c.theLastRun(ctx, id)
	if err != nil {
		return err
	}
	last.runID, last.open = run, false
	in := protocol.GraphInput{Graph: last.graph}
	_, err = c.launch(ctx, runtime.Start{StartRequest: thread.StartRequest{Graph: last.graph, Thread: id}}, in, last)
	return err
}
