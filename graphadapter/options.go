package graphadapter

import (
	"context"
	"time"

	"errors"
	"sync"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// Durability says when a run's progress is durable. On Temporal it decides what is stored of tasks, and of their memoised calls
// and effects, before the run goes on; see package segment for the modes that run many supersteps in one activity. In memory
// it decides about checkpoints.
type Durability string

const (
	// DurabilitySync stores each call's record before the node goes on, and each checkpoint as it is made: the default.
	DurabilitySync Durability = "sync"
	// DurabilityAsync stores what tasks did with a later heartbeat; after a lost worker effects are looked up.
	DurabilityAsync Durability = "async"
	// DurabilityExit stores what tasks did when the activity that runs them ends; a run's history is one checkpoint.
	DurabilityExit Durability = "exit"
)

// IsRelaxed reports of a durability whether what a task or a superstep did may be stored later than the next begins.
func IsRelaxed(d Durability) bool { return d == DurabilityAsync || d == DurabilityExit }

// ModeOf is the durability of a graph's run, and whether consecutive supersteps of it are one activity in sync mode too:
// what the call says, else what the graph says; "" is [DurabilitySync]. A call that names a durability means that and
// nothing else: it is fused only if the call says so.
func ModeOf(spec *pregel.Spec, called Durability, fused bool) (Durability, bool) {
	if called != "" {
		return called, fused
	}
	return Durability(spec.Durability), fused || spec.Fused
}

// RunOptions shape one run of a [Thread].
type RunOptions struct {
	pregel.Options
	// Durability is the run's; "" means the graph's, see [ModeOf].
	Durability Durability
	// Checkpoint names the checkpoint to start from; "" means the newest.
	Checkpoint string
	// MaxConcurrency bounds the tasks that run at once; 0 means no bound.
	MaxConcurrency int
	// StepTimeout bounds a superstep's wall clock; 0 means no bound. A superstep out of time fails the run with
	// [*StepTimeoutError]; what had finished is kept.
	StepTimeout time.Duration
	// Context is a value that every node and branch of the run can read (LangGraph's run-scoped context), subgraphs
	// included; nil for none. It is no part of the state.
	Context pregel.Value
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string
	// Use says whether approvals may be acted upon; nil is closed.
	Use UseGate
	// Drain gives the reason for which the run is to stop before its next superstep; nil when nobody will ask.
	Drain <-chan string
	// Gate keeps the run from starting tasks while it is shut; nil is an open one. Graphs called from a node's code have none:
	// they are part of a task under way.
	Gate *Barrier
	Hold func(ctx context.Context, opened <-chan struct{}) error // waits at the shut gate
	// Decoded is where tasks find what others have decoded of their state, so that a long value is not decoded in each superstep.
	// Runs of one thread may share it, with those who read the output. What is in it is of whoever decodes. Nil: the run's own.
	Decoded *sync.Map
	// Observer is told what happens; nil is cheapest.
	Observer pregel.Observer
	// Emitted is told what nodes emit, as they do: one task at a time, but tasks in parallel. Observer is told again when
	// the task has ended. It may be nil.
	Emitted func(*pregel.Task, pregel.Emission)
}

// RunResult is how one run of a [Thread] ended, when it did not fail.
type RunResult struct {
	// Output are the output channels that have a value at the end; nil when the thread never had any.
	Output map[string]pregel.Value
	// Questions are open: the run waits for their answers.
	Questions []pregel.Question
	// Breakpoint says that the run stopped at a static interrupt.
	Breakpoint bool
	// Drained is why the run was asked to stop, "" when it was not.
	Drained string
	// Meter is what the thread has spent of its budget, nil without one. It is there too when the run failed.
	Meter *pregel.Meter
}

// StateUpdate is one write to a thread's state from outside, as if a node had returned it.
type StateUpdate = pregel.Update

// DefaultRecursionLimit bounds the supersteps of a run that names no limit: LangGraph's default.
const DefaultRecursionLimit = 10_007

// Engine returns the engine's options, with [DefaultRecursionLimit] where none is given.
func (o RunOptions) Engine() pregel.Options {
	if o.RecursionLimit == 0 {
		o.RecursionLimit = DefaultRecursionLimit
	}
	return o.Options
}

// UseGate says whether a decision may be acted upon now: (*approval.Gate).Use is one. An error means that it cannot say.
type UseGate func(ctx context.Context, check approval.UseCheck) (approval.Ruling, error)

// Barrier keeps a run from starting tasks while it is shut; those under way end. The zero Barrier is open. It is safe for
// concurrent use.
type Barrier struct {
	// Held is called when the run stands still at the gate, with the thread to be looked at and changed until it opens. It
	// may be nil.
	Held func(*pregel.Snapshot)

	mu     sync.Mutex
	opened chan struct{} // closed when the gate opens; nil while it is open
}

// ErrSuperseded is how a run ends whose thread was updated while it stood at a shut [Barrier].
var ErrSuperseded = errors.New("superstep: the thread was updated while the run was held")

// Shut shuts the gate.
func (g *Barrier) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// Open opens the gate.
func (g *Barrier) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// Opened returns what is closed when the gate opens, nil while it is open.
func (g *Barrier) Opened() <-chan struct{} {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}
