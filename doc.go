// Package superstep runs state graphs as durable tasks: the nodes are Go functions, the state is a struct of channels,
// and a run goes on where it stopped after a crash, a deploy or a week of waiting for a person.
//
// A graph is built with [NewStateGraph] over a state type:
//
//	type State struct {
//		Amount superstep.Value[int64] `json:"amount"`
//		Log    superstep.List[string] `json:"log"`
//	}
//
//	g := superstep.NewStateGraph[State]("refund")
//	g.AddNode("calculate", func(ctx context.Context, s State) (State, error) {
//		s.Log.Append(fmt.Sprintf("paid %d", s.Amount.Get()))
//		return s, nil
//	})
//	g.AddEdge(superstep.Start, "calculate")
//	graph, err := g.Compile()
//
// A run proceeds in supersteps (LangGraph's model, after Google's Pregel): all nodes that are due run at the same time
// on the same state, then their writes are applied together, in task order, by the rule of each field's type. A node
// returns the state it was given with its writes in it; only the fields that it wrote count.
//
// Nodes may run again after a crash, a retry or an answer. What a node does to the outside belongs in a Task, whose
// result is remembered, or an Effect, a write that is looked up before it is repeated. A node asks a person with
// Interrupt, and the run waits for the answer without holding a process.
//
// Work that reads best as plain code is a graph of one function: [NewEntrypoint].
//
// A thread is a named run that remembers its state: [Graph.Thread] over a [Runtime], which is [Memory] in this process
// or a Client on Temporal. [Graph.Invoke] runs a graph here and now, without a thread.
package superstep
