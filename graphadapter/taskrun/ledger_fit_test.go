package taskrun

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

func text(n int) pregel.Value { return pregel.Value(`"` + strings.Repeat("x", n) + `"`) }

func committed(key string, kind ledger.Kind, params, result int) ledger.Entry {
	return ledger.Entry{Key: key, Name: "n", Kind: kind, State: ledger.StateCommitted, Attempts: 1, ParamsHash: "h",
		Params: text(params), Result: text(result)}
}

func TestFitLedgerKeepsEffectsFirst(t *testing.T) {
	entries := []ledger.Entry{
		committed("memo-1", ledger.KindTask, 0, 600),
		committed("pay-1", ledger.KindEffect, 300, 300),
		committed("memo-2", ledger.KindTask, 0, 20),
		{Key: "pay-2", Name: "n", Kind: ledger.KindEffect, State: ledger.StateIntent, Params: text(2000)},
	}
	if fitted, whole := graphadapter.FitLedger(entries, 1<<20); !whole || len(fitted) != 4 {
		t.Errorf("with room for all: %d entries, whole %v", len(fitted), whole)
	}
	fitted, whole := graphadapter.FitLedger(entries, 1300)
	var keys []string
	for _, e := range fitted {
		keys = append(keys, e.Key)
	}
	if whole || fmt.Sprint(keys) != "[pay-1 memo-2 pay-2]" {
		t.Fatalf("kept %v, whole %v", keys, whole)
	}
	if pay := fitted[0]; len(pay.Result) != 302 || pay.Left != 0 {
		t.Errorf("a receipt with room for it was left out: %+v", pay)
	}
	if intent := fitted[2]; intent.State != ledger.StateIntent || intent.Params != nil {
		t.Errorf("the intent is %+v", intent)
	}
	fitted, _ = graphadapter.FitLedger(entries, 550)
	if len(fitted) == 0 || fitted[0].State != ledger.StateCommitted || fitted[0].Left != 302 || fitted[0].Result != nil {
		t.Errorf("a receipt without room: %+v", fitted)
	}
}

func TestFitLedgerNeverExceedsItsRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var entries []ledger.Entry
		for i := range random.IntN(20) {
			kind := ledger.KindTask
			if random.IntN(2) == 0 {
				kind = ledger.KindEffect
			}
			entries = append(entries, committed(fmt.Sprint(i), kind, random.IntN(300), random.IntN(3000)))
		}
		most := random.IntN(20_000)
		fitted, whole := graphadapter.FitLedger(entries, most)
		stored, err := graphadapter.EncodeLedger(fitted)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) > most && len(fitted) > 0 {
			t.Fatalf("%d bytes, at most %d", len(stored), most)
		}
		if all, _ := graphadapter.EncodeLedger(entries); whole != (len(fitted) == len(entries) && string(all) == string(stored)) {
			t.Fatalf("whole %v: %d of %d entries", whole, len(fitted), len(entries))
		}
	}
}

func TestMergeLedger(t *testing.T) {
	base, _ := graphadapter.EncodeLedger([]ledger.Entry{{Key: "a", State: ledger.StateIntent}, {Key: "b"}})
	newer, _ := graphadapter.EncodeLedger([]ledger.Entry{{Key: "c"}, {Key: "a", State: ledger.StateCommitted}})
	merged, err := graphadapter.MergeLedger(base, newer)
	if err != nil {
		t.Fatal(err)
	}
	entries := mustJournal(t, merged).Entries()
	if len(entries) != 3 || entries[0].State != ledger.StateCommitted || entries[2].Key != "c" {
		t.Errorf("merged: %+v", entries)
	}
	if merged, err := graphadapter.MergeLedger(nil, nil); merged != nil || err != nil {
		t.Errorf("of nothing: %s, %v", merged, err)
	}
}

// TestAResultTooLargeToKeep is used and told of; the call is made again when the node runs again, an effect's receipt
// is looked up.
func TestAResultTooLargeToKeep(t *testing.T) {
	b := &bank{}
	e := b.effect(ledger.TargetKeyed)
	large := text(maxLedgerBytes)
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		_, err := b.do(ctx, key, params)
		return large, err
	}
	e.Lookup = func(ctx context.Context, key string, params pregel.Value) (graphadapter.Finding, error) {
		f, err := b.lookup(ctx, key, params)
		f.Receipt = large
		return f, err
	}
	memos := 0
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		v, err := t.Memo(ctx, "draw", "", func(context.Context) (pregel.Value, error) { memos++; return large, nil })
		if err != nil || len(v) != len(large) {
			return fmt.Errorf("the call returned %d bytes: %w", len(v), err)
		}
		for range 2 { // the second is the recorded one
			v, err = t.Effect(ctx, "payments.refund", pregel.Value("1"), graphadapter.CallOptions{Key: "o-7"})
			if err != nil || len(v) != len(large) {
				return fmt.Errorf("the effect returned %d bytes: %w", len(v), err)
			}
		}
		return nil
	}), e)
	journal := mustJournal(t, nil)
	var warned []string
	for range 2 {
		_, err := attemptOf(t, g, Env{Journal: journal, Warn: func(err error) { warned = append(warned, err.Error()) }})
		if err != nil {
			t.Fatal(err)
		}
	}
	if b.calls != 1 || memos != 2 || b.lookups != 3 {
		t.Errorf("%d effect calls, %d memoised calls, %d lookups", b.calls, memos, b.lookups)
	}
	entries := journal.Entries()
	if entries[0].State != ledger.StateNotKept || entries[0].Left != len(large) || !strings.Contains(entries[0].Evidence, "too large") ||
		entries[1].State != ledger.StateCommitted || entries[1].Left != len(large) {
		t.Errorf("the ledger is %+v", entries)
	}
	if len(warned) == 0 || !strings.Contains(warned[0], `"draw"`) || !strings.Contains(warned[0], `thread "r-7"`) {
		t.Errorf("warned of %q", warned)
	}
}

// TestAReceiptNobodyCanShow is asked for: the write is there, so it is not repeated.
func TestAReceiptNobodyCanShow(t *testing.T) {
	b := &bank{}
	e := b.effect(ledger.TargetNone)
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		_, err := b.do(ctx, key, params)
		return text(maxLedgerBytes), err
	}
	var receipt string
	g := oneNode(payOnce(&receipt), e)
	journal := mustJournal(t, nil)
	if _, err := attemptOf(t, g, Env{Journal: journal}); err != nil {
		t.Fatal(err)
	}
	q := doubtful(t, g, journal)
	if !strings.Contains(string(q.Value), "too large to be kept") {
		t.Errorf("the question is %s", q.Value)
	}
	if _, err := withAnswers(t, g, journal, answerTo(q, `{"action":"repeat"}`)); err == nil || b.calls != 1 {
		t.Errorf("told to repeat what is there: %v, %d calls", err, b.calls)
	}
	if _, err := withAnswers(t, g, journal, answerTo(q, `{"action":"done","receipt":"rf-7"}`)); err != nil || receipt != "rf-7" {
		t.Errorf("receipt %q, %v", receipt, err)
	}
}

// TestALedgerWithoutRoom refuses a call before it is made.
func TestALedgerWithoutRoom(t *testing.T) {
	b := &bank{}
	g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		for i := range 100_000 {
			if _, err := t.Effect(ctx, "payments.refund", pregel.Value(fmt.Sprint(i)), graphadapter.CallOptions{}); err != nil {
				return err
			}
		}
		return nil
	}), b.effect(ledger.TargetKeyed))
	out, err := attemptOf(t, g, Env{})
	var full *LedgerFullError
	if !errors.As(err, &full) || !graphadapter.IsPermanent(err) || full.Calls != b.calls {
		t.Fatalf("after %d calls: %v", b.calls, err)
	}
	if len(out.Ledger) > maxLedgerBytes+maxLedgerBytes/10 || b.calls < 2000 {
		t.Errorf("%d calls, %d bytes", b.calls, len(out.Ledger))
	}
}
