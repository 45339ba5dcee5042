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

// TestDecide holds the whole table in text: each row of testdata/decide is what happens to a target.
func TestDecide(t *testing.T) {
	datadriven.RunTest(t, "testdata/decide", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		switch d.Cmd {
		case "first": // before the outside was asked: all states, suspect or not; the target makes no difference
			for _, state := range states {
				for _, suspect := range []bool{false, true} {
					action := ledger.Decide(targets[0], entryIn(state), suspect, ledger.FindingNone)
					for _, other := range targets[1:] {
						if got := ledger.Decide(other, entryIn(state), suspect, ledger.FindingNone); got != action {
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
	want := ledger.Decide(target, nil, true, finding)
	for _, state := range states {
		if state == ledger.StateCommitted {
			continue
		}
		for _, suspect := range []bool{false, true} {
			if got := ledger.Decide(target, entryIn(state), suspect, finding); got != want {
				t.Errorf("%s, %s, state %q, suspect %v: %s, want %s", finding, target, state, suspect, got, want)
			}
		}
	}
	return want
}

func TestDecideUsesACommittedReceiptWhateverIsSaid(t *testing.T) {
	for _, finding := range append(findings, ledger.FindingNone, "nonsense") {
		if got := ledger.Decide("", entryIn(ledger.StateCommitted), true, finding); got != ledger.ActionUse {
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
		if got := ledger.Decide(c.target, entryIn(ledger.StateIntent), false, c.finding); got != ledger.ActionAskPerson {
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
