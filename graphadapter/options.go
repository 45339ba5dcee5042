package graphadapter

import "superstep.dev/graphadapter/pregel"

// Durability says when a run's progress is durable; see the modes.
type Durability string

const (
	// DurabilitySync stores each task's writes before the next superstep: the default.
	DurabilitySync Durability = "sync"
	// DurabilityAsync stores supersteps in the background.
	DurabilityAsync Durability = "async"
	// DurabilityExit stores only the end of a run: its history is one checkpoint.
	DurabilityExit Durability = "exit"
)

// RunOptions shape one run of a [Thread].
type RunOptions struct {
	pregel.Options
	Durability Durability
	// Checkpoint names the checkpoint to start from; "" means the newest.
	Checkpoint string
	// Observer is told what happens; nil is cheapest.
	Observer pregel.Observer
}

// RunResult is how one run of a [Thread] ended, when it did not fail.
type RunResult struct {
	// Output are the output channels at the end; nil when the run never had any.
	Output map[string]pregel.Value
	// Questions are open: the run waits for their answers.
	Questions []pregel.Question
	// Breakpoint says that the run stopped at a static interrupt.
	Breakpoint bool
}

// StateUpdate is one write to a thread's state from outside, as if a node had returned it.
type StateUpdate struct {
	// Values is the update; nil routes on without writing.
	Values []pregel.Write
	// AsNode is the node whose edges and branches decide what comes next; "" infers it, pregel.End finishes.
	AsNode string
}
