// Package ledger holds the pure states of what a task does to the outside: memoised calls and effects.
package ledger

import "encoding/json"

// Kind tells a memoised call from a write to the outside.
type Kind string

const (
	// KindTask is a call whose result is remembered.
	KindTask Kind = "task"
	// KindEffect is a write to the outside.
	KindEffect Kind = "effect"
)

// State is how far an entry got.
type State string

const (
	// StateIntent: the call may have been made; no receipt yet.
	StateIntent State = "intent"
	// StateCommitted: the outside has it; Result is the receipt.
	StateCommitted State = "committed"
	// StateFailed: the outside refused it for good; nothing was written there.
	StateFailed State = "failed"
)

// Entry is one memoised call or effect of one task. The key is a hash of thread, branch, namespace, superstep, task
// path, name, and ordinal or given key; never of an attempt or a run id.
type Entry struct {
	Key        string `json:"key"`
	Name       string `json:"name"`
	Kind       Kind   `json:"kind"`
	State      State  `json:"state"`
	ParamsHash string `json:"params_hash,omitempty"`
	// Params are an effect's parameters as RFC 8785 JSON: reconciliation needs them after the node is gone.
	Params json.RawMessage `json:"params,omitempty"`
	// Result is a memoised call's result or an effect's receipt.
	Result json.RawMessage `json:"result,omitempty"`
	// Attempts counts the calls to the outside that were started.
	Attempts int `json:"attempts"`
	// Evidence says in words how a state other than by our own call came about: "lookup after crash".
	Evidence string `json:"evidence,omitempty"`
}
