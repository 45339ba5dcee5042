package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter/ledger"
)

var (
	targets  = []ledger.Target{ledger.TargetKeyed, ledger.TargetLookupOnly, ledger.TargetNone}
	states   = []ledger.State{"", ledger.StateIntent, ledger.StateFailed, ledger.StateUnknown, ledger.StateCommitted}
	findings = []ledger.Finding{
		ledger.FindingCommitted, ledger.FindingNotFound, ledger.FindingStillNotFound, ledger.FindingPartial,
		ledger.FindingUnknown,
	}
)

func entryIn(state ledger.State) *ledger.Entry {
	if state == "" {
		return nil
	}
	return &ledger.Entry{Key: "k", Name: "pay", Kind: ledger.KindEffect, State: state}
}

func of(t ledger.Target) ledger.Guarantee { return ledger.Guarantee{Target: t} }

func suspected(yes bool) ledger.Earlier {
	if yes {
		return ledger.EarlierUncertain
	}
	return ledger.EarlierNone
}

// TestDecide holds the whole table in text: each row of testdata/decide is what happens to a target.
func TestDecide(t *testing.T) {
	datadriven.RunTest(t, "testdata/decide", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		switch d.Cmd {
		case "first": // before the outside was asked: all states, suspect or not; the target makes no difference
			for _, state := range states {
				for _, suspect := range []bool{false, true} {
					action := ledger.Decide(of(targets[0]), entryIn(state), suspected(suspect), ledger.FindingNone)
					for _, other := range targets[1:] {
						if got := ledger.Decide(of(other), entryIn(state), suspected(suspect), ledger.FindingNone); got != action {
							t.Errorf("target %s: %s %v: %s, want %s", other, state, suspect, got, action)
						}
					}
					fmt.Fprintf(&out, "%-10s suspect=%-6v %s\n", orNone(state), suspect, action)
				}
			}
		case "then": // after the outside said something, for every entry that is not committed
			for _, finding := range findings {
				for _, target := range targets {
					fmt.Fprintf(&out, "%-16s %-12s %s\n", finding, target, sameForAll(t, target, finding))
				}
			}
		default:
			d.Fatalf(t, "unknown command %q", d.Cmd)
		}
		return out.String()
	})
}

// sameForAll returns the action, which must not depend on the entry's state or on suspicion.
func sameForAll(t *testing.T, target ledger.Target, finding ledger.Finding) ledger.Action {
	t.Helper()
	want := ledger.Decide(of(target), nil, ledger.EarlierUncertain, finding)
	for _, state := range states {
		if state == ledger.StateCommitted {
			continue
		}
		for _, suspect := range []bool{false, true} {
			if got := ledger.Decide(of(target), entryIn(state), suspected(suspect), finding); got != want {
				t.Errorf("%s, %s, state %q, suspect %v: %s, want %s", finding, target, state, suspect, got, want)
			}
		}
	}
	return want
}

// TestDecideAfterALoss: an effect that wants a person asked about a call which a worker was lost with has one asked, when the
// outside still does not have the write; about one that came back, or that a person has answered for, nobody is asked.
func TestDecideAfterALoss(t *testing.T) {
	intent := ledger.Entry{Key: "k", Name: "pay", Kind: ledger.KindEffect, State: ledger.StateIntent}
	sent := func(e ledger.Entry) ledger.Entry {
		e, err := e.Send()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, c := range []struct {
		name    string
		target  ledger.Target
		loss    ledger.Loss
		entry   *ledger.Entry
		before  ledger.Earlier
		finding ledger.Finding
		want    ledger.Action
	}{
		{"lost with a call", ledger.TargetLookupOnly, ledger.LossAsk, new(sent(intent)), ledger.EarlierUncertain, ledger.FindingStillNotFound, ledger.ActionAskPerson},
		{"the settle time is waited for first", ledger.TargetLookupOnly, ledger.LossAsk, new(sent(intent)), ledger.EarlierUncertain, ledger.FindingNotFound, ledger.ActionWaitSettle},
		{"it is there", ledger.TargetLookupOnly, ledger.LossAsk, new(sent(intent)), ledger.EarlierUncertain, ledger.FindingCommitted, ledger.ActionAccept},
		{"the call failed", ledger.TargetLookupOnly, ledger.LossAsk, new(sent(intent).Return()), ledger.EarlierUncertain, ledger.FindingStillNotFound, ledger.ActionCall},
		{"one of two was lost", ledger.TargetLookupOnly, ledger.LossAsk, new(sent(sent(intent)).Return()), ledger.EarlierUncertain, ledger.FindingStillNotFound, ledger.ActionAskPerson},
		{"a person said repeat, and that call failed", ledger.TargetLookupOnly, ledger.LossAsk, new(sent(sent(intent).AnsweredFor()).Return()), ledger.EarlierUncertain, ledger.FindingStillNotFound, ledger.ActionCall},
		{"a person said repeat, and that call was lost", ledger.TargetLookupOnly, ledger.LossAsk, new(sent(sent(intent).AnsweredFor())), ledger.EarlierUncertain, ledger.FindingStillNotFound, ledger.ActionAskPerson},
		{"no trace, and nothing was lost", ledger.TargetLookupOnly, ledger.LossAsk, nil, ledger.EarlierUncertain, ledger.FindingStillNotFound, ledger.ActionCall},
		{"no trace of what was lost", ledger.TargetLookupOnly, ledger.LossAsk, nil, ledger.EarlierLost, ledger.FindingStillNotFound, ledger.ActionAskPerson},
		{"the effect does not ask", ledger.TargetLookupOnly, ledger.LossRepeat, new(sent(intent)), ledger.EarlierLost, ledger.FindingStillNotFound, ledger.ActionCall},
		{"the target refuses a second call", ledger.TargetKeyed, ledger.LossAsk, new(sent(intent)), ledger.EarlierLost, ledger.FindingNotFound, ledger.ActionCall},
	} {
		if got := ledger.Decide(ledger.Guarantee{Target: c.target, OnLoss: c.loss}, c.entry, c.before, c.finding); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestDecideUsesACommittedReceiptWhateverIsSaid(t *testing.T) {
	for _, finding := range append(findings, ledger.FindingNone, "nonsense") {
		if got := ledger.Decide(of(""), entryIn(ledger.StateCommitted), ledger.EarlierLost, finding); got != ledger.ActionUse {
			t.Errorf("finding %q: %s", finding, got)
		}
	}
}

func TestDecideAsksAPersonAboutWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		target  ledger.Target
		finding ledger.Finding
	}{
		{"", ledger.FindingNotFound}, {"newer", ledger.FindingStillNotFound}, {ledger.TargetKeyed, "newer"},
	} {
		if got := ledger.Decide(of(c.target), entryIn(ledger.StateIntent), ledger.EarlierNone, c.finding); got != ledger.ActionAskPerson {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func orNone(s ledger.State) string {
	if s == "" {
		return "no entry"
	}
	return string(s)
}
