package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/thread"
)

// Amounts in cents, below and above the limit from which a person is asked.
const (
	smallAmount = 4_200
	largeAmount = 25_000
)

// kind is one way through the refund graph.
type kind struct {
	name   string
	amount int64
	answer string // JSON; "" when nobody is asked
	moves  int    // refunds that it makes
}

var kinds = []kind{
	{"small", smallAmount, "", 1},
	{"approved", largeAmount, "true", 1},
	{"declined", largeAmount, "false", 0},
}

// load runs threads of the refund graph in one mode.
type load struct {
	world  *world
	client *superstep.Client
	crew   *crew
	mode   mode

	count  atomic.Int64
	enough atomic.Bool

	mu     sync.Mutex
	result *campaign
	want   map[string]string // the final states of undisturbed runs, by kind
}

// undisturbed runs one thread of each kind, whose final states all others must have.
func (l *load) undisturbed(ctx context.Context) error {
	l.want = map[string]string{}
	failed := make([]error, len(kinds))
	var all sync.WaitGroup
	for i, k := range kinds {
		all.Go(func() {
			order, err := l.begin(ctx, k)
			if err == nil {
				err = l.drive(ctx, k, order)
			}
			var final string
			if err == nil {
				final, err = l.final(ctx, order)
			}
			if err != nil {
				failed[i] = fmt.Errorf("%s: %w", k.name, err)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.want[k.name] = final
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// run runs one thread after the other until there was enough.
func (l *load) run(ctx context.Context, stop context.CancelCauseFunc) {
	for !l.enough.Load() && ctx.Err() == nil {
		k := kinds[int(l.count.Add(1))%len(kinds)]
		order, err := l.begin(ctx, k)
		if err != nil {
			stop(fmt.Errorf("begin a run: %w", err))
			return
		}
		bounded, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not finished after %v", patience))
		lost := l.drive(bounded, k, order)
		if lost != nil && bounded.Err() != nil {
			lost = context.Cause(bounded)
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err := l.judge(ctx, k, order, lost); err != nil {
			stop(fmt.Errorf("look at thread %s: %w", order, err))
			return
		}
	}
}

// begin makes an order and starts a thread of its name.
func (l *load) begin(ctx context.Context, k kind) (order string, err error) {
	order = fmt.Sprintf("%s-%d", l.crew.queue, l.count.Add(1))
	if err := again(ctx, func() error {
		_, err := l.world.pay.PutOrder(ctx, payments.Order{ID: order, Amount: k.amount, Customer: "Ada Berg"})
		return err
	}); err != nil {
		return "", err
	}
	req := l.mode.request
	req.Graph, req.Thread, req.Input = "refund", order, fmt.Appendf(nil, `{"order_id":%q}`, order)
	return order, again(ctx, func() error {
		_, err := l.client.Start(ctx, req)
		if err != nil {
			if _, missing := l.client.Show(ctx, order); missing == nil {
				return nil // it got through, its answer did not
			}
		}
		return err
	})
}

// drive answers what a thread asks, until it has finished. The error says why it never will.
func (l *load) drive(ctx context.Context, k kind, threadID string) error {
	for {
		view, err := l.client.Wait(ctx, threadID)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil: // no worker for a moment
			if err := pause(ctx); err != nil {
				return err
			}
			continue
		}
		switch view.Status {
		case thread.StatusFinished:
			l.crew.stood(threadID)
			return nil
		case thread.StatusWaiting:
			l.crew.stood(threadID)
			if len(view.Questions) != 1 {
				return fmt.Errorf("it asks %d questions", len(view.Questions))
			}
			if err := l.answer(ctx, k, threadID, view.Questions[0].ID); err != nil {
				return err
			}
		case thread.StatusRunning:
		default:
			return fmt.Errorf("%s: %s", view.Status, view.Error)
		}
	}
}

// answer gives an answer as people do who are not sure that the first one arrived: every other one twice.
func (l *load) answer(ctx context.Context, k kind, threadID, question string) error {
	if k.answer == "" {
		return errors.New("it asks, and should not")
	}
	req := thread.ResumeRequest{Thread: threadID, Question: question, Value: json.RawMessage(k.answer), By: "ann", ID: "first"}
	req.Signal = l.count.Load()%3 == 0
	if l.count.Load()%2 == 0 {
		second := req
		second.ID, second.Signal = "second", !req.Signal
		_, _ = l.client.Resume(ctx, second) // whichever comes first counts
	}
	_, err := l.client.Resume(ctx, req)
	if err != nil && ctx.Err() == nil && !errors.Is(err, thread.ErrNoWorker) && !errors.Is(err, thread.ErrNoServer) {
		return nil // the other one was first; the thread tells
	}
	return pause(ctx)
}

// judge takes in how a thread ended.
func (l *load) judge(ctx context.Context, k kind, order string, lost error) error {
	var got string
	var refunds []payments.Receipt
	err := again(ctx, func() (err error) {
		refunds, err = l.world.pay.Refunds(ctx, order)
		return err
	})
	if err == nil && lost == nil {
		err = again(ctx, func() (err error) {
			got, err = l.final(ctx, order)
			return err
		})
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.result
	t.runs++
	switch {
	case lost != nil:
		t.lost = append(t.lost, fmt.Sprintf("%s (%s): %v", order, k.name, lost))
	case len(refunds) != k.moves:
		t.twice = append(t.twice, fmt.Sprintf("%s (%s) made %d refunds", order, k.name, len(refunds)))
	case got != l.want[k.name]:
		t.unequal = append(t.unequal, fmt.Sprintf("%s (%s): %s, not %s", order, k.name, got, l.want[k.name]))
	}
	return nil
}

// final is a finished thread's state without what differs between runs: the order's id, the receipt's, and times.
func (l *load) final(ctx context.Context, order string) (string, error) {
	state, err := l.client.State(ctx, thread.StateRequest{Thread: order})
	if err != nil {
		return "", err
	}
	values := maps.Clone(state.Values)
	var receipt payments.Receipt
	if raw, ok := values["receipt"]; ok {
		if err := json.Unmarshal(raw, &receipt); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	out := string(text)
	for _, own := range []string{receipt.Key, receipt.CreatedAt.Format(time.RFC3339Nano), receipt.ID, order} {
		if own != "" {
			out = strings.ReplaceAll(out, own+`"`, `*"`)
		}
	}
	return fmt.Sprintf("step %d %s", state.Step, out), nil
}

// again repeats what fails for the moment.
func again(ctx context.Context, call func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := call()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if paused := pause(ctx); paused != nil {
			return errors.Join(err, paused)
		}
	}
}

// pause waits a moment between two tries.
func pause(ctx context.Context) error {
	select {
	case <-time.After(50 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
