package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev"
	"superstep.dev/examples/refund"
	"superstep.dev/examples/refund/payments"
)

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
	temporal, err := client.DialContext(ctx, superstep.Watched(client.Options{HostPort: address, Logger: silent{}, MetricsHandler: tellFigures{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(f.intercept)},
	}}))
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
	err = p.fate.Around(func() error {
		out, err = p.Client.Order(ctx, id)
		return err
	}, pointOrder)
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
	err = p.fate.Around(func() error {
		out, err = p.Client.Refund(ctx, key, r)
		return err
	}, pointRefund)
	return out, err
}

// FindRefund looks a refund up.
func (p fatedPayments) FindRefund(ctx context.Context, key string) (out payments.Receipt, found bool, err error) {
	err = p.fate.Around(func() error {
		out, found, err = p.Client.FindRefund(ctx, key)
		return err
	}, pointLookup)
	return out, found, err
}

// Notify tells a customer something.
func (p fatedPayments) Notify(ctx context.Context, key string, n payments.Notification) (out payments.Delivery, err error) {
	err = p.fate.Around(func() error {
		out, err = p.Client.Notify(ctx, key, n)
		return err
	}, pointNotify)
	return out, err
}
