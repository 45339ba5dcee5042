package taskrun

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// TestTheFirstCallOfAThreadKeyBehindABadEnd: a call of the run before may arrive after the first lookup. It is waited for
// as long as it can take, and not longer than that after its run.
func TestTheFirstCallOfAThreadKeyBehindABadEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		target ledger.Target
		behind time.Duration
		late   time.Duration // when the call of the run before arrives; 0 for never
		wait   time.Duration
		calls  int
		asks   bool
	}{
		{"no bad end", ledger.TargetLookupOnly, 0, 0, 0, 1, false},
		{"just before, and it arrives", ledger.TargetLookupOnly, time.Millisecond, 20 * time.Second, 35 * time.Second, 0, false},
		{"just before, and it does not", ledger.TargetLookupOnly, time.Millisecond, 0, 35 * time.Second, 1, false},
		{"long ago", ledger.TargetLookupOnly, 39 * time.Second, 0, 0, 1, false},
		{"the target refuses a second one", ledger.TargetKeyed, time.Millisecond, 0, 0, 1, false},
		{"the target guarantees nothing", ledger.TargetNone, time.Millisecond, 0, 0, 0, true},
		{"it guarantees nothing, and nothing happened", ledger.TargetNone, 0, 0, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bank{}
				e := b.effect(c.target)
				e.Lookup = b.lookup
				g := oneNode(calling(func(ctx context.Context, task *TaskRun) error {
					if c.late > 0 {
						key := task.threadKey(ledger.KindEffect, e.Name, "order-7")
						time.AfterFunc(c.late, func() {
							b.mu.Lock()
							defer b.mu.Unlock()
							b.writes = append(b.writes, key)
						})
					}
					_, err := task.Effect(ctx, e.Name, pregel.Value(`1`), graphadapter.CallOptions{Key: "order-7", ThreadWide: true})
					return err
				}), e)
				began := time.Now()
				out, err := attemptOf(t, g, Env{Alone: true, Behind: c.behind})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != c.wait {
					t.Errorf("it took %v, want %v", took, c.wait)
				}
				if b.calls != c.calls || (len(out.Questions) == 1) != c.asks || !c.asks && len(b.writes) != 1 {
					t.Errorf("%d calls, writes %v, questions %v", b.calls, b.writes, out.Questions)
				}
			})
		})
	}
}

// TestACompensationDoesNotBelieveAnEarlyAbsence: a target that can only be asked may not show the write yet when the
// worker that was about to undo it is lost, so "not found" does not mean that it is undone.
func TestACompensationDoesNotBelieveAnEarlyAbsence(t *testing.T) {
	for _, c := range []struct {
		name   string
		target ledger.Target
		shows  bool // the write after a while
		undone int  // calls
		wait   time.Duration
	}{
		{"it shows later", ledger.TargetLookupOnly, true, 1, 70 * time.Second}, // once more, as it is still there
		{"it never shows", ledger.TargetLookupOnly, false, 0, 35 * time.Second},
		{"the target knows keys", ledger.TargetKeyed, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, undone := &bank{}, 0
				e := b.effect(c.target)
				e.Compensate = func(_ context.Context, _ string, _, _ json.RawMessage) error {
					undone++
					return nil
				}
				if c.shows {
					time.AfterFunc(10*time.Second, func() {
						b.mu.Lock()
						defer b.mu.Unlock()
						b.writes = []string{"key-of-it"}
					})
				}
				began := time.Now()
				got, err := Compensate(t.Context(), oneNode(nil, e), Compensation{Node: "pay", Effect: ledger.Entry{Key: "key-of-it", Name: e.Name,
					Kind: ledger.KindEffect, State: ledger.StateCommitted, Params: []byte(`1`), Result: []byte(`"rf"`)}},
					CompensateEnv{Thread: "r-7", Suspect: true, Journal: mustJournal(t, nil)})
				if err != nil || got.State != UndoDone || undone != c.undone {
					t.Errorf("%+v after %d calls, %v", got, undone, err)
				}
				if took := time.Since(began); took != c.wait {
					t.Errorf("it took %v, want %v", took, c.wait)
				}
			})
		})
	}
}

// TestACompensationTellsUntilWhenItWaits, and that it goes on: before it asks the outside again.
func TestACompensationTellsUntilWhenItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, finds := time.Now(), []int{}
		var told []time.Time
		e := (&bank{}).effect(ledger.TargetLookupOnly)
		e.Lookup = func(context.Context, string, pregel.Value) (graphadapter.Finding, error) {
			finds = append(finds, len(told))
			return graphadapter.Finding{Status: ledger.FindingNotFound}, nil
		}
		got, err := Compensate(t.Context(), oneNode(nil, e), Compensation{Node: "pay", Effect: ledger.Entry{Key: "key-of-it", Name: e.Name,
			Kind: ledger.KindEffect, State: ledger.StateIntent, Params: []byte(`1`), Settle: 3000}},
			CompensateEnv{Thread: "r-7", Journal: mustJournal(t, nil), Settling: func(until time.Time) { told = append(told, until) }})
		if err != nil || got.State != UndoAbsent {
			t.Fatalf("%+v, %v", got, err)
		}
		if want := []time.Time{began.Add(3 * time.Second), {}}; !slices.EqualFunc(told, want, time.Time.Equal) || !slices.Equal(finds, []int{0, 2}) {
			t.Errorf("told %v, want %v; asked behind %v of them", told, want, finds)
		}
	})
}
