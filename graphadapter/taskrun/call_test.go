package taskrun

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// heldUntil is a lease that ends at a time, or that nobody can confirm.
type heldUntil struct {
	end       time.Time
	unsure    error
	confirmed int
}

func (h *heldUntil) Held() error {
	if h.end.IsZero() || time.Now().Before(h.end) {
		return nil
	}
	return graphadapter.ErrFenced
}

func (h *heldUntil) Confirm(context.Context) error {
	h.confirmed++
	return h.unsure
}

// TestACallTellsTheTruthBeforeItsTimerDoes: the goroutine stands still as long as a stopped process does, with no chance
// for the timer of the context to run. Whoever asks the context, or the call, hears that its time is over.
func TestACallTellsTheTruthBeforeItsTimerDoes(t *testing.T) {
	const most = 20 * time.Millisecond
	for name, ask := range map[string]func(context.Context) error{
		"Err": func(ctx context.Context) error { return ctx.Err() },
		"Done": func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			default:
				return nil
			}
		},
		"Deadline": func(ctx context.Context) error { ctx.Deadline(); return context.Cause(ctx) },
		"Check": func(ctx context.Context) error {
			c, _ := CallFrom(ctx)
			return c.Check()
		},
		"a context that is made of it": func(ctx context.Context) error {
			made, cancel := context.WithCancel(context.WithValue(ctx, taskKey{}, nil))
			defer cancel()
			return context.Cause(made)
		},
	} {
		ctx, end := inCall(t.Context(), most, nil)
		call, _ := CallFrom(ctx)
		call.began = call.began.Add(-most) // the timer knows nothing of this
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-call.inner.Done(): // and so does everything that was made of it before
		default:
			t.Errorf("%s: the context has not ended", name)
		}
		end()
	}
}

// TestACallByTheWallClock: while a machine sleeps the monotonic clock stands still and the wall clock does not.
func TestACallByTheWallClock(t *testing.T) {
	now := time.Now()
	asleep := now.Add(time.Hour)
	(*[2]uint64)(unsafe.Pointer(&asleep))[1] -= uint64(time.Hour) // its monotonic reading is that of now: no clock can be set here
	if asleep.Sub(now) != 0 || asleep.Round(0).Sub(now.Round(0)) != time.Hour {
		t.Fatalf("a time has become something else: %v and %v apart", asleep.Sub(now), asleep.Round(0).Sub(now.Round(0)))
	}
	if got := Elapsed(now, asleep); got != time.Hour {
		t.Errorf("an hour asleep counts as %v", got)
	}
	if got := Elapsed(now.Add(-time.Minute), now); got != time.Minute {
		t.Errorf("a minute awake counts as %v", got)
	}
}

func TestACallEndsWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &heldUntil{end: time.Now().Add(time.Second)}
		ctx, end := inCall(t.Context(), time.Minute, lease)
		defer end()
		call, _ := CallFrom(ctx)
		if err := call.Check(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := call.Check(); !errors.Is(err, graphadapter.ErrFenced) {
			t.Errorf("got %v", err)
		}
		if err := ctx.Err(); !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(ctx), graphadapter.ErrFenced) {
			t.Errorf("the context says %v, because of %v", err, context.Cause(ctx))
		}
	})
	ctx, end := inCall(t.Context(), time.Minute, nil)
	end()
	call, _ := CallFrom(ctx)
	if call.Check() == nil {
		t.Error("a call that is over may send: Do left something behind")
	}
}

// TestNothingIsCalledBehindALease: the execution stood still between its intent and the call, or before it ever told the
// server anything.
func TestNothingIsCalledBehindALease(t *testing.T) {
	unsure := errors.New("no answer")
	for _, c := range []struct {
		name   string
		target ledger.Target
		lease  *heldUntil
		calls  int
		asked  int
	}{
		{"held", ledger.TargetLookupOnly, &heldUntil{}, 1, 1},
		{"over", ledger.TargetKeyed, &heldUntil{end: time.Now().Add(-time.Second)}, 0, 0},
		{"not confirmed", ledger.TargetLookupOnly, &heldUntil{unsure: unsure}, 0, 1},
		{"not confirmed, and the target guarantees nothing", ledger.TargetNone, &heldUntil{unsure: unsure}, 0, 1},
		{"the target refuses a second call", ledger.TargetKeyed, &heldUntil{unsure: unsure}, 1, 0},
	} {
		b, receipt := &bank{}, ""
		_, err := attemptOf(t, oneNode(payOnce(&receipt), b.effect(c.target)), Env{Lease: c.lease})
		if b.calls != c.calls || (err == nil) != (c.calls == 1) || c.lease.confirmed != c.asked {
			t.Errorf("%s: %d calls, confirmed %d times, %v", c.name, b.calls, c.lease.confirmed, err)
		}
	}
}

// TestAfterALossAPersonIsAsked: of an effect that wants it. A call that failed is looked up and repeated.
func TestAfterALossAPersonIsAsked(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails bool // the first call comes back with an error; else its worker is lost with it
		async bool // and nothing was stored of it
		loss  ledger.Loss
		asks  bool
		calls int
	}{
		{"lost", false, false, ledger.LossAsk, true, 1},
		{"lost, without a trace", false, true, ledger.LossAsk, true, 1},
		{"failed", true, false, ledger.LossAsk, false, 2},
		{"lost, and the effect does not ask", false, false, ledger.LossRepeat, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, receipt := &bank{}, ""
				e := b.effect(ledger.TargetLookupOnly)
				e.OnLoss = c.loss
				do, first := e.Do, true
				ctx, lost := context.WithCancelCause(t.Context())
				e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
					if !first {
						return do(ctx, key, params)
					}
					first, b.calls = false, 1
					if !c.fails {
						lost(graphadapter.ErrFenced)
						time.Sleep(time.Hour) // it is frozen
					}
					return nil, errors.New("no answer")
				}
				journal := mustJournal(t, nil)
				if _, err := RunAttempt(ctx, oneNode(payOnce(&receipt), e), payTask(), Env{Thread: "r-7", Journal: journal}); err == nil {
					t.Fatal("the first execution went well")
				}
				again := Env{Journal: journal, Suspect: true}
				if c.async {
					again.Journal, again.Lost = mustJournal(t, nil), true
				}
				began := time.Now()
				out, err := attemptOf(t, oneNode(payOnce(&receipt), e), again)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != graphadapter.DefaultCallTimeout+graphadapter.DefaultSettleTime {
					t.Errorf("it waited %v", took)
				}
				if b.calls != c.calls || (len(out.Questions) == 1) != c.asks {
					t.Errorf("%d calls, questions %v", b.calls, out.Questions)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// TestWhoCallsAgainSeeksADuplicate: the call of the lost execution arrives when the one that goes on for it has looked, and before it calls.
func TestWhoCallsAgainSeeksADuplicate(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrives bool // the first call does
		found   int
	}{
		{"the first call never arrives", false, 0},
		{"it arrives just before the second", true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var receipts []pregel.Value
				do := func(context.Context, string, pregel.Value) (pregel.Value, error) {
					return nil, errors.New("no answer")
				}
				e := graphadapter.Effect{Name: "payments.refund", Target: ledger.TargetLookupOnly,
					Do: func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
						return do(ctx, key, params)
					},
					Lookup: func(context.Context, string, pregel.Value) (graphadapter.Finding, error) {
						if len(receipts) == 0 {
							return graphadapter.Finding{Status: ledger.FindingNotFound}, nil
						}
						return graphadapter.Finding{Status: ledger.FindingCommitted, Receipt: receipts[0]}, nil
					}}
				receipt, journal, found := "", mustJournal(t, nil), 0
				env := Env{Journal: journal, Lease: &heldUntil{}, Duplicate: func(string) { found++ }}
				if _, err := attemptOf(t, oneNode(payOnce(&receipt), e), env); err == nil {
					t.Fatal("the first execution went well")
				}
				do = func(context.Context, string, pregel.Value) (pregel.Value, error) {
					if c.arrives {
						receipts = append(receipts, pregel.Value(`"rf-1"`))
					}
					receipts = append(receipts, pregel.Value(`"rf-2"`))
					return pregel.Value(`"rf-2"`), nil
				}
				env.Suspect = true
				if _, err := attemptOf(t, oneNode(payOnce(&receipt), e), env); err != nil || receipt != "rf-2" {
					t.Fatalf("got %q, %v", receipt, err)
				}
				if found != c.found {
					t.Errorf("found %d duplicates, want %d", found, c.found)
				}
			})
		})
	}
}
