// Package refund is Superstep's example of a graph that moves money: it reads an order, works out what to give back,
// asks a person when that is much, refunds exactly once whatever crashes, and tells the customer.
//
//	START → read_order → calculate ─┬─ over the limit ─→ approval ─┬─ yes ─→ commit_refund → notify → END
//	                                └─ up to the limit ────────────│──────────↗              ↗
//	                                                               └─ no ───────────────────↗
package refund

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
)

// DefaultLimit is the amount, in cents, above which a person is asked.
const DefaultLimit = 10_000

// Payments is what the graph needs of the payments service; payments.Client is one.
type Payments interface {
	Order(ctx context.Context, id string) (payments.Order, error)
	Refund(ctx context.Context, key string, r payments.Refund) (payments.Receipt, error)
	FindRefund(ctx context.Context, key string) (payments.Receipt, bool, error)
	ReverseRefund(ctx context.Context, key, receiptID string) error
	Notify(ctx context.Context, key string, n payments.Notification) (payments.Delivery, error)
	FindNotification(ctx context.Context, key string) (payments.Delivery, bool, error)
}

// Input is what a run starts with.
type Input struct {
	// OrderID names the order to refund.
	OrderID superstep.Value[string] `json:"order_id"`
}

// State is the graph's state. Amounts are in cents.
type State struct {
	Input
	Order    superstep.Value[payments.Order]   `json:"order"`
	Amount   superstep.Value[int64]            `json:"amount"`
	Approved superstep.Value[bool]             `json:"approved"`
	Receipt  superstep.Value[payments.Receipt] `json:"receipt"`
	Log      superstep.List[string]            `json:"log"`
}

// Graph returns the graph over a payments service. A person is asked for refunds above limit, in cents.
func Graph(pay Payments, limit int64, opts ...Option) *superstep.Graph[State] {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	refund, notify := refundEffect(pay), notifyEffect(pay)
	ask := limit
	if o.approvals {
		refund.Approval, ask = aboveLimit(limit), math.MaxInt64
	}
	g := superstep.NewStateGraph[State]("refund")
	g.AddEffect(refund, notify)
	g.AddNode("read_order", readOrder(pay), superstep.WithRetry(again), superstep.WithTimeout(10*time.Second, 0))
	g.AddNode("calculate", calculate(limit))
	g.AddNode("approval", askPerson)
	g.AddNode("commit_refund", commitRefund(refund), superstep.WithRetry(again), superstep.WithTimeout(time.Minute, 0))
	g.AddNode("notify", tellCustomer(notify), superstep.WithRetry(again), superstep.WithTimeout(time.Minute, 0))
	g.AddEdge(superstep.Start, "read_order")
	g.AddEdge("read_order", "calculate")
	g.AddConditionalEdges("calculate", overLimit(ask), "approval", "commit_refund")
	g.AddConditionalEdges("approval", decided, "commit_refund", "notify")
	g.AddEdge("commit_refund", "notify")
	g.AddEdge("notify", superstep.End)
	return g.MustCompile(superstep.WithInput[Input]())
}

// again repeats what the payments service could not do for the moment, and not what it refused.
var again = superstep.RetryPolicy{
	InitialInterval: 200 * time.Millisecond, MaxAttempts: 5, MaxInterval: 5 * time.Second, NoJitter: true,
	RetryOn: func(err error) bool {
		var refused *payments.RejectedError
		return !errors.As(err, &refused)
	},
}

func readOrder(pay Payments) func(context.Context, State) (State, error) {
	return func(ctx context.Context, s State) (State, error) {
		order, err := pay.Order(ctx, s.OrderID.Get())
		if err != nil {
			return s, err
		}
		s.Order.Set(order)
		s.Log.Append("paid " + money(order.Amount))
		return s, superstep.Emit(ctx, "paid "+money(order.Amount))
	}
}

func calculate(limit int64) func(context.Context, State) (State, error) {
	return func(ctx context.Context, s State) (State, error) {
		amount := s.Order.Get().Amount
		s.Amount.Set(amount)
		if amount > limit {
			return s, superstep.Emit(ctx, money(amount)+" is over the limit")
		}
		return s, superstep.Emit(ctx, money(amount)+" needs no approval")
	}
}

func overLimit(limit int64) func(context.Context, State) ([]superstep.Target, error) {
	return func(_ context.Context, s State) ([]superstep.Target, error) {
		if s.Amount.Get() > limit {
			return superstep.To("approval"), nil
		}
		return superstep.To("commit_refund"), nil
	}
}

func askPerson(ctx context.Context, s State) (State, error) {
	yes, err := superstep.Interrupt[bool](ctx,
		fmt.Sprintf("Refund %s to order %s?", money(s.Amount.Get()), s.OrderID.Get()))
	if err != nil {
		return s, err
	}
	s.Approved.Set(yes)
	if yes {
		s.Log.Append("approved")
		return s, superstep.Emit(ctx, "approved")
	}
	s.Log.Append("declined")
	return s, superstep.Emit(ctx, "declined")
}

func decided(_ context.Context, s State) ([]superstep.Target, error) {
	if s.Approved.Get() {
		return superstep.To("commit_refund"), nil
	}
	return superstep.To("notify"), nil
}

func commitRefund(refund *superstep.Effect[payments.Refund, payments.Receipt]) func(context.Context, State) (State, error) {
	return func(ctx context.Context, s State) (State, error) {
		receipt, err := refund.Call(ctx, payments.Refund{OrderID: s.OrderID.Get(), Amount: s.Amount.Get()})
		var rejected *superstep.RejectedError
		if errors.As(err, &rejected) {
			s.Log.Append("declined")
			return s, superstep.Emit(ctx, "declined")
		}
		if err != nil {
			return s, err
		}
		s.Receipt.Set(receipt)
		s.Amount.Set(receipt.Amount) // an approver may have changed it
		s.Log.Append("refunded " + receipt.ID)
		return s, superstep.Emit(ctx, "refunded "+receipt.ID)
	}
}

func tellCustomer(notify *superstep.Effect[payments.Notification, payments.Delivery]) func(context.Context, State) (State, error) {
	return func(ctx context.Context, s State) (State, error) {
		text := "Your refund of " + money(s.Amount.Get()) + " is on its way."
		if !s.Receipt.IsSet() {
			text = "We cannot refund order " + s.OrderID.Get() + "."
		}
		if _, err := notify.Call(ctx, payments.Notification{OrderID: s.OrderID.Get(), Text: text}); err != nil {
			return s, err
		}
		s.Log.Append("customer told")
		return s, nil
	}
}

// money prints cents as people write them.
func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
