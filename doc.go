// Package superstep runs state graphs as durable tasks: the nodes are Go functions, the state is a struct of channels,
// and a run goes on where it stopped after a crash, a deploy or a week of waiting for a person.
//
// A graph is built with [NewStateGraph] over a state type:
//
//	type State struct {
//		Amount superstep.Value[int64] `json:"amount"`
//		Log    superstep.List[string] `json:"log"`
//	}
//	g := superstep.NewStateGraph[State]("refund")
//	g.AddNode("calculate", func(ctx context.Context, s State) (State, error) {
//		s.Log.Append(fmt.Sprintf("paid %d", s.Amount.Get()))
//		return s, nil
//	})
//	g.AddEdge(superstep.Start, "calculate")
//	graph, err := g.Compile()
//
// A run proceeds in supersteps (LangGraph's model): all nodes that are due run at the same time
// on the same state, then their writes are applied together, in task order, by the rule of each field's type. A node
// returns the state it was given with its writes in it; only the fields that it wrote count.
//
// Nodes may run again after a crash, a retry or an answer. What a node does to the outside belongs in a Task, whose
// result is remembered, or an Effect, a write that is looked up before it is repeated. A node asks a person with
// Interrupt, and the run waits for the answer without holding a process.
//
// Work that reads best as plain code is a graph of one function: [NewEntrypoint]. A thread is a named run that remembers its
// state: [Graph.Thread] over a [Runtime], which is [Memory] in this process or a [Client] on Temporal. What is said of threads
// from outside is in package thread, chat messages are in package message, and leaders of jobs in package job/leader.
package superstep

// Where things are:
//
//	channels*.go, reducer.go       the fields of a state, and the rules by which writes are applied
//	state.go, input.go             a state struct as channels; input as people and programs write it
//	node.go                        a node's function with its types taken off, and where a node goes next
//	stategraph.go, entrypoint.go   how a graph is declared
//	options.go, runoptions.go      options of nodes, graphs and runs
//	compile*.go                    what is wrong with a graph, and the graph as the engine and its drivers take it
//	taskcall.go, effect.go         what a node calls: tasks and effects
//	store.go                       long-term memory, to which nodes write by an effect
//	question.go                    what a node asks: people, approvals and events
//	graph.go, thread*.go           a compiled graph, and its threads
//	client*.go, memory.go          the runtimes: thin faces of internal/remote and internal/memory
//	worker.go, embed.go            serving graphs, and running them from workflows and schedules
//	errors.go                      the errors of graphs, nodes and runs
