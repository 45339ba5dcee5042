// Command demo shows in a minute what Superstep is for: a refund that a person approves, a worker that is killed with
// SIGKILL while the payment is in flight, and exactly one refund all the same.
//
//	go run ./examples/refund/demo
//
// It needs Go and nothing else. It builds and starts a Temporal server, the payments service of the example and
// workers, with their data in a directory of its own that it removes again; ports that are taken are not touched. Every
// figure on its screen is measured, and its exit code is 0 only if the payments service has exactly one refund.
//
// At a terminal it asks the question of the run; without one, or with YES=1, it answers yes itself.
package main

import (
	"context"
	"os"
	"strconv"
	"time"

	"superstep.dev/examples/internal/demo"
	"superstep.dev/examples/refund"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/test/processes/stack"
	"superstep.dev/thread"
)

// workerDrain is how long a worker that is stopped in the middle may finish what it does.
const workerDrain = 2 * time.Second

func main() {
	os.Exit(demo.Demo{
		Name: "demo", Programs: stack.Refund, Drain: workerDrain,
		Env:    func(string) []string { return []string{"REFUND_LIMIT=" + strconv.Itoa(refund.DefaultLimit)} },
		Scenes: scenes,
	}.Main(os.Args[1:]))
}

// errDeclined ends a demo in which a person said no: 0 stands for exactly one refund.
var errDeclined = &demo.EndedError{Reason: "no refund, as answered", Exit: 3}

const (
	refundThread = "refund-1042"
	node         = "commit_refund" // whose effect is interrupted
)

// refunding is the demo while it plays.
type refunding struct {
	*demo.Stage
	pay      *payments.Client
	order    payments.Order
	question thread.Question
	runID    string
}

// scenes plays the demo and returns the verdict.
func scenes(ctx context.Context, s *demo.Stage) (verdict string, err error) {
	d := &refunding{Stage: s}
	if d.pay, err = payments.NewClient(s.Stack.Payments); err != nil {
		return "", err
	}
	if err := d.request(ctx); err != nil {
		return "", err
	}
	yes, err := d.answer(ctx)
	if err != nil {
		return "", err
	}
	if !yes {
		return d.declined(ctx)
	}
	c, err := d.crash(ctx)
	if err != nil {
		return "", err
	}
	return d.report(ctx, c)
}
