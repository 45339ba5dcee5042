package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread/storage"
)

// defaultReturnBytes is what a task may return unannounced when its request does not say.
const defaultReturnBytes = 64 << 10

// makeRoom announces a large result, and returns why it cannot be returned: with what is in the run's history, and what other
// tasks are about to return, there would be more than the server keeps, which would end the run without a word and lose its
// state. Every task announces its result before it looks at those of the others, so of several that do not fit together at
// least the last sees all.
func (e *execution) makeRoom(ctx context.Context, outcome *pregel.Outcome) *pregel.NodeError {
	size, free := storage.Takes(e.nodes.converter, outcomeBytes(outcome)), cmp.Or(e.req.ReturnBytes, defaultReturnBytes)
	if size <= free || e.task.Announce(ctx, size) != nil {
		return nil // who has lost the task returns nothing
	}
	run := e.info.WorkflowExecution
	for {
		described, err := e.client.DescribeWorkflowExecution(ctx, run.ID, run.RunID)
		if err == nil {
			known, coming := int(described.GetWorkflowExecutionInfo().GetHistorySizeBytes()), 0
			for _, other := range described.GetPendingActivities() {
				var progress graphadapter.Progress
				if other.GetHeartbeatDetails() != nil && e.nodes.converter.FromPayloads(other.GetHeartbeatDetails(), &progress) != nil {
					progress.Returns = 0 // it is no node's
				}
				coming += cmp.Or(progress.Returns, free) // about as much as the others may return unannounced
			}
			return e.noRoom(known, coming)
		}
		if !unanswered(err) {
			return nil // the server does not tell: it is as large as it is
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(storeAgain):
		}
	}
}

func (e *execution) noRoom(known, coming int) *pregel.NodeError {
	if known+coming <= graphadapter.HistoryRoom {
		return nil
	}
	return &pregel.NodeError{Type: "HistoryFull", Graph: e.graph.NameOf(&e.req.Task), Node: e.req.Task.Node, Message: fmt.Sprintf("the results of "+
		"the tasks under way do not fit the run's history: it has %d bytes, they have %d, together at most %d can be stored; keep "+
		"large values outside and return references to them, or let fewer tasks return them in one superstep",
		known, coming, graphadapter.HistoryRoom)}
}

// outcomeBytes is about what an outcome takes in a history.
func outcomeBytes(o *pregel.Outcome) int {
	size := len(o.Ledger)
	for _, w := range o.Update {
		size += len(w.Value)
	}
	for _, t := range append(o.Goto[:len(o.Goto):len(o.Goto)], o.Routes...) {
		size += len(t.Arg)
	}
	for _, m := range o.Emitted {
		size += len(m.Value)
	}
	for _, q := range o.Questions {
		size += len(q.Value) + len(q.Schema) + len(q.Approval)
	}
	return size
}

// maxOutcomeBytes bounds a task's result that goes by value. The server refuses a payload of 2 MiB, and repeats the task for ever if
// one is sent all the same; some room is left for what a codec adds.
const maxOutcomeBytes = 1900 << 10

// mostReturned is how many bytes an activity of this worker may return: more than one payload where results go by reference.
func (n *Nodes) mostReturned() int {
	if n.returnsReferences() {
		return graphadapter.MaxResultBytes
	}
	return maxOutcomeBytes
}

// returnsReferences reports whether this worker's large results go by reference.
func (n *Nodes) returnsReferences() bool {
	return storage.Takes(n.converter, maxOutcomeBytes) < maxOutcomeBytes
}

// maxFailureBytes bounds what goes along with a failure. The server cuts off a failure that is larger than a payload may
// be, and with it the task's ledger.
const maxFailureBytes = maxOutcomeBytes - 64<<10

// sized refuses a result that the server would not store: as a failure of the node that names the size. void is how many
// emissions the result begins with that failed attempts made.
func (e *execution) sized(o pregel.Outcome, void int) (pregel.Outcome, error) {
	encoded, err := json.Marshal(o)
	switch small := withSmallLedger(o); {
	case err != nil:
		return pregel.Outcome{}, e.unstorable("InvalidUpdateError", "the result is not JSON: "+err.Error())
	case len(encoded) <= e.nodes.mostReturned():
		return o, nil
	case void > 0: // is the first to go
		o.Emitted = o.Emitted[void:]
		return e.sized(o, 0)
	case len(small.Ledger) < len(o.Ledger):
		return e.sized(small, 0)
	}
	return pregel.Outcome{}, e.unstorable("PayloadTooLarge", fmt.Sprintf("the result has %d bytes, at most %d can be stored: write a "+
		"reference to the value instead of the value", len(encoded), e.nodes.mostReturned()))
}

func (e *execution) unstorable(kind, why string) error {
	return e.failed(&pregel.NodeError{Type: kind, Graph: e.graph.NameOf(&e.req.Task), Node: e.req.Task.Node, Message: why}, nil)
}

// withSmallLedger is the outcome with a ledger without parameters and receipts.
func withSmallLedger(o pregel.Outcome) pregel.Outcome {
	if small, err := graphadapter.SlimLedger(o.Ledger); err == nil {
		o.Ledger = small
	}
	return o
}
