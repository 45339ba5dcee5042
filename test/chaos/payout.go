package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
)

// payoutState is an order to pay back through a service that does not know keys.
type payoutState struct {
	OrderID superstep.Value[string] `json:"order_id"`
	Receipt superstep.Value[string] `json:"receipt"`
}

const (
	payoutName    = "payout"
	payoutTimeout = 2 * time.Second
	payoutSettle  = time.Second
)

// payoutGraph refunds through a target that would do it twice when asked twice: each call has a key of its own.
func payoutGraph(pay *payments.Client, f *fate) *superstep.Graph[payoutState] {
	payout := payoutEffect(pay, func(ctx context.Context, _ string, r payments.Refund) (string, error) {
		if f.holding {
			tell(notice{What: noticeHeld, Thread: r.OrderID})
			<-f.thaw // and then ctx says whether it is too late
		}
		receipt, err := pay.Refund(ctx, fmt.Sprintf("%s/%d/%d", r.OrderID, os.Getpid(), time.Now().UnixNano()), r)
		return receipt.ID, err
	})
	return paying(payoutName, payout, superstep.WithCallTimeout(payoutTimeout), superstep.WithSettleTime(payoutSettle))
}

// payoutEffect is the write of those who refund that way.
func payoutEffect(pay *payments.Client, do func(context.Context, string, payments.Refund) (string, error)) *superstep.Effect[payments.Refund, string] {
	return &superstep.Effect[payments.Refund, string]{
		Name: "payments.payout", Target: superstep.TargetLookupOnly, Do: do,
		Lookup: func(ctx context.Context, _ string, r payments.Refund) (superstep.Finding[string], error) {
			all, err := pay.Refunds(ctx, r.OrderID)
			if err != nil || len(all) == 0 {
				return superstep.Finding[string]{Status: superstep.FindingNotFound}, err
			}
			return superstep.Finding[string]{Status: superstep.FindingCommitted, Receipt: all[0].ID}, nil
		},
	}
}

// paying is a graph with one node, which makes the write.
func paying(name string, payout *superstep.Effect[payments.Refund, string], opts ...superstep.CallOption) *superstep.Graph[payoutState] {
	g := superstep.NewStateGraph[payoutState](name)
	g.AddEffect(payout)
	g.AddNode("pay", func(ctx context.Context, s payoutState) (payoutState, error) {
		receipt, err := payout.Call(ctx, payments.Refund{OrderID: s.OrderID.Get(), Amount: smallAmount}, opts...)
		if err != nil {
			return s, err
		}
		s.Receipt.Set(receipt)
		return s, nil
	}, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaxAttempts: 20}))
	g.AddEdge(superstep.Start, "pay")
	g.AddEdge("pay", superstep.End)
	return g.MustCompile()
}

const lateName = "late"

// lateGraph is payoutGraph with a call that takes its time before it sends, written as l has it.
func lateGraph(pay *payments.Client, l late) *superstep.Graph[payoutState] {
	if l.guarded {
		pay = pay.Over(superstep.GuardedTransport(nil))
	}
	payout := payoutEffect(pay, l.send(pay))
	payout.Name = "payments.late"
	if l.asks {
		payout.OnLoss = superstep.OnLossAsk
	}
	return paying(lateName, payout, superstep.WithCallTimeout(lateTimeout), superstep.WithSettleTime(lateSettle))
}

// send is Do. It says when it begins, when it sends and when it is back.
func (l late) send(pay *payments.Client) func(context.Context, string, payments.Refund) (string, error) {
	return func(ctx context.Context, _ string, r payments.Refund) (string, error) {
		tell(notice{What: noticeHeld, Thread: r.OrderID})
		defer func() { tell(notice{What: noticeBack, Thread: r.OrderID}) }()
		if l.deaf {
			ctx = context.WithoutCancel(ctx)
		}
		select {
		case <-time.After(latePrepare):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		tell(notice{What: noticeSends, Thread: r.OrderID})
		receipt, err := pay.Refund(ctx, fmt.Sprintf("%s/%d/%d", r.OrderID, os.Getpid(), time.Now().UnixNano()), r)
		return receipt.ID, err
	}
}
