package activities

import (
	"encoding/json"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// maxOutcomeBytes bounds a task's result. The server refuses a payload of 2 MiB, and repeats the task for ever if one
// is sent all the same; some room is left for what a codec adds.
const maxOutcomeBytes = 1900 << 10

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
	case len(encoded) <= maxOutcomeBytes:
		return o, nil
	case void > 0: // is the first to go
		o.Emitted = o.Emitted[void:]
		return e.sized(o, 0)
	case len(small.Ledger) < len(o.Ledger):
		return e.sized(small, 0)
	}
	return pregel.Outcome{}, e.unstorable("PayloadTooLarge", fmt.Sprintf("the result has %d bytes, at most %d can be stored: write a "+
		"reference to the value instead of the value", len(encoded), maxOutcomeBytes))
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
