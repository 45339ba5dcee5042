package pregel

// SpecVersion is the version that this engine writes: of the Spec's format, and of the rules that its runs follow. An engine
// refuses a Spec of a newer version with [SpecVersionError]; it never guesses.
const SpecVersion = 1

// The reserved node names of a graph's entry and exit. They are LangGraph's own strings and visible in stored data.
const (
	Start = "__start__"
	End   = "__end__"
	// AsInput and AsCopy are the pseudo nodes of updates from outside: see Program.Edit.
	AsInput = "__input__"
	AsCopy  = "__copy__"
	// All stands for every node in an interrupt list.
	All = "*"
)

// Spec is a graph as plain data: it travels in a run's input, so that a run goes on with the graph it was started with
// whatever a later deploy changes. Functions are named, never held: a node by its name, a branch by its source and
// ordinal, a reducer by its versioned name.
type Spec struct {
	Version  int           `json:"version"`
	Name     string        `json:"name"`
	Channels []ChannelSpec `json:"channels"`
	Nodes    []NodeSpec    `json:"nodes"`
	Edges    []Edge        `json:"edges,omitempty"`
	Joins    []Join        `json:"joins,omitempty"`
	Branches []Branch      `json:"branches,omitempty"`
	// Input and Output are the channels accepted from and shown to the caller; nil means all, empty means none.
	Input  []string `json:"input"`
	Output []string `json:"output"`
	// InterruptBefore and InterruptAfter are static breakpoints: node names, or [All].
	InterruptBefore []string `json:"interrupt_before,omitempty"`
	InterruptAfter  []string `json:"interrupt_after,omitempty"`
	// Durability and Fused are for runs that ask for nothing else; "" is the driver's default. The engine does the same
	// whatever they are, and those of a subgraph mean nothing.
	Durability string `json:"durability,omitempty"`
	Fused      bool   `json:"fused,omitempty"`
	// Function says that the graph is one function; see [FunctionSpec].
	Function bool `json:"function,omitempty"`
	// Memory says how long a graph used as a subgraph remembers.
	Memory Memory `json:"memory,omitempty"`
	// Subgraphs are the graphs that nodes name in NodeSpec.Subgraph.
	Subgraphs map[string]*Spec `json:"subgraphs,omitempty"`
}

// Memory is a subgraph's checkpointer mode.
type Memory string

const (
	// MemoryRun keeps a subgraph's state for one run of its node: the default (LangGraph's checkpointer=None).
	MemoryRun Memory = ""
	// MemoryThread keeps it between runs of its node, for the life of the thread (checkpointer=True). A node whose subgraph
	// has such a one in it, however deep, may not run twice in one superstep: an *InvalidUpdateError of the second task.
	MemoryThread Memory = "thread"
	// MemoryNone keeps nothing: after an interrupt the subgraph starts again from its input (checkpointer=False).
	MemoryNone Memory = "none"
)

// Kind is a channel's update rule.
type Kind string

// The channel kinds; the rules are those of section 1 of LangGraph's channel semantics.
const (
	KindLast      Kind = "last"      // one write a superstep; kept until overwritten
	KindAny       Kind = "any"       // last write in task order; emptied by a superstep without one
	KindEphemeral Kind = "ephemeral" // visible only in the superstep after the write
	KindUntracked Kind = "untracked" // kept during a run, never part of a checkpoint that leaves the process
	KindTopic     Kind = "topic"     // the values written in the last superstep, or all of them with Accumulate
	KindReduce    Kind = "reduce"    // folded by a named Reducer
)

// ChannelSpec declares one state key.
type ChannelSpec struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Unguarded lets several writes of one superstep through on ephemeral and untracked channels; the last one stays.
	Unguarded bool `json:"unguarded,omitempty"`
	// Accumulate makes a topic keep its values.
	Accumulate bool `json:"accumulate,omitempty"`
	// Reducer names the reducer of a KindReduce channel, with its version: "append/v1".
	Reducer string `json:"reducer,omitempty"`
	// Default is a reduce channel's value before the first write; nil means the reducer's zero value.
	Default Value `json:"default,omitempty"`
}

// NodeSpec declares one node.
type NodeSpec struct {
	Name string `json:"name"`
	// Reads are the channels of the node's input; nil means every channel.
	Reads []string `json:"reads,omitempty"`
	// Defer holds the node back until nothing else is left to run.
	Defer bool `json:"defer,omitempty"`
	// Subgraph names the graph in Spec.Subgraphs that this node runs.
	Subgraph string `json:"subgraph,omitempty"`
	// Retried says that a subgraph node has a retry policy: when the subgraph fails, a task with Task.Retry asks whoever
	// runs functions what the policy says. (A function node's policy is entirely the runner's business.)
	Retried bool `json:"retried,omitempty"`
	// ErrorHandler names the node that takes over when this one has failed for good: in the same superstep, with the
	// failed task's input. This node's edges then do not fire, only what the handler writes and where it goes. Breakpoints
	// and a run's end (CancelledType) are no failures. (Section 7.4 of the semantics.)
	ErrorHandler string `json:"error_handler,omitempty"`
	// Handler says that the node is an error handler: no edge leads to it or from it.
	Handler bool `json:"handler,omitempty"`
	// TaskQueue pins the node's tasks to the workers of that queue; empty means the run's own queue.
	TaskQueue string `json:"task_queue,omitempty"`
	// RunTimeout and IdleTimeout bound one attempt of the node, in milliseconds; 0 means no bound.
	RunTimeout  int64 `json:"run_timeout_ms,omitempty"`
	IdleTimeout int64 `json:"idle_timeout_ms,omitempty"`
}

// Edge makes To run after From.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Join makes To run once after all of From have run.
type Join struct {
	From []string `json:"from"`
	To   string   `json:"to"`
}

// Branch is a conditional edge: a function of the source's own state, named by source and Ordinal (its position among
// the source's branches, from 0). Each route the function returns is a label in Labels, or without Labels a node name.
type Branch struct {
	From    string            `json:"from"`
	Ordinal int               `json:"ordinal"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Targets are the declared possible targets; nil with nil Labels means any node.
	Targets []string `json:"targets,omitempty"`
}

// BranchesOf returns the branches of a node in their order.
func (s *Spec) BranchesOf(node string) []Branch {
	var out []Branch
	for _, b := range s.Branches {
		if b.From == node {
			out = append(out, b)
		}
	}
	return out
}

// HasOwnReducers reports whether a channel of the graph, or of one of its subgraphs, has a reducer whose name
// is none of the engine's: nobody knows how long it takes.
func (s *Spec) HasOwnReducers() bool {
	for _, c := range s.Channels {
		if _, own := Builtin(c.Reducer); c.Reducer != "" && !own {
			return true
		}
	}
	for _, name := range sortedKeys(s.Subgraphs) {
		if s.Subgraphs[name].HasOwnReducers() {
			return true
		}
	}
	return false
}

// The channels of a graph that is one function.
const (
	FunctionInput    = "input"    // of the run; gone once the function has ended
	FunctionOutput   = "output"   // what the function returned last
	FunctionPrevious = "previous" // what it keeps for the thread's next run
)

// FunctionSpec returns the Spec of a graph that is one function, its only node (section 11 of the semantics). Where other
// graphs take and show objects of channels, this one's input and the values of an update are any JSON except null: the
// function's argument, and what it is to have returned and kept.
func FunctionSpec(name string, node NodeSpec) *Spec {
	node.Reads = []string{FunctionInput, FunctionPrevious}
	return &Spec{Version: SpecVersion, Name: name, Function: true,
		Channels: []ChannelSpec{{Name: FunctionInput, Kind: KindEphemeral}, {Name: FunctionOutput, Kind: KindLast},
			{Name: FunctionPrevious, Kind: KindLast}},
		Nodes: []NodeSpec{node}, Edges: []Edge{{From: Start, To: node.Name}},
		Input: []string{FunctionInput}, Output: []string{FunctionOutput}}
}

// FunctionWrites are the writes of a function that returned and keeps these.
func FunctionWrites(output, kept Value) []Write {
	return []Write{{Channel: FunctionOutput, Value: output}, {Channel: FunctionPrevious, Value: kept}}
}
