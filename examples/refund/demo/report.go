package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"superstep.dev/examples/internal/demo"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/thread"
)

// account is what the payments service and the run say in the end.
type account struct {
	refunds []payments.Receipt // of the order
	traffic payments.Traffic   // of refunds
	view    thread.View
	tasks   []demo.Execution
}

func (d *refunding) account(ctx context.Context) (a account, err error) {
	if a.refunds, err = d.pay.Refunds(ctx, d.order.ID); err != nil {
		return a, err
	}
	stats, err := d.pay.Stats(ctx)
	if err != nil {
		return a, err
	}
	a.traffic = stats.Refunds
	if a.view, err = d.Runs.Show(ctx, refundThread); err != nil {
		return a, err
	}
	a.tasks, err = d.Executions(ctx, refundThread, d.runID)
	return a, err
}

// report shows what happened and judges it.
func (d *refunding) report(ctx context.Context, c crash) (verdict string, err error) {
	a, err := d.account(ctx)
	if err != nil {
		return "", err
	}
	d.Line("\nWhat happened")
	d.facts(a)
	d.Step("%-17s %s", "kill → progress", recovery(a, c))
	again, once := ran(a.tasks)
	d.Step("%-17s %s", "ran again", again)
	d.Step("%-17s %s", "ran once", once)
	d.Line("Try next: make dev (the same, to play with) · edit DefaultLimit in examples/refund/refund.go")
	return "exactly one refund", a.exactlyOne(d.order)
}

// facts shows the money.
func (d *refunding) facts(a account) {
	counts := fmt.Sprintf("(%s, %s)", plural(a.traffic.Requests, "refund request"), plural(a.traffic.Lookups, "lookup"))
	if len(a.refunds) == 0 {
		d.Step("%-17s no refund   %s", "ledger", counts)
		return
	}
	head := plural(int64(len(a.refunds)), "refund") + ":"
	for _, r := range a.refunds {
		d.Step("%-17s %s %s  %s  key %s   %s", "ledger", head, r.ID, money(r.Amount), short(r.Key), counts)
	}
}

// exactlyOne is nil if the run finished with the order's one refund, for the whole amount, as the payments service has
// it.
func (a account) exactlyOne(order payments.Order) error {
	var wrong []error
	if a.view.Status != thread.StatusFinished {
		wrong = append(wrong, fmt.Errorf("the run is %s, not finished: %s", a.view.Status, a.view.Error))
	}
	if len(a.refunds) != 1 || a.traffic.Committed != 1 {
		wrong = append(wrong, fmt.Errorf("the payments service has %d refunds for order %s and %d in all, not one",
			len(a.refunds), order.ID, a.traffic.Committed))
		return errors.Join(wrong...)
	}
	paid := a.refunds[0]
	if paid.Amount != order.Amount || paid.ReversedAt != nil {
		wrong = append(wrong, fmt.Errorf("refund %s is not the %s that were approved", paid.ID, money(order.Amount)))
	}
	var known payments.Receipt
	if err := json.Unmarshal(a.view.Output["receipt"], &known); err != nil || known.ID != paid.ID {
		wrong = append(wrong, fmt.Errorf("the run ended with receipt %q, the payments service has %s", known.ID, paid.ID))
	}
	return errors.Join(wrong...)
}

// recovery says how long nothing went on: until a node began for the first time after the kill.
func recovery(a account, c crash) string {
	for _, t := range a.tasks {
		if t.Began.After(c.killed) {
			return fmt.Sprintf("%s until attempt %d of %s began, %s until the run ended",
				seconds(t.Began.Sub(c.killed)), t.Attempt, t.Node, seconds(a.view.Closed.Sub(c.killed)))
		}
	}
	return "nothing began after the kill"
}

// ran says which nodes were started more than once because a worker was lost, and which were not. A node that asks
// runs once to ask and once with the answer.
func ran(tasks []demo.Execution) (again, once string) {
	var twice, single, asking []string
	for _, t := range tasks {
		switch {
		case t.Attempt > 1:
			twice = append(twice, fmt.Sprintf("%s (attempt %d)", t.Node, t.Attempt))
		case t.Asked:
			asking = append(asking, t.Node)
		default:
			single = append(single, t.Node)
		}
	}
	for i, name := range single {
		for _, asker := range asking {
			if name == asker {
				single[i] += " (and once to ask)"
			}
		}
	}
	return list(twice), list(single)
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// declined ends the demo after a no: the run goes on to its end, and nothing may have been refunded.
func (d *refunding) declined(ctx context.Context) (verdict string, err error) {
	d.Line("\n3. The answer was no, so there is no payment to interrupt. The run goes on:")
	if err := d.followEnd(ctx, ledger.Entry{}); err != nil {
		return "", err
	}
	a, err := d.account(ctx)
	if err != nil {
		return "", err
	}
	d.Line("\nWhat happened")
	d.facts(a)
	d.Line("This thread ends without a refund. Run the demo again and answer yes to see a worker killed.")
	if a.view.Status != thread.StatusFinished || len(a.refunds) > 0 || a.traffic.Requests > 0 {
		return "", fmt.Errorf("the run is %s and the payments service has %s of order %s for %s; the answer was no",
			a.view.Status, plural(int64(len(a.refunds)), "refund"), d.order.ID, plural(a.traffic.Requests, "request"))
	}
	return "", errDeclined
}
