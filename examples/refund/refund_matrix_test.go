package refund_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"superstep.dev/examples/refund"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/graphtest"
)

// desk is a payments service that answers at once. What it has already written is the matrix's to know.
type desk struct{ cents int64 }

func (d desk) Order(_ context.Context, id string) (payments.Order, error) {
	return payments.Order{ID: id, Amount: d.cents, Currency: "EUR"}, nil
}

func (desk) Refund(_ context.Context, key string, r payments.Refund) (payments.Receipt, error) {
	return payments.Receipt{ID: "rf-" + key[:6], OrderID: r.OrderID, Amount: r.Amount, Key: key}, nil
}

func (desk) Notify(_ context.Context, key string, n payments.Notification) (payments.Delivery, error) {
	return payments.Delivery{ID: "n-" + key[:6], OrderID: n.OrderID, Text: n.Text, Key: key}, nil
}

var errNotAsked = errors.New("the matrix looks up in its own books")

func (desk) FindRefund(context.Context, string) (payments.Receipt, bool, error) {
	return payments.Receipt{}, false, errNotAsked
}

func (desk) FindNotification(context.Context, string) (payments.Delivery, bool, error) {
	return payments.Delivery{}, false, errNotAsked
}

func (desk) ReverseRefund(context.Context, string, string) error { return errNotAsked }

// TestNoCrashRefundsTwice crashes the worker everywhere, and once more after each crash.
func TestNoCrashRefundsTwice(t *testing.T) {
	for _, yes := range []bool{true, false} {
		t.Run(fmt.Sprint("over the limit ", yes), func(t *testing.T) {
			graphtest.Matrix(t, refund.Graph(desk{25_000}, refund.DefaultLimit), map[string]any{"order_id": "o-7"},
				graphtest.Answer(yes), graphtest.Pairs())
		})
	}
	t.Run("below the limit", func(t *testing.T) {
		graphtest.Matrix(t, refund.Graph(desk{4_200}, refund.DefaultLimit), map[string]any{"order_id": "o-7"})
	})
}
