package ledger

import (
	"errors"
	"testing"
)

// TestDecideUndo holds the whole table for compensations.
func TestDecideUndo(t *testing.T) {
	intent, done := &Entry{State: StateIntent, Attempts: 1}, &Entry{State: StateCommitted}
	for _, c := range []struct {
		target  Target
		own     *Entry
		suspect bool
		finding Finding
		want    Action
	}{
		{TargetKeyed, nil, false, FindingNone, ActionCall},
		{TargetNone, nil, false, FindingNone, ActionCall},
		{TargetKeyed, nil, true, FindingNone, ActionLookUp},
		{TargetKeyed, intent, false, FindingNone, ActionLookUp},
		{TargetNone, intent, false, FindingNone, ActionLookUp},
		{TargetKeyed, done, true, FindingNone, ActionUse},
		{TargetKeyed, intent, false, FindingNotFound, ActionAccept},
		{TargetNone, intent, false, FindingNotFound, ActionAccept},
		{TargetKeyed, intent, false, FindingCommitted, ActionCall},
		{TargetLookupOnly, intent, false, FindingCommitted, ActionWaitSettle},
		{TargetLookupOnly, intent, false, FindingStillCommitted, ActionCall},
		{TargetLookupOnly, intent, false, FindingNotFound, ActionWaitSettle},
		{TargetLookupOnly, nil, true, FindingNotFound, ActionWaitSettle},
		{TargetLookupOnly, intent, false, FindingStillNotFound, ActionAccept},
		{TargetNone, intent, false, FindingCommitted, ActionAskPerson},
		{TargetNone, intent, false, FindingStillCommitted, ActionAskPerson},
		{TargetKeyed, intent, false, FindingPartial, ActionAskPerson},
		{TargetKeyed, intent, false, FindingUnknown, ActionAskPerson},
		{TargetKeyed, intent, false, "something new", ActionAskPerson},
	} {
		before := EarlierNone
		if c.suspect {
			before = EarlierUncertain
		}
		if got := DecideUndo(Guarantee{Target: c.target}, c.own, before, c.finding); got != c.want {
			t.Errorf("%s, own %v, suspect %t, %q: %s, want %s", c.target, c.own, c.suspect, c.finding, got, c.want)
		}
	}
}

// TestDecideStanding holds the table for effects without a receipt.
func TestDecideStanding(t *testing.T) {
	for _, c := range []struct {
		target  Target
		finding Finding
		want    Action
	}{
		{TargetKeyed, FindingNone, ActionLookUp},
		{TargetNone, FindingCommitted, ActionAccept},
		{TargetKeyed, FindingNotFound, ActionWaitSettle},
		{TargetLookupOnly, FindingNotFound, ActionWaitSettle},
		{TargetKeyed, FindingStillNotFound, ActionUse},
		{TargetNone, FindingNotFound, ActionAskPerson},
		{TargetNone, FindingStillNotFound, ActionAskPerson},
		{TargetKeyed, FindingPartial, ActionAskPerson},
		{TargetKeyed, FindingUnknown, ActionAskPerson},
	} {
		if got := DecideStanding(Guarantee{Target: c.target}, &Entry{State: StateIntent, Attempts: 1}, c.finding); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.target, c.finding, got, c.want)
		}
	}
}

// TestUndoingAfterALoss: where an effect wants it, a person is asked before a call is made again that a worker was lost
// with, and before a write is taken for one that was never made.
func TestUndoingAfterALoss(t *testing.T) {
	asks := Guarantee{Target: TargetLookupOnly, OnLoss: LossAsk}
	lost, failed := &Entry{State: StateIntent, Attempts: 1}, &Entry{State: StateIntent, Attempts: 1, Returned: 1}
	for _, c := range []struct {
		name   string
		own    *Entry
		before Earlier
		want   Action
	}{
		{"lost", lost, EarlierUncertain, ActionAskPerson},
		{"failed", failed, EarlierUncertain, ActionCall},
		{"no trace", nil, EarlierLost, ActionAskPerson},
	} {
		if got := DecideUndo(asks, c.own, c.before, FindingStillCommitted); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := DecideStanding(asks, lost, FindingStillNotFound); got != ActionAskPerson {
		t.Errorf("a call that was lost: %s", got)
	}
	if got := DecideStanding(asks, failed, FindingStillNotFound); got != ActionUse {
		t.Errorf("a call that failed: %s", got)
	}
}

// TestWhatWasUndoneStaysUndone: no call, receipt or doubt takes it back.
func TestWhatWasUndoneStaysUndone(t *testing.T) {
	e, err := Entry{Key: "k", State: StateCommitted, Result: []byte(`1`)}.Undo("undone")
	if err != nil || e.State != StateCompensated || string(e.Result) != `1` || e.Evidence != "undone" {
		t.Fatalf("%+v, %v", e, err)
	}
	var wrong *TransitionError
	for name, leave := range map[string]func() (Entry, error){
		"send": e.Send, "undo": func() (Entry, error) { return e.Undo("") },
		"commit": func() (Entry, error) { return e.Commit(nil, "") },
		"doubt":  func() (Entry, error) { return e.Doubt("", nil) },
		"refuse": func() (Entry, error) { return e.Refuse("") },
	} {
		if _, err := leave(); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Entry{State: StateFailed}).Undo(""); !errors.As(err, &wrong) {
		t.Errorf("what was refused is undone: %v", err)
	}
}
