package superstep

import (
	"errors"
	"reflect"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// RetryPolicy says how often a failed attempt of a node is repeated. The zero value of a field means its default.
type RetryPolicy struct {
	// InitialInterval is the wait before the second attempt; 0.5 s. Negative means none.
	InitialInterval time.Duration
	// BackoffFactor multiplies the wait after each attempt; 2.
	BackoffFactor float64
	// MaxInterval bounds the wait; 128 s.
	MaxInterval time.Duration
	// MaxAttempts counts all attempts, the first included; 3.
	MaxAttempts int
	// NoJitter leaves out the random 0 to 1 s added to each wait.
	NoJitter bool
	// RetryOn decides by the error; nil retries every error that is not permanent. [RetryIf] decides by its type.
	RetryOn func(error) bool
}

// RetryIf is a [RetryPolicy]'s RetryOn for errors of one type, wrapped or not: RetryOn: superstep.RetryIf[*net.OpError].
// What failed in a subgraph is data: tell those errors apart by the Type of a *[NodeError].
func RetryIf[E error](err error) bool {
	var wanted E
	return errors.As(err, &wanted)
}

// SubgraphMemory says how long a subgraph remembers its state.
type SubgraphMemory string

const (
	// SubgraphMemoryRun keeps it for one run of the subgraph's node, across interrupts: the default.
	SubgraphMemoryRun = SubgraphMemory(pregel.MemoryRun)
	// SubgraphMemoryThread keeps it between runs of the node, for the life of the thread.
	SubgraphMemoryThread = SubgraphMemory(pregel.MemoryThread)
	// SubgraphMemoryNone keeps nothing: after an interrupt the subgraph starts again from its input.
	SubgraphMemoryNone = SubgraphMemory(pregel.MemoryNone)
)

// NodeOption shapes one node.
type NodeOption interface {
	EntrypointOption
	applyNode(*nodeOptions)
}

type nodeOptions struct {
	retry     []RetryPolicy
	run, idle time.Duration
	late      bool
	taskQueue string
	memory    *SubgraphMemory
	cache     *CachePolicy
	approval  *nodeApproval
}

type nodeOption func(*nodeOptions)

func (o nodeOption) applyNode(n *nodeOptions) { o(n) }

func (o nodeOption) applyEntrypoint(e *entrypointOptions) { o(&e.node) }

// WithRetry repeats failed attempts of the node. Given several times, the first policy whose RetryOn takes the error
// decides. A subgraph node runs on from where its subgraph failed, so that what had finished in it does not run again;
// RetryOn is then given a *[NodeError].
func WithRetry(p RetryPolicy) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.retry = append(n.retry, p) })
}

// WithTimeout bounds one attempt of the node: run is its whole duration, idle the time without progress (a write, an
// emitted value, a finished Task or Effect, a heartbeat). 0 means no bound. An attempt out of time fails, and its
// context is cancelled.
func WithTimeout(run, idle time.Duration) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.run, n.idle = run, idle })
}

// WithDefer holds the node back until nothing else is left to run.
func WithDefer() NodeOption { return nodeOption(func(n *nodeOptions) { n.late = true }) }

// WithTaskQueue runs the node's tasks on the workers of that Temporal task queue. In memory it changes nothing.
func WithTaskQueue(queue string) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.taskQueue = queue })
}

// WithMemory says how long a subgraph node remembers its state. It is for AddSubgraph only.
func WithMemory(m SubgraphMemory) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.memory = &m })
}

// CompileOption shapes a graph when it is compiled.
type CompileOption interface {
	EntrypointOption
	applyCompile(*compileOptions)
}

type compileOptions struct {
	before, after []string
	input, output reflect.Type
	cache         Cache
	cacheGiven    bool
	durability    Durability
	fused         bool
}

type compileOption func(*compileOptions)

func (o compileOption) applyCompile(c *compileOptions) { o(c) }

func (o compileOption) applyEntrypoint(e *entrypointOptions) { o(&e.compile) }

// WithInterruptBefore stops every run before one of the nodes runs, or before each with [All]. The run goes on when it
// is invoked without input.
func WithInterruptBefore(nodes ...string) CompileOption {
	return compileOption(func(c *compileOptions) { c.before = append(c.before, nodes...) })
}

// WithInterruptAfter stops every run after one of the nodes ran, or after each with [All].
func WithInterruptAfter(nodes ...string) CompileOption {
	return compileOption(func(c *compileOptions) { c.after = append(c.after, nodes...) })
}

// WithInput makes the fields of In, a struct of channels, the graph's input, instead of all state fields. A field that
// the state does not have becomes a channel that only nodes made with AddInputNode read.
func WithInput[In any]() CompileOption {
	return compileOption(func(c *compileOptions) { c.input = reflect.TypeFor[In]() })
}

// WithOutput makes the fields of Out, a struct of channels, the graph's output, instead of all state fields. Results
// are still of the state's type; fields outside Out are unset in them.
func WithOutput[Out any]() CompileOption {
	return compileOption(func(c *compileOptions) { c.output = reflect.TypeFor[Out]() })
}
