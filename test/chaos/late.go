package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/figures"
	"superstep.dev/thread"
)

// Calls that prepare before they send, frozen while they do, and thawed long after another worker has done their work: what
// was to stop them and what they were about to do are due at the same time then.
const (
	lateTimeout = 6 * time.Second
	lateSettle  = 4 * time.Second
	latePrepare = 2500 * time.Millisecond
	lateStop    = 1200 * time.Millisecond // from a call's begin to the freeze
	lateFreeze  = 20 * time.Second
	lateCount   = patience // for what is counted after a call came back

	// lateAtOnce is how many calls one frozen worker has in hand, lateWorkers how many are frozen at once.
	lateAtOnce  = 10
	lateWorkers = 4
)

// late is a way to write an effect of a target that can only be asked.
type late struct {
	name    string
	guarded bool // its client has a superstep.GuardedTransport
	asks    bool // its OnLoss is superstep.OnLossAsk
	deaf    bool // it does not give its context to the client
}

// lates are the ways. The first is as docs/effects.md has it, and what must hold; the others are to compare.
var lates = []late{
	{name: "documented", guarded: true, asks: true},
	{name: "guarded", guarded: true},
	{name: "plain"},
	{name: "deaf", deaf: true},
}

func lateNamed(name string) (late, error) {
	i := slices.IndexFunc(lates, func(l late) bool { return l.name == name })
	if i < 0 {
		return late{}, fmt.Errorf("there is no late call %q", name)
	}
	return lates[i], nil
}

// lateness is what became of them.
type lateness struct {
	late  late
	count int // wanted

	mu     sync.Mutex
	calls  int
	frozen int      // those that had not sent anything when they were frozen
	goesOn int      // those of them that went on to send when they were thawed
	asked  int      // a person
	ruled  []string // about which order, each time
	never  []string // no refund
	twice  []string // more than one
	// What the workers counted: duplicates that they found, and answers of people.
	found, takeovers int64
}

// freezeLate freezes n late calls or some more, those of several workers at once.
func (w *world) freezeLate(ctx context.Context, l late, n int) (*lateness, error) {
	r := &lateness{late: l, count: n}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for id := range lateWorkers {
		all.Go(func() {
			for left := r.left(); left > 0; left = r.left() {
				if err := w.freezeGroup(ctx, r, id, min(left, lateAtOnce)); err != nil {
					stop(err)
					return
				}
				fmt.Fprintf(w.notes, "late, %s: %d of %d calls are left to freeze\n", l.name, max(r.left(), 0), n)
			}
		})
	}
	all.Wait()
	return r, context.Cause(ctx)
}

// left is how many are still to be frozen: on a busy machine some have sent before.
func (r *lateness) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count - r.frozen
}

// freezeGroup is one frozen worker's calls, from their start until their threads have finished.
func (w *world) freezeGroup(ctx context.Context, r *lateness, id, n int) error {
	crew := w.crew(fmt.Sprintf("late-%d-%d", id, time.Now().UnixNano()))
	c, err := superstep.NewClient(w.temporal, superstep.ClientConfig{TaskQueue: crew.queue})
	if err != nil {
		return err
	}
	cold, err := crew.start(ctx, "-late", r.late.name)
	if err != nil {
		return err
	}
	defer func() { _ = cold.Kill() }()
	orders, err := w.startLate(ctx, c, crew.queue, n)
	if err != nil {
		return err
	}
	// On a busy machine a worker may be taken for lost before a call of it is under way: that call is none to freeze.
	held, err := crew.await(ctx, cold.PID(), noticeHeld, n, patience)
	if err != nil || held == 0 {
		return errors.Join(err, fmt.Errorf("%d of %d calls are under way", held, n))
	}
	if err := wait(ctx, lateStop); err != nil {
		return err
	}
	if err := cold.freeze(); err != nil {
		return err
	}
	thaw := time.Now().Add(lateFreeze)
	sent := len(crew.of(cold.PID(), noticeSends))
	warm, err := crew.start(ctx, "-late", r.late.name)
	if err != nil {
		return err
	}
	defer func() { _ = warm.Kill() }()
	if err := errors.Join(wait(ctx, time.Until(thaw)), rested(ctx, c, orders)); err != nil {
		return err
	}
	if err := cold.thaw(); err != nil {
		return err
	}
	if back, err := crew.await(ctx, cold.PID(), noticeBack, held, patience); err != nil || back < held {
		return errors.Join(err, fmt.Errorf("%d of %d thawed calls came back", back, held))
	}
	r.mu.Lock()
	r.calls += held
	r.frozen += held - sent
	r.goesOn += len(crew.of(cold.PID(), noticeSends)) - sent
	r.mu.Unlock()
	for _, order := range orders {
		if err := w.endLate(ctx, c, r, order); err != nil {
			return fmt.Errorf("%s: %w", order, err)
		}
	}
	return r.countFigures(ctx, crew)
}

// countFigures takes in what the workers of a group counted. A call that came back late is looked up before it is counted, so a
// count that is too low is looked at again. What is counted is counted at least once: a workflow task or an execution that has to be
// repeated counts again.
func (r *lateness) countFigures(ctx context.Context, crew *crew) error {
	ofCrew := func(line string) bool { return !strings.HasPrefix(line, crew.queue+"-") }
	for late := time.Now().Add(lateCount); ; {
		crew.mu.Lock()
		found, takeovers := crew.books.counted[figures.Duplicates.Name], crew.books.counted[figures.Takeovers.Name]
		crew.mu.Unlock()
		r.mu.Lock()
		twice, ruled := slices.DeleteFunc(slices.Clone(r.twice), ofCrew), slices.DeleteFunc(slices.Clone(r.ruled), ofCrew)
		if found >= int64(len(twice)) && takeovers >= int64(len(ruled)) || time.Now().After(late) {
			r.found, r.takeovers = r.found+found, r.takeovers+takeovers
			r.mu.Unlock()
			return nil
		}
		r.mu.Unlock()
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func (w *world) startLate(ctx context.Context, c *superstep.Client, queue string, n int) (orders []string, err error) {
	for i := range n {
		order := fmt.Sprintf("%s-%d", queue, i)
		// More than one refund: see lookupOnly.
		if _, err := w.pay.PutOrder(ctx, payments.Order{ID: order, Amount: 10 * smallAmount}); err != nil {
			return nil, err
		}
		req := thread.StartRequest{Graph: lateName, Thread: order, Input: fmt.Appendf(nil, `{"order_id":%q}`, order)}
		if _, err := c.Start(ctx, req); err != nil {
			return nil, err
		}
		orders = append(orders, order)
	}
	return orders, nil
}

// endLate is the person, who looks at what the target has before each answer, and then counts.
func (w *world) endLate(ctx context.Context, c *superstep.Client, r *lateness, order string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not finished after %v", patience))
	defer cancel()
	for {
		view, err := c.Wait(ctx, order)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && view.Status == thread.StatusFinished:
			return w.countLate(ctx, r, order)
		case err == nil && view.Status == thread.StatusWaiting:
			err = w.rule(ctx, c, r, order, view.Questions)
			if err != nil {
				return err
			}
		case err == nil && view.Status != thread.StatusRunning:
			return fmt.Errorf("%s: %s", view.Status, view.Error)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func (w *world) rule(ctx context.Context, c *superstep.Client, r *lateness, order string, asked []thread.Question) error {
	refunds, err := w.pay.Refunds(ctx, order)
	if err != nil {
		return err
	}
	answer := map[string]any{"action": "repeat"}
	if len(refunds) > 0 {
		answer = map[string]any{"action": "done", "receipt": refunds[0].ID}
	}
	value, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	for _, q := range asked {
		req := thread.ResumeRequest{Thread: order, Question: q.ID, Value: value, ID: q.ID}
		for unheard := false; ; unheard = true {
			_, err := c.Resume(ctx, req)
			if err == nil || unheard && errors.Is(err, thread.ErrAnswerRefused) { // it was taken, and its run has ended
				break
			}
			if !errors.Is(err, thread.ErrNoWorker) && !errors.Is(err, thread.ErrBusy) {
				return err
			}
			if err := pause(ctx); err != nil {
				return err
			}
		}
		r.mu.Lock()
		r.asked, r.ruled = r.asked+1, append(r.ruled, order)
		r.mu.Unlock()
	}
	return nil
}

func (w *world) countLate(ctx context.Context, r *lateness, order string) error {
	refunds, err := w.pay.Refunds(ctx, order)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch len(refunds) {
	case 0:
		r.never = append(r.never, order)
	case 1:
	default:
		r.twice = append(r.twice, fmt.Sprintf("%s: %d refunds", order, len(refunds)))
	}
	return err
}

// rested waits until the other worker has done what it can: what is thawed is to come behind that.
func rested(ctx context.Context, c *superstep.Client, orders []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("still running after %v", patience))
	defer cancel()
	for _, order := range orders {
		for {
			view, err := c.Wait(ctx, order)
			if err == nil && view.Status != thread.StatusRunning {
				break
			}
			if err := pause(ctx); err != nil {
				return fmt.Errorf("%s: %w", order, err)
			}
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *lateness) broken() bool {
	return len(r.never)+len(r.twice) > 0 || r.found < int64(len(r.twice)) || r.takeovers < int64(r.asked) || r.late.asks && r.asked < r.frozen
}

func (r *lateness) print(out io.Writer) {
	fmt.Fprintf(out, "late     %-12s calls %d, frozen before they sent %d, went on to send %d, asked %d, not once %d, twice %d\n    figures of workers: duplicates %d (%d), takeovers %d (%d)\n",
		r.late.name, r.calls, r.frozen, r.goesOn, r.asked, len(r.never), len(r.twice), r.found, len(r.twice), r.takeovers, r.asked)
	for _, one := range append(r.never, r.twice...) {
		fmt.Fprintf(out, "    %s\n", one)
	}
}
