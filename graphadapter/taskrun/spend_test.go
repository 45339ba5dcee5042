package taskrun

import (
	"encoding/json"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// TestWhatATaskSpentCountsOnce: what came with the task was counted when it came, also as what the thread keeps of another
// task's write.
func TestWhatATaskSpentCountsOnce(t *testing.T) {
	noted := func(key string, tokens int64) ledger.Entry {
		v, err := json.Marshal(Spending{Tokens: tokens})
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Entry{Key: key, Name: spendName, Kind: ledger.KindTask, State: ledger.StateCommitted, Result: v}
	}
	wrote := func(key string, s ledger.State) ledger.Entry {
		return ledger.Entry{Key: key, Name: "pay", Kind: ledger.KindEffect, State: s}
	}
	stored, err := graphadapter.EncodeLedger([]ledger.Entry{noted("a", 10), wrote("b", ledger.StateCommitted), wrote("c", ledger.StateIntent)})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(wrote("d", ledger.StateCommitted))
	if err != nil {
		t.Fatal(err)
	}
	task := &pregel.Task{Metered: true, Ledger: stored, Kept: map[string]pregel.Value{"d": kept, "e": pregel.Null}}
	all := []ledger.Entry{noted("a", 10), noted("f", 7), wrote("b", ledger.StateCompensated), wrote("c", ledger.StateCommitted),
		wrote("d", ledger.StateCommitted), wrote("e", ledger.StateCommitted), wrote("g", ledger.StateUnknown), wrote("h", ledger.StateFailed),
		{Key: "i", Name: "model", Kind: ledger.KindTask, State: ledger.StateCommitted, Result: json.RawMessage(`{"tokens":1000}`)}}
	if got := SpentOf(task, all); got == nil || *got != (pregel.Spent{Tokens: 7, Writes: 2}) {
		t.Errorf("it spent %+v", got)
	}
	task.Metered = false
	if got := SpentOf(task, all); got != nil {
		t.Errorf("a task without a budget spent %+v", got)
	}
	if sum, told := Noted(all); !told || sum != (Spending{Tokens: 17}) {
		t.Errorf("noted is %+v, %v", sum, told)
	}
}
