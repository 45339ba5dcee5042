package ledger_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"superstep.dev/graphadapter/ledger"
)

func TestTransitions(t *testing.T) {
	receipt := json.RawMessage(`{"id":"rf-1"}`)
	steps := map[string]func(ledger.Entry) (ledger.Entry, error){
		"send":   ledger.Entry.Send,
		"commit": func(e ledger.Entry) (ledger.Entry, error) { return e.Commit(receipt, "lookup after crash") },
		"refuse": func(e ledger.Entry) (ledger.Entry, error) { return e.Refuse("card closed") },
		"doubt":  func(e ledger.Entry) (ledger.Entry, error) { return e.Doubt("amounts differ", receipt) },
	}
	for _, c := range []struct {
		from     ledger.State
		step     string
		to       ledger.State
		attempts int
		result   string
		evidence string
	}{
		{"", "send", ledger.StateIntent, 1, "", ""},
		{ledger.StateIntent, "send", ledger.StateIntent, 1, "", ""},
		{ledger.StateFailed, "send", ledger.StateIntent, 1, "", ""},
		{ledger.StateUnknown, "send", ledger.StateIntent, 1, "", ""},
		{"", "commit", ledger.StateCommitted, 0, string(receipt), "lookup after crash"},
		{ledger.StateIntent, "commit", ledger.StateCommitted, 0, string(receipt), "lookup after crash"},
		{ledger.StateUnknown, "commit", ledger.StateCommitted, 0, string(receipt), "lookup after crash"},
		{ledger.StateIntent, "refuse", ledger.StateFailed, 0, "", "card closed"},
		{ledger.StateIntent, "doubt", ledger.StateUnknown, 0, string(receipt), "amounts differ"},
	} {
		e, err := steps[c.step](ledger.Entry{Key: "k", Name: "pay", State: c.from})
		if err != nil {
			t.Errorf("%q %s: %v", c.from, c.step, err)
			continue
		}
		if e.State != c.to || e.Attempts != c.attempts || string(e.Result) != c.result || e.Evidence != c.evidence {
			t.Errorf("%q %s: %+v", c.from, c.step, e)
		}
	}
	for name, step := range steps {
		before := ledger.Entry{Key: "k", Name: "pay", State: ledger.StateCommitted, Result: receipt}
		after, err := step(before)
		var wrong *ledger.TransitionError
		if !errors.As(err, &wrong) || wrong.From != ledger.StateCommitted {
			t.Errorf("%s of a committed entry: %v", name, err)
		}
		if string(after.Result) != string(receipt) || after.State != ledger.StateCommitted {
			t.Errorf("%s changed a committed entry: %+v", name, after)
		}
	}
}

func TestSameParams(t *testing.T) {
	e := ledger.Entry{Key: "k1", Name: "pay", ParamsHash: "aaaa"}
	if err := e.SameParams("aaaa"); err != nil {
		t.Error(err)
	}
	err := e.SameParams("bbbb")
	var conflict *ledger.ConflictError
	if !errors.As(err, &conflict) || conflict.Recorded != "aaaa" || conflict.Got != "bbbb" {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"pay", "k1", "aaaa", "bbbb"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if err := (ledger.Entry{}).SameParams("bbbb"); err != nil {
		t.Errorf("an entry without parameters conflicts: %v", err)
	}
}

func TestRuledCountsAndKeepsTheRest(t *testing.T) {
	e := ledger.Entry{Key: "k", State: ledger.StateUnknown, Attempts: 2}
	if got := e.Ruled().Ruled(); got.Rulings != 2 || got.State != e.State || got.Attempts != 2 {
		t.Errorf("got %+v", got)
	}
}
