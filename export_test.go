package superstep

import (
	"superstep.dev/workflows/protocol"
)

// ContinueAt makes runs that a client begins be continued as new ones at these bounds.
func ContinueAt(c *Client, at protocol.ContinueAt) { c.continueAt = &at }

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
