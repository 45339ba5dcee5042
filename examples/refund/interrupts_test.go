package refund_test

import (
	"testing"

	"superstep.dev/examples/refund"
	"superstep.dev/graphtest"
)

// TestRefundGoesOnFromEverywhere interrupts the run at every node, in every way.
func TestRefundGoesOnFromEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("a run for each node, in every mode")
	}
	graphtest.Interrupts(t, refund.Graph(desk{25_000}, refund.DefaultLimit), map[string]any{"order_id": "o-7"},
		graphtest.Answer(true), graphtest.Parallel())
}
