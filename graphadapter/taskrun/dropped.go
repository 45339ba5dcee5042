package taskrun

import "superstep.dev/graphadapter/pregel"

// Dropped is the outcome of a task whose superstep is dropped: as that of a task which was cancelled, with what it did outside. A node that
// does not look at its context ends as if nothing had happened.
func Dropped(graph, node string, o pregel.Outcome) pregel.Outcome {
	if o.Error != nil || o.Yielded || len(o.Questions) > 0 {
		return o
	}
	failure := pregel.NodeError{Type: pregel.CancelledType, Message: "cancelled", Graph: graph, Node: node}
	return pregel.Outcome{Error: &failure, Emitted: o.Emitted, Ledger: o.Ledger, Kept: o.Kept, Spent: o.Spent}
}
