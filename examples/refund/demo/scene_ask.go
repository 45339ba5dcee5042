package main

import (
	"context"
	"encoding/json"
	"fmt"

	"superstep.dev/cli"
	"superstep.dev/examples/internal/demo"
	"superstep.dev/examples/refund"
	"superstep.dev/examples/refund/payments"
)

// request is the first scene: a run begins, and waits for a person.
func (d *refunding) request(ctx context.Context) (err error) {
	// Above the limit whatever that is: the demo invites to change it.
	d.order, err = d.pay.PutOrder(ctx, payments.Order{ID: "o-1042", Amount: refund.DefaultLimit + 15_000, Customer: "Ada Berg"})
	if err != nil {
		return err
	}
	d.Line("\n1. Somebody asks for a refund. The graph (a person is asked above %s):", money(refund.DefaultLimit))
	if err := d.Stack.Draw(ctx, d.Indented()); err != nil {
		return err
	}
	input, err := json.Marshal(map[string]string{"order_id": d.order.ID})
	if err != nil {
		return err
	}
	if err := d.Superstep(ctx, cli.ExitWaiting, "run", "refund", "--thread", refundThread, "--input", string(input), "--follow"); err != nil {
		return err
	}
	view, err := d.Runs.Show(ctx, refundThread)
	if err != nil {
		return err
	}
	if len(view.Questions) != 1 {
		return fmt.Errorf("the run asks %d questions, not one", len(view.Questions))
	}
	d.question, d.runID = view.Questions[0], view.RunID
	return nil
}

// answer is the second scene: a person answers. Before that the payments service is told to commit the refund and to
// leave the request without a reply, which is when the worker will be killed.
func (d *refunding) answer(ctx context.Context) (yes bool, err error) {
	d.Line("\n2. The run waits; no process is held. A person answers:")
	var text string
	if err := json.Unmarshal(d.question.Value, &text); err != nil {
		return false, fmt.Errorf("read the question: %w", err)
	}
	if yes, err = demo.Ask(ctx, d.Screen, text, "Y/n", "yes", demo.YesNo); err != nil {
		return false, err
	}
	if yes {
		if err := d.pay.SetFaults(ctx, payments.Faults{Path: payments.PathRefunds, HangAfterCommit: 1}); err != nil {
			return false, err
		}
	}
	return yes, d.Superstep(ctx, cli.ExitOK, "resume", refundThread, d.question.ID, "--value", fmt.Sprint(yes))
}

// money prints cents as people write them.
func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
