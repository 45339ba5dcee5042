package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/internal/demo"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/thread"
)

func TestExactlyOne(t *testing.T) {
	order := payments.Order{ID: "o-1", Amount: 100}
	paid := payments.Receipt{ID: "rf-1", Amount: 100}
	moment := time.Now()
	good := func() account {
		return account{refunds: []payments.Receipt{paid}, traffic: payments.Traffic{Committed: 1},
			view: thread.View{Status: thread.StatusFinished,
				Output: map[string]json.RawMessage{"receipt": json.RawMessage(`{"id":"rf-1"}`)}}}
	}
	require.NoError(t, good().exactlyOne(order))
	for name, change := range map[string]func(*account){
		"no refund":                 func(a *account) { a.refunds, a.traffic.Committed = nil, 0 },
		"two refunds":               func(a *account) { a.refunds, a.traffic.Committed = []payments.Receipt{paid, paid}, 2 },
		"one more of another order": func(a *account) { a.traffic.Committed = 2 },
		"another amount":            func(a *account) { a.refunds[0].Amount = 99 },
		"reversed":                  func(a *account) { a.refunds[0].ReversedAt = &moment },
		"another receipt":           func(a *account) { a.view.Output["receipt"] = json.RawMessage(`{"id":"rf-2"}`) },
		"no receipt":                func(a *account) { a.view.Output = nil },
		"not finished":              func(a *account) { a.view.Status = thread.StatusRunning },
	} {
		a := good()
		change(&a)
		require.Error(t, a.exactlyOne(order), name)
	}
}

func TestRan(t *testing.T) {
	again, once := ran([]demo.Execution{{Node: "a", Attempt: 1}, {Node: "q", Attempt: 1, Asked: true}, {Node: "q", Attempt: 1},
		{Node: "b", Attempt: 3}})
	require.Equal(t, "b (attempt 3)", again)
	require.Equal(t, "a, q (and once to ask)", once)
	again, once = ran(nil)
	require.Equal(t, "nothing nothing", again+" "+once)
}

func TestRecovered(t *testing.T) {
	before := ledger.Entry{State: ledger.StateIntent, Attempts: 1}
	after := ledger.Entry{State: ledger.StateCommitted, Attempts: 1, Evidence: "lookup after crash", Result: json.RawMessage(`{"id":"rf-1"}`)}
	text, err := recovered(2, before, after)
	require.NoError(t, err)
	require.Equal(t, "attempt 2: intent → lookup after crash → committed rf-1; not sent again", text)
	after.Attempts, after.Evidence = 2, ""
	text, err = recovered(2, before, after)
	require.NoError(t, err)
	require.Equal(t, "attempt 2: intent → sent → committed rf-1; sent 2 times", text)
}
