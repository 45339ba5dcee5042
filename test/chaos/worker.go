package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/examples/refund"
	"superstep.dev/examples/refund/payments"
)

// workerCommand makes this program a worker.
const workerCommand = "worker"

// serve serves the graphs as fate has it, and returns the exit code.
func serve(args []string) int {
	f := flag.NewFlagSet(workerCommand, flag.ContinueOnError)
	address := f.String("address", "", "host:port of the Temporal server")
	queue := f.String("queue", "", "task queue")
	pay := f.String("payments", "", "URL of the payments service")
	moment := f.String("die", "", "the moment at which to hang until the kill")
	count := f.Int64("count", 1, "how often the moment comes before")
	holding := f.Bool("hold", false, "make refunds wait for SIGCONT")
	lateAs := f.String("late", lates[0].name, "how late calls are written")
	if err := f.Parse(args); err != nil {
		return 2
	}
	l, err := lateNamed(*lateAs)
	if err != nil {
		return 2
	}
	if err := work(*address, *queue, *pay, l, newFate(*moment, *count, *holding)); err != nil {
		fmt.Fprintln(os.Stderr, "chaos worker:", err)
		return 1
	}
	return 0
}

func work(address, queue, payURL string, l late, f *fate) error {
	ctx := context.Background()
	temporal, err := client.DialContext(ctx, client.Options{HostPort: address, Logger: silent{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(f.intercept)},
	}})
	if err != nil {
		return err
	}
	defer temporal.Close()
	pay, err := payments.NewClient(payURL)
	if err != nil {
		return err
	}
	w, err := superstep.NewWorker(temporal, superstep.WorkerConfig{
		TaskQueue: queue,
		Graphs: []superstep.Runnable{refund.Graph(fatedPayments{pay, f}, refund.DefaultLimit), payoutGraph(pay, f),
			lateGraph(pay, l)},
		OnReady: func() { tell(notice{What: noticeReady}) },
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// fatedPayments is the payments service with moments before and after its calls.
type fatedPayments struct {
	*payments.Client
	fate *fate
}

// Order reads an order.
func (p fatedPayments) Order(ctx context.Context, id string) (out payments.Order, err error) {
	err = p.fate.around(pointOrder, func() error {
		out, err = p.Client.Order(ctx, id)
		return err
	})
	return out, err
}

// Refund gives money back. A call that was held is made after the thaw whatever has happened meanwhile, as one would be
// that was on its way already.
func (p fatedPayments) Refund(ctx context.Context, key string, r payments.Refund) (out payments.Receipt, err error) {
	if p.fate.holding {
		tell(notice{What: noticeHeld, Thread: r.OrderID})
		<-p.fate.thaw
		ctx = context.WithoutCancel(ctx)
	}
	err = p.fate.around(pointRefund, func() error {
		out, err = p.Client.Refund(ctx, key, r)
		return err
	})
	return out, err
}

// FindRefund looks a refund up.
func (p fatedPayments) FindRefund(ctx context.Context, key string) (out payments.Receipt, found bool, err error) {
	err = p.fate.around(pointLookup, func() error {
		out, found, err = p.Client.FindRefund(ctx, key)
		return err
	})
	return out, found, err
}

// Notify tells a customer something.
func (p fatedPayments) Notify(ctx context.Context, key string, n payments.Notification) (out payments.Delivery, err error) {
	err = p.fate.around(pointNotify, func() error {
		out, err = p.Client.Notify(ctx, key, n)
		return err
	})
	return out, err
}

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
