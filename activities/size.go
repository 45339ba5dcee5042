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

// sized puts what earlier attempts streamed before a result, and refuses one that the server would not store: as a
// failure of the node that names the size.
func (e *execution) sized(outcome pregel.Outcome, before []pregel.Emission) (pregel.Outcome, error) {
	whole := outcome
	whole.Emitted = append(before, outcome.Emitted...)
	encoded, err := json.Marshal(whole)
	if err != nil {
		return pregel.Outcome{}, e.failed(&pregel.NodeError{Type: "InvalidUpdateError", Graph: e.graphName(),
			Node: e.req.Task.Node, Message: "the result is not JSON: " + err.Error()})
	}
	if len(encoded) > maxOutcomeBytes && len(before) > 0 {
		return e.sized(outcome, nil) // what void attempts streamed is the first to go
	}
	if len(encoded) > maxOutcomeBytes {
		if small := withSmallLedger(outcome); len(small.Ledger) < len(outcome.Ledger) {
			return e.sized(small, before)
		}
		return pregel.Outcome{}, e.failed(&pregel.NodeError{Type: "PayloadTooLarge", Graph: e.graphName(),
			Node: e.req.Task.Node, Message: fmt.Sprintf("the result has %d bytes, at most %d can be stored: write a "+
				"reference to the value instead of the value", len(encoded), maxOutcomeBytes)})
	}
	return whole, nil
}

// withSmallLedger is the outcome with a ledger without parameters and receipts.
func withSmallLedger(o pregel.Outcome) pregel.Outcome {
	if small, err := graphadapter.SlimLedger(o.Ledger); err == nil {
		o.Ledger = small
	}
	return o
}
