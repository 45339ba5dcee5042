package taskrun

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

func TestLedgerSurvivesItsStoredForm(t *testing.T) {
	entries := []ledger.Entry{
		{Key: "k2", Name: "pay", Kind: ledger.KindEffect, State: ledger.StateIntent, ParamsHash: "h",
			Params: pregel.Value(`{"big":9007199254740993,"html":"<&>"}`), Attempts: 2, Rulings: 1, Evidence: "e"},
		{Key: "k1", Name: "llm", Kind: ledger.KindTask, State: ledger.StateCommitted, Result: pregel.Null, Attempts: 1},
	}
	stored, err := graphadapter.EncodeLedger(entries)
	if err != nil {
		t.Fatal(err)
	}
	if got := mustJournal(t, stored).Entries(); !reflect.DeepEqual(got, entries) {
		t.Errorf("got %+v from %s", got, stored)
	}
}

func TestEmptyLedger(t *testing.T) {
	if v, err := graphadapter.EncodeLedger(nil); v != nil || err != nil {
		t.Errorf("%s, %v", v, err)
	}
	for _, stored := range []string{"", "null", `{"version":1,"entries":[]}`} {
		if got := mustJournal(t, pregel.Value(stored)).Entries(); len(got) != 0 {
			t.Errorf("%q: %+v", stored, got)
		}
	}
}

func TestUnreadableLedger(t *testing.T) {
	for _, stored := range []string{"{", "[]", `{"version":2,"entries":[]}`, `{}`} {
		if _, err := graphadapter.NewMemoryJournal(pregel.Value(stored)); err == nil {
			t.Errorf("%s was read", stored)
		}
	}
}

func TestMemoryJournalIsOrderedByFirstRecord(t *testing.T) {
	j := mustJournal(t, nil)
	for _, key := range []string{"b", "a", "b"} {
		e, _ := j.Entry(key)
		e.Key, e.Attempts = key, e.Attempts+1
		if err := j.Record(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	got := j.Entries()
	if len(got) != 2 || got[0].Key != "b" || got[0].Attempts != 2 || got[1].Key != "a" {
		t.Errorf("%+v", got)
	}
	got[0].Key = "changed"
	if j.Entries()[0].Key != "b" {
		t.Error("the journal shares its entries")
	}
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if err := j.Record(ctx, ledger.Entry{Key: "c"}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func TestMemoryJournalInParallel(t *testing.T) {
	j := mustJournal(t, nil)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			for n := range 20 {
				_ = j.Record(t.Context(), ledger.Entry{Key: fmt.Sprint(n), Attempts: i})
				_, _ = j.Entry(fmt.Sprint(n))
				_ = j.Entries()
			}
		})
	}
	group.Wait()
	if got := len(j.Entries()); got != 20 {
		t.Errorf("%d entries", got)
	}
}
