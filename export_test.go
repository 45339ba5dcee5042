package superstep

import (
	"testing"

	"superstep.dev/workflows/protocol"
)

// Followed counts the runs that a client follows.
func Followed(c *Client) int {
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

// ShowIn is what a runtime in memory knows of a thread, also while its run goes on.
func ShowIn[Out any](m *Memory, g *Graph[Out], thread string) (ThreadView, error) {
	t, err := m.thread(g.adapter, thread, false)
	if err != nil {
		return ThreadView{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view, nil
}

// LaunchBehind continues a thread as a client does that read its last run some time ago: at that run.
func LaunchBehind(t *testing.T, c *Client, thread, run string) error {
	t.Helper()
	last, err := c.theLastRun(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	last.runID, last.open = run, false
	in := protocol.GraphInput{Graph: last.graph}
	_, err = c.launch(t.Context(), StartRequest{Graph: last.graph, Thread: thread}, in, last)
	return err
}
