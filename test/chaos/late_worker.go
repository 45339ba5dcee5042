package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
)

const lateName = "late"

// lateGraph is payoutGraph with a call that takes its time before it sends, written as l has it.
func lateGraph(pay *payments.Client, l late) *superstep.Graph[payoutState] {
	if l.guarded {
		pay = pay.Over(superstep.GuardedTransport(nil))
	}
	payout := payoutEffect(pay, l.send(pay))
	payout.Name = "payments.late"
	if l.asks {
		payout.AfterLoss = superstep.AfterLossAsk
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
