package refund

import (
	"fmt"
	"time"

	"superstep.dev/approval"
	"superstep.dev/examples/refund/payments"
)

// Option changes the graph that [Graph] returns.
type Option func(*options)

type options struct{ approvals bool }

// WithApprovals makes refunds above the limit wait for an approval of the refund itself, right before it is made, instead
// of an answer to a question: with the exact amount, a signed token of who approves, and the policy of approvals.yaml. The
// node "approval" then never runs.
func WithApprovals() Option { return func(o *options) { o.approvals = true } }

// aboveLimit asks for an approval of refunds above limit, in cents.
func aboveLimit(limit int64) func(payments.Refund) (approval.Action, bool) {
	return func(p payments.Refund) (approval.Action, bool) {
		return approval.Action{
			Summary: fmt.Sprintf("Refund %s to order %s", money(p.Amount), p.OrderID), Risk: approval.RiskHigh,
			Permissions: []string{"refund.write"}, Undo: "cancel the run with --mode compensate",
			Within: (4 * time.Hour).Milliseconds(), Warn: time.Hour.Milliseconds(), Silence: approval.SilenceDeny,
		}, p.Amount > limit
	}
}
