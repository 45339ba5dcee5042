package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/thread"
)

const (
	// freezeAtOnce is how many attempts one frozen worker has in hand.
	freezeAtOnce = 10
	// refusedWithin bounds the wait for what a thawed attempt tells the server.
	refusedWithin = patience
)

// frozen is one kind of target whose calls are frozen.
type frozen struct {
	name, graph string
	order       int64 // its amount
}

var (
	keyed = frozen{"keyed", "refund", smallAmount}
	// The order has more than one refund: payments refuses what is above it, which would hide a second one.
	lookupOnly = frozen{"lookup only", payoutName, 10 * smallAmount}
)

// thawed is what became of the frozen attempts of one kind.
type thawed struct {
	frozen   frozen
	count    int
	refused  int      // attempts whose records the server refused
	promises []string // those that were broken
}

// freeze freezes n attempts in the middle of a call, lets another worker finish their threads, and thaws them.
func (w *world) freeze(ctx context.Context, f frozen, n int) (*thawed, error) {
	t := &thawed{frozen: f}
	for t.count < n {
		if err := w.freezeSome(ctx, t, min(freezeAtOnce, n-t.count)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// freezeSome is one round: a worker that holds all calls, and one that takes over.
func (w *world) freezeSome(ctx context.Context, t *thawed, n int) error {
	crew := w.crew(fmt.Sprintf("frozen-%d", time.Now().UnixNano()))
	c, err := superstep.NewClient(w.temporal, superstep.ClientConfig{TaskQueue: crew.queue})
	if err != nil {
		return err
	}
	cold, err := crew.start(ctx, "-hold")
	if err != nil {
		return err
	}
	defer func() { _ = cold.Kill() }()
	var orders []string
	for i := range n {
		order := fmt.Sprintf("%s-%d", crew.queue, i)
		if _, err := w.pay.PutOrder(ctx, payments.Order{ID: order, Amount: t.frozen.order}); err != nil {
			return err
		}
		req := thread.StartRequest{Graph: t.frozen.graph, Thread: order, Input: fmt.Appendf(nil, `{"order_id":%q}`, order)}
		if _, err := c.Start(ctx, req); err != nil {
			return err
		}
		orders = append(orders, order)
	}
	if held, err := crew.await(ctx, cold.PID(), noticeHeld, n, patience); err != nil || held < n {
		return errors.Join(err, fmt.Errorf("%d of %d calls are under way", held, n))
	}
	if err := cold.freeze(); err != nil {
		return err
	}
	warm, err := crew.start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = warm.Kill() }()
	for _, order := range orders {
		if err := finish(ctx, c, order); err != nil {
			t.breaks("%s: %v", order, err)
		}
	}
	if err := w.once(ctx, t, orders, "before the thaw"); err != nil {
		return err
	}
	if err := cold.thaw(); err != nil {
		return err
	}
	refused, err := crew.await(ctx, cold.PID(), noticeRefused, n, refusedWithin)
	if err != nil {
		return err
	}
	t.refused += refused
	t.count += n
	for _, thread := range crew.of(cold.PID(), noticeTaken) {
		t.breaks("%s: the record of a thawed attempt was taken", thread)
	}
	return w.once(ctx, t, orders, "after the thaw")
}

// finish waits until a thread has finished.
func finish(ctx context.Context, c *superstep.Client, threadID string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not finished after %v", patience))
	defer cancel()
	for {
		view, err := c.Wait(ctx, threadID)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && view.Status == thread.StatusFinished:
			return nil
		case err == nil && view.Status != thread.StatusRunning:
			return fmt.Errorf("%s: %s", view.Status, view.Error)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// once wants one refund of each order.
func (w *world) once(ctx context.Context, t *thawed, orders []string, when string) error {
	for _, order := range orders {
		refunds, err := w.pay.Refunds(ctx, order)
		if err != nil {
			return err
		}
		if len(refunds) != 1 {
			t.breaks("%s: %d refunds %s", order, len(refunds), when)
		}
	}
	return nil
}

func (t *thawed) breaks(format string, args ...any) {
	t.promises = append(t.promises, fmt.Sprintf(format, args...))
}

func (t *thawed) broken() bool { return len(t.promises) > 0 || t.refused < t.count }

func (t *thawed) print(out io.Writer) {
	fmt.Fprintf(out, "frozen   %-12s attempts %d, records refused %d, broken promises %d\n",
		t.frozen.name, t.count, t.refused, len(t.promises))
	for _, one := range t.promises {
		fmt.Fprintf(out, "    %s\n", one)
	}
}
