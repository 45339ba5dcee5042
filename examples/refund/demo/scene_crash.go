package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"superstep.dev/examples/internal/demo"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/internal/history"
)

// crash is what the third scene measured.
type crash struct {
	sent   ledger.Entry // the effect as it was on record when the worker was killed
	killed time.Time
}

// crash is the third scene: the worker is killed while the payment is in flight, and another one goes on.
func (d *refunding) crash(ctx context.Context) (c crash, err error) {
	d.Line("\n3. The worker is killed while the payment is in flight (payments was told not to reply):")
	bounded, cancel := demo.Within(ctx, "the refund in flight")
	defer cancel()
	if c.sent, err = d.awaitInFlight(bounded); err != nil {
		return c, err
	}
	pid := d.Worker.PID()
	c.killed = time.Now()
	if err := d.Worker.Kill(); err != nil {
		return c, err
	}
	d.Step("kill -9 %-14d payments has committed and has not replied", pid)
	second, err := d.Stack.Worker(ctx)
	if err != nil {
		return c, err
	}
	d.Step("worker #2 pid %d", second.PID())
	return c, d.followEnd(ctx, c.sent)
}

// awaitInFlight returns once the payments service has committed the refund while the run has only its intent on record.
func (d *refunding) awaitInFlight(ctx context.Context) (sent ledger.Entry, err error) {
	shown := false
	err = demo.Until(ctx, func() (bool, error) {
		recorded, err := d.Recorded(ctx, refundThread, d.runID, "refund."+node)
		if writes := writesOf(recorded); len(writes) > 0 {
			sent = writes[0]
		}
		if err != nil || sent.State != ledger.StateIntent {
			return false, err
		}
		if !shown {
			shown = true
			d.Step("step %d  %s  effect %s  key %s  intent on record, sent", d.question.Step+1, node, sent.Name, short(sent.Key))
		}
		_, committed, err := d.committed(ctx, sent.Key)
		return committed, err
	})
	return sent, err
}

// writesOf are the writes to the outside among what a task has on record.
func writesOf(recorded []ledger.Entry) []ledger.Entry {
	return slices.DeleteFunc(recorded, func(e ledger.Entry) bool { return e.Kind != ledger.KindEffect })
}

// committed looks for a refund as an outsider does, who is not counted among the look-ups by key.
func (d *refunding) committed(ctx context.Context, key string) (payments.Receipt, bool, error) {
	all, err := d.pay.Refunds(ctx, d.order.ID)
	for _, receipt := range all {
		if receipt.Key == key {
			return receipt, true, nil
		}
	}
	return payments.Receipt{}, false, err
}

// followEnd shows what the run does after its question, until it has ended.
func (d *refunding) followEnd(ctx context.Context, sent ledger.Entry) error {
	ctx, cancel := demo.Within(ctx, "the rest of the run")
	defer cancel()
	var unreadable error
	show := func(s history.Step) {
		if s.Started || s.Request.Task.Step <= d.question.Step {
			return
		}
		text, err := told(s, sent)
		if err != nil && unreadable == nil {
			unreadable = err
		}
		d.Step("step %d  %-13s  %s", s.Request.Task.Step, s.Request.Task.Node, text)
	}
	never := func() (bool, error) { return false, nil }
	closing, err := d.Tail.Run(ctx, refundThread, d.runID, 0, show, never)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		err = unreadable
	}
	if err != nil {
		return fmt.Errorf("follow the run: %w", err)
	}
	d.Step("%s", ending(closing))
	return nil
}

// told is a finished task in words; sent is the effect that was interrupted.
func told(s history.Step, sent ledger.Entry) (string, error) {
	took := time.Duration(s.Took).Round(time.Millisecond)
	if s.Outcome == nil {
		return "FAILED  " + s.Failure, nil
	}
	entries, err := demo.Ledger(s.Outcome.Ledger)
	if err != nil {
		return "", err
	}
	for _, e := range writesOf(entries) {
		if s.Attempt > 1 && e.Key == sent.Key {
			return recovered(s.Attempt, sent, e)
		}
	}
	return fmt.Sprintf("ok %6v", took), nil
}

// recovered says how a later attempt found out what an earlier one had done.
func recovered(attempt int32, before, after ledger.Entry) (string, error) {
	var receipt payments.Receipt
	if err := json.Unmarshal(after.Result, &receipt); err != nil {
		return "", fmt.Errorf("read the receipt on record: %w", err)
	}
	how, again := after.Evidence, "not sent again"
	if how == "" {
		how = "sent"
	}
	if after.Attempts > before.Attempts {
		again = fmt.Sprintf("sent %d times", after.Attempts)
	}
	return fmt.Sprintf("attempt %d: %s → %s → %s %s; %s", attempt, before.State, how, after.State, receipt.ID, again), nil
}

// ending is how the run ended, in a word.
func ending(closing *historypb.HistoryEvent) string {
	if closing.GetWorkflowExecutionCompletedEventAttributes() != nil {
		return "finished"
	}
	return "ended: " + closing.GetEventType().String()
}

// short is the beginning of a key: enough to recognise it.
func short(key string) string { return key[:min(8, len(key))] }
