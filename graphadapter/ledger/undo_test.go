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
		if got := DecideUndo(c.target, c.own, c.suspect, c.finding); got != c.want {
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
		if got := DecideStanding(c.target, c.finding); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.target, c.finding, got, c.want)
		}
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
