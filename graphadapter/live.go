package graphadapter

import (
	"time"

	"superstep.dev/graphadapter/pregel"
)

// LiveTask names a task of a run, for those who listen to what it emits while it runs.
type LiveTask struct {
	Thread string `json:"thread"`
	Run    string `json:"run"`
	// Task is the task's pregel.Task.Key.
	Task string `json:"task"`
}

// LiveEmission is what a node emitted, on its way to those who listen while the node runs. The node's result has it too.
type LiveEmission struct {
	Thread string `json:"thread"`
	Run    string `json:"run"`
	// Task is the task's pregel.Task.Key.
	Task string `json:"task"`
	// Scheduled is when the task was scheduled, by the server's clock: later when it was given back and scheduled again.
	// Execution counts its executions since, from 1: one that a worker was lost with counts too. Sequence counts the
	// emissions of one execution from 0.
	Scheduled time.Time       `json:"scheduled"`
	Execution int32           `json:"execution"`
	Sequence  int             `json:"sequence"`
	Emission  pregel.Emission `json:"emission"`
}

// Of is the task that emitted it.
func (e LiveEmission) Of() LiveTask { return LiveTask{Thread: e.Thread, Run: e.Run, Task: e.Task} }
