package main

import (
	"maps"
	"sync"
)

// counters is what the scripts of one case report while they run, in whatever order the engine runs them.
type counters struct {
	mu   sync.Mutex
	runs map[string]any // int64 by the script's name
	// retried says that a subgraph's node was retried since reset.
	retried bool
	// left is how many scripts may still start before over is called; over is nil for any number.
	left int
	over func()
	// fault is the first thing a script did that the format gives no meaning to.
	fault error
	// failures guards the counts of the fail operations.
	failures sync.Mutex
}

// started counts one start of a node's script.
func (c *counters) started(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _ := c.runs[name].(int64)
	c.runs[name] = n + 1
	if c.left--; c.left == 0 && c.over != nil {
		c.over()
	}
}

// bound has over called when more scripts have started than that.
func (c *counters) bound(most int, over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.over = most+1, over
}

// failed keeps a script's fault, so that the case is reported as what it is.
func (c *counters) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		c.fault = err
	}
}

// reset starts the counting of an action.
func (c *counters) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs, c.retried = map[string]any{}, false
}

// retry notes that a subgraph's node is retried.
func (c *counters) retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retried = true
}

func (c *counters) hasRetried() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retried
}

// taken is what was counted since reset, as a JSON object, and the fault if there was one.
func (c *counters) taken() (map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.runs), c.fault
}
