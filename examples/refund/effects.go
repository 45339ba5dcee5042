package refund

import (
	"context"
	"fmt"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
)

// refundEffect is the write that must happen once. The service makes a second call with the same key a no-op, and can
// be asked what it has under a key.
func refundEffect(pay Payments) *superstep.Effect[payments.Refund, payments.Receipt] {
	return &superstep.Effect[payments.Refund, payments.Receipt]{
		Name: "payments.refund", Target: superstep.TargetKeyed,
		Do: pay.Refund,
		Lookup: func(ctx context.Context, key string, _ payments.Refund) (superstep.Finding[payments.Receipt], error) {
			receipt, found, err := pay.FindRefund(ctx, key)
			return finding(receipt, found), err
		},
		Check: func(p payments.Refund, r payments.Receipt) error {
			if r.OrderID != p.OrderID || r.Amount != p.Amount {
				return fmt.Errorf("receipt %s is for %s of order %s, asked was %s of order %s",
					r.ID, money(r.Amount), r.OrderID, money(p.Amount), p.OrderID)
			}
			return nil
		},
		Compensate: func(ctx context.Context, key string, _ payments.Refund, r payments.Receipt) error {
			return pay.ReverseRefund(ctx, key, r.ID)
		},
	}
}

// notifyEffect tells the customer once.
func notifyEffect(pay Payments) *superstep.Effect[payments.Notification, payments.Delivery] {
	return &superstep.Effect[payments.Notification, payments.Delivery]{
		Name: "payments.notify", Target: superstep.TargetKeyed,
		Do: pay.Notify,
		Lookup: func(ctx context.Context, key string, _ payments.Notification) (superstep.Finding[payments.Delivery], error) {
			delivery, found, err := pay.FindNotification(ctx, key)
			return finding(delivery, found), err
		},
	}
}

func finding[R any](receipt R, found bool) superstep.Finding[R] {
	if !found {
		return superstep.Finding[R]{Status: superstep.FindingNotFound}
	}
	return superstep.Finding[R]{Status: superstep.FindingCommitted, Receipt: receipt}
}
