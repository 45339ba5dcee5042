package life_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// made is a trail, and the entries that it has made.
func made() (*life.Trail, *[]approval.Entry) {
	var all []approval.Entry
	return &life.Trail{State: &life.AuditState{}, Thread: "t-1", Noted: func(e approval.Entry) { all = append(all, e) }}, &all
}

// TestFloodIsAFewEntries: refusals of one kind are entries of one, nine, ninety, and people under many names are one kind at last.
func TestFloodIsAFewEntries(t *testing.T) {
	tr, all := made()
	for range 10_000 {
		tr.Refuse(life.EntryDenied(approval.OpPause, life.Actor{Claimed: "mallory", Ruling: approval.Ruling{Code: approval.CodeUnsigned}}), 1)
		tr.Flush(now, false)
	}
	tr.Flush(now, true)
	count := 0
	for _, e := range *all {
		count += max(e.Count, 1)
	}
	if len(*all) > 8 || count != 10_000 {
		t.Errorf("10,000 refusals are %d entries that stand for %d", len(*all), count)
	}
	before := len(*all)
	for i := range 10_000 {
		tr.Refuse(life.EntryDenied(approval.OpPause, life.Actor{Claimed: fmt.Sprint("mallory ", i)}), 1)
		tr.Flush(now, false)
	}
	if n := len(*all) - before; n > 70 {
		t.Errorf("10,000 refusals under as many names are %d entries", n)
	}
}

// TestRepliesCountWhereApprovalsAreAsked: junk on a thread that asks for none leaves no trace.
func TestRepliesCountWhereApprovalsAreAsked(t *testing.T) {
	tr, all := made()
	tr.Refuse(life.EntryRefused("q", approval.Ruling{Code: approval.CodeUnsigned}), 1)
	tr.Flush(now, true)
	if len(*all) != 0 {
		t.Errorf("it is noted: %v", *all)
	}
	tr.Note(now, life.EntryAsked("q", approval.Action{}))
	tr.Refuse(life.EntryRefused("q", approval.Ruling{Code: approval.CodeUnsigned}), 1)
	tr.Flush(now, true)
	if len(*all) != 2 {
		t.Errorf("there are %d entries, want 2", len(*all))
	}
}

// TestLedgersTellOnce: what a ledger tells again is no news, and one that has nothing to tell is not read.
func TestLedgersTellOnce(t *testing.T) {
	tr, all := made()
	tell := func(entries ...ledger.Entry) {
		t.Helper()
		stored, err := graphadapter.EncodeLedger(entries)
		if err != nil {
			t.Fatal(err)
		}
		tr.Happened(now, pregel.Event{Kind: pregel.EventLedger, Task: &pregel.Task{Node: "pay"}, Value: stored})
	}
	paid := ledger.Entry{Key: "k", Name: "pay", Kind: ledger.KindEffect, State: ledger.StateCommitted, Attempts: 1}
	tell(paid, ledger.Entry{Key: "m", Name: "memo", Kind: ledger.KindTask, State: ledger.StateCommitted, Evidence: "x"})
	if len(*all) != 0 {
		t.Fatalf("one call that had its receipt is noted: %v", *all)
	}
	found := paid
	found.Evidence = "lookup after crash"
	again := paid
	again.Key, again.Attempts = "k2", 12
	for range 3 {
		tell(found, again)
	}
	if len(*all) != 2 || (*all)[0].Reason != "lookup after crash" || !strings.Contains((*all)[1].Reason, "call 12 ") {
		t.Errorf("noted is %v", *all)
	}
	for _, e := range *all {
		if e.Kind != approval.KindReconciled || e.Node != "pay" || e.Effect != "pay" || e.State != "committed" {
			t.Errorf("noted is %+v", e)
		}
	}
	tr.Happened(now, pregel.Event{Kind: pregel.EventLedger, Task: &pregel.Task{}, Value: pregel.Value(`{"evidence":`)})
}

// TestUpdatesNameNoValues: what was written is nobody's business who reads an audit.
func TestUpdatesNameNoValues(t *testing.T) {
	e := life.EntryUpdated(life.Actor{Claimed: "ann"}, [][]graphadapter.StateUpdate{{{AsNode: "pay",
		Values: []pregel.Write{{Channel: "card", Value: pregel.Value(`"4929"`)}, {Channel: "card"}}}}}, "c-1", "typo")
	if e.Reason != "wrote card: typo" || e.Node != "pay" || e.Checkpoint != "c-1" {
		t.Errorf("noted is %+v", e)
	}
	answered := life.EntryAnswered(life.Actor{}, pregel.Question{ID: "q-1"}, pregel.Value(`"my secret"`))
	if answered.Verdict != "" || answered.Reason != "" {
		t.Errorf("an answer is noted: %+v", answered)
	}
}

// TestBeginnings: what a beginning is a recovery of, and what it takes a token for.
func TestBeginnings(t *testing.T) {
	for name, c := range map[string]struct {
		b     life.Beginning
		kinds []approval.Kind
		ops   []approval.Op
	}{
		"a new run":           {life.Beginning{Input: pregel.Input{Value: pregel.Value(`{}`)}}, nil, nil},
		"one that goes on":    {life.Beginning{}, nil, []approval.Op{approval.OpResume}},
		"a retry":             {life.Beginning{Failed: true}, []approval.Kind{approval.KindRetried}, []approval.Op{approval.OpRetry}},
		"new input after all": {life.Beginning{Failed: true, Input: pregel.Input{Value: pregel.Value(`{}`)}}, nil, nil},
		"a fork":              {life.Beginning{Failed: true, Checkpoint: "c"}, []approval.Kind{approval.KindForked}, []approval.Op{approval.OpFork}},
		"answers":             {life.Beginning{Answered: []string{"q"}}, []approval.Kind{approval.KindInvoked}, []approval.Op{approval.OpResume}},
		"a command": {life.Beginning{Input: pregel.Input{Control: &pregel.Command{Goto: []pregel.Target{{Node: "x"}}}}},
			[]approval.Kind{approval.KindInvoked}, []approval.Op{approval.OpUpdate}},
		"a budget for a thread": {life.Beginning{Budget: true, Input: pregel.Input{Value: pregel.Value(`{}`)}}, []approval.Kind{approval.KindInvoked},
			[]approval.Op{approval.OpResume}},
		"a retry with a budget": {life.Beginning{Failed: true, Budget: true}, []approval.Kind{approval.KindInvoked, approval.KindRetried},
			[]approval.Op{approval.OpRetry}},
		"a fork with answers": {life.Beginning{Checkpoint: "c", Answered: []string{"q"}},
			[]approval.Kind{approval.KindForked, approval.KindInvoked}, []approval.Op{approval.OpFork, approval.OpResume}},
	} {
		var kinds []approval.Kind
		for _, e := range life.Begins(life.Actor{}, c.b) {
			kinds = append(kinds, e.Kind)
		}
		var ops []approval.Op
		for _, op := range c.b.Ops(true) {
			ops = append(ops, op.Op)
		}
		if fmt.Sprint(kinds, ops) != fmt.Sprint(c.kinds, c.ops) {
			t.Errorf("%s is %v and takes %v, want %v and %v", name, kinds, ops, c.kinds, c.ops)
		}
	}
}
