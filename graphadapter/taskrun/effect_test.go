package taskrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

func TestEffectIsCalledOnceAndRemembered(t *testing.T) {
	b := &bank{}
	journal := mustJournal(t, nil)
	var first, second string
	out, err := attemptOf(t, oneNode(payOnce(&first), b.effect(ledger.TargetKeyed)), Env{Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	e := onlyEntry(t, journal)
	if e.State != ledger.StateCommitted || e.Attempts != 1 || e.Evidence != "" || string(e.Params) != `{"order":"o-7","amount":250}` {
		t.Errorf("ledger: %+v", e)
	}
	// The task runs again from its own ledger alone, as after an answer.
	task := payTask()
	task.Ledger = out.Ledger
	if _, err := RunAttempt(t.Context(), oneNode(payOnce(&second), b.effect(ledger.TargetKeyed)), task, Env{Thread: "r-7"}); err != nil {
		t.Fatal(err)
	}
	if b.calls != 1 || b.lookups != 0 || first != second || first == "" {
		t.Errorf("%d calls, %d lookups, receipts %q and %q", b.calls, b.lookups, first, second)
	}
}

func TestSuspectTaskLooksUpBeforeItsFirstCall(t *testing.T) {
	b := &bank{}
	var receipt string
	g := oneNode(payOnce(&receipt), b.effect(ledger.TargetKeyed))
	if _, err := attemptOf(t, g, Env{Suspect: true}); err != nil {
		t.Fatal(err)
	}
	if b.lookups != 1 || b.calls != 1 {
		t.Errorf("%d lookups and %d calls, want 1 and 1", b.lookups, b.calls)
	}
	// Its ledger is lost: the write is found by its key.
	out, err := attemptOf(t, g, Env{Suspect: true})
	if err != nil {
		t.Fatal(err)
	}
	if e := onlyEntry(t, mustJournal(t, out.Ledger)); b.calls != 1 || e.Evidence != "lookup after crash" || e.Attempts != 0 {
		t.Errorf("%d calls, ledger %+v", b.calls, e)
	}
}

func TestUnacknowledgedIntentIsNotCalled(t *testing.T) {
	for _, refusal := range []error{graphadapter.ErrFenced, errors.New("the server is away")} {
		b := &bank{}
		var receipt string
		journal := failingJournal{mustJournal(t, nil), refusal}
		_, err := attemptOf(t, oneNode(payOnce(&receipt), b.effect(ledger.TargetKeyed)), Env{Journal: journal})
		if !errors.Is(err, refusal) {
			t.Errorf("got %v, want %v", err, refusal)
		}
		if b.calls != 0 {
			t.Errorf("%v: the bank was called", refusal)
		}
	}
}

type failingJournal struct {
	Journal
	err error
}

func (j failingJournal) Record(context.Context, ledger.Entry) error { return j.err }

func TestLookupErrorIsTransientAndNeverARepeat(t *testing.T) {
	b := &bank{}
	e := b.effect(ledger.TargetKeyed)
	down := errors.New("connection refused")
	e.Lookup = func(context.Context, string, pregel.Value) (graphadapter.Finding, error) {
		return graphadapter.Finding{}, down
	}
	var receipt string
	_, err := attemptOf(t, oneNode(payOnce(&receipt), e), Env{Suspect: true})
	if !errors.Is(err, down) || b.calls != 0 {
		t.Fatalf("%d calls, error %v", b.calls, err)
	}
	var where *graphadapter.EffectError
	if !errors.As(err, &where) || where.Op != "look up" {
		t.Errorf("got %#v", err)
	}
	for _, part := range []string{"payments.refund", `node "pay"`, `graph "refund"`, `thread "r-7"`, where.Key} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	if _, again := graphadapter.RetryAfter([]graphadapter.RetryPolicy{{}}, 1, err); !again {
		t.Error("a lookup error is not retried")
	}
}

func TestErrorOfDo(t *testing.T) {
	declined := errors.New("declined")
	for _, c := range []struct {
		name    string
		target  ledger.Target
		err     error
		written bool // the target wrote before it failed
		state   ledger.State
		fails   bool
		lookups int
	}{
		{"transient: the intent stays", ledger.TargetKeyed, declined, false, ledger.StateIntent, true, 0},
		{"permanent, and the target has nothing", ledger.TargetKeyed, graphadapter.Permanent(declined), false, ledger.StateFailed, true, 1},
		{"permanent, but the target has it", ledger.TargetKeyed, graphadapter.Permanent(declined), true, ledger.StateCommitted, false, 1},
		{"permanent, but not found may come late", ledger.TargetLookupOnly, graphadapter.Permanent(declined), false, ledger.StateIntent, true, 0},
		{"permanent, and nobody can tell", ledger.TargetNone, graphadapter.Permanent(declined), false, ledger.StateIntent, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bank{}
			e := b.effect(c.target)
			e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
				if c.written {
					_, _ = b.do(ctx, key, params)
				}
				return nil, c.err
			}
			journal := mustJournal(t, nil)
			var receipt string
			_, err := attemptOf(t, oneNode(payOnce(&receipt), e), Env{Journal: journal})
			if c.fails != (err != nil) || c.fails && !errors.Is(err, declined) {
				t.Errorf("error %v", err)
			}
			if got := onlyEntry(t, journal).State; got != c.state || b.lookups != c.lookups {
				t.Errorf("state %s after %d lookups, want %s after %d", got, b.lookups, c.state, c.lookups)
			}
		})
	}
}

func TestRefusedEffectIsCalledAgainByTheNextRun(t *testing.T) {
	b := &bank{}
	e := b.effect(ledger.TargetKeyed)
	refused := e
	refused.Do = func(context.Context, string, pregel.Value) (pregel.Value, error) {
		return nil, graphadapter.Permanent(errors.New("account closed"))
	}
	journal := mustJournal(t, nil)
	var receipt string
	if _, err := attemptOf(t, oneNode(payOnce(&receipt), refused), Env{Journal: journal}); err == nil {
		t.Fatal("no error")
	}
	if _, err := attemptOf(t, oneNode(payOnce(&receipt), e), Env{Journal: journal}); err != nil {
		t.Fatal(err)
	}
	checkPaid(t, b, journal, receipt)
	if got := onlyEntry(t, journal).Attempts; got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
}

func TestCallAgainAfterAnErrorIsTheSameCall(t *testing.T) {
	b := &bank{}
	e := b.effect(ledger.TargetLookupOnly)
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		receipt, _ := b.do(ctx, key, params)
		if b.calls == 1 {
			return nil, errors.New("connection reset") // after the target wrote
		}
		return receipt, nil
	}
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) (err error) {
		for range 3 { // a loop of the user's own
			if _, err = t.Effect(ctx, "payments.refund", pregel.Value("1"), graphadapter.CallOptions{}); err == nil {
				break
			}
		}
		if err != nil {
			return err
		}
		_, err = t.Effect(ctx, "payments.refund", pregel.Value("1"), graphadapter.CallOptions{}) // and a second write like it
		return err
	}), e)
	if _, err := attemptOf(t, g, Env{}); err != nil {
		t.Fatal(err)
	}
	if len(b.writes) != 2 || b.writes[0] == b.writes[1] || b.lookups != 1 {
		t.Errorf("writes %v after %d lookups, want 2 different ones after 1", b.writes, b.lookups)
	}
}

func TestSameKeyWithOtherParameters(t *testing.T) {
	b := &bank{}
	amount := "1"
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		_, err := t.Effect(ctx, "payments.refund", pregel.Value(`{"amount":`+amount+`}`), graphadapter.CallOptions{Key: "o-7"})
		return err
	}), b.effect(ledger.TargetKeyed))
	journal := mustJournal(t, nil)
	if _, err := attemptOf(t, g, Env{Journal: journal}); err != nil {
		t.Fatal(err)
	}
	amount = "1.0" // the same number
	if _, err := attemptOf(t, g, Env{Journal: journal}); err != nil {
		t.Errorf("the same number spelled otherwise: %v", err)
	}
	amount = "2"
	_, err := attemptOf(t, g, Env{Journal: journal})
	var conflict *ledger.ConflictError
	if !errors.As(err, &conflict) || b.calls != 1 {
		t.Errorf("%d calls, error %v", b.calls, err)
	}
	if _, again := graphadapter.RetryAfter([]graphadapter.RetryPolicy{{}}, 1, err); again {
		t.Error("a conflict is retried")
	}
}

func TestUnregisteredEffect(t *testing.T) {
	var receipt string
	_, err := attemptOf(t, oneNode(payOnce(&receipt)), Env{})
	if !errors.Is(err, graphadapter.ErrNotRegistered) {
		t.Errorf("got %v", err)
	}
}

func TestACallHasItsTime(t *testing.T) {
	for _, c := range []struct{ timeout, want time.Duration }{
		{0, graphadapter.DefaultCallTimeout},
		{time.Second, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &bank{}
			e := b.effect(ledger.TargetKeyed)
			e.Do = func(ctx context.Context, _ string, _ pregel.Value) (pregel.Value, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			journal := mustJournal(t, nil)
			start := time.Now()
			_, err := attemptOf(t, oneNode(calling(func(ctx context.Context, t *TaskRun) error {
				_, err := t.Effect(ctx, "payments.refund", nil, graphadapter.CallOptions{Timeout: c.timeout})
				return err
			}), e), Env{Journal: journal})
			if took := time.Since(start); took != c.want {
				t.Errorf("%+v: the call took %v", c, took)
			}
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), fmt.Sprint("no answer within ", c.want)) {
				t.Errorf("%+v: %v", c, err)
			}
			if got := onlyEntry(t, journal).State; got != ledger.StateIntent {
				t.Errorf("%+v: state %s", c, got)
			}
		})
	}
}

func TestSettleWaitNeedsTimeInTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{}
		var receipt string
		g := oneNode(payOnce(&receipt), b.effect(ledger.TargetLookupOnly))
		node := g.Nodes["pay"]
		node.RunTimeout = 20 * time.Second
		g.Nodes["pay"] = node
		start := time.Now()
		_, err := attemptOf(t, g, Env{Suspect: true})
		if err == nil || !strings.Contains(err.Error(), "raise the node's run timeout") || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		// An idle timeout does not count the wait.
		node.RunTimeout, node.IdleTimeout = 0, time.Second
		g.Nodes["pay"] = node
		if _, err := attemptOf(t, g, Env{Suspect: true}); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != graphadapter.DefaultCallTimeout+graphadapter.DefaultSettleTime {
			t.Errorf("waited %v", took)
		}
	})
}

func TestReceiptIsRecordedThoughTheAttemptEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	b := &bank{}
	e := b.effect(ledger.TargetNone)
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		cancel(errors.New("the worker stops"))
		return b.do(ctx, key, params)
	}
	journal := mustJournal(t, nil)
	var receipt string
	if _, err := RunAttempt(ctx, oneNode(payOnce(&receipt), e), payTask(), Env{Thread: "r-7", Journal: journal}); err != nil {
		t.Fatal(err)
	}
	checkPaid(t, b, journal, receipt)
}

func TestEffectsInParallel(t *testing.T) {
	b := &bank{}
	const n = 50
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		pending := make([]*Pending, n)
		for i := range pending {
			pending[i] = t.MemoGo(ctx, "one", "", func(ctx context.Context) (pregel.Value, error) {
				inner, _ := TaskFrom(ctx)
				params := pregel.Value(fmt.Sprint(i))
				if i%2 == 0 { // pairs of the same business key are one write
					return inner.Effect(ctx, "payments.refund", pregel.Value("0"), graphadapter.CallOptions{Key: fmt.Sprint(i / 4)})
				}
				return inner.Effect(ctx, "payments.refund", params, graphadapter.CallOptions{})
			})
		}
		for _, p := range pending {
			if _, err := p.Get(ctx); err != nil {
				return err
			}
		}
		return nil
	}), b.effect(ledger.TargetLookupOnly))
	journal := mustJournal(t, nil)
	for range 3 {
		if _, err := attemptOf(t, g, Env{Journal: journal}); err != nil {
			t.Fatal(err)
		}
	}
	if want := n/2 + 13; len(b.writes) != want || b.calls != want {
		t.Errorf("%d writes by %d calls, want %d", len(b.writes), b.calls, want)
	}
}
