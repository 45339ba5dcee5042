package thread

import (
	"encoding/json"
	"time"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// StateView is a thread's state at one checkpoint.
type StateView struct {
	Thread     string `json:"thread"`
	Graph      string `json:"graph"`
	Status     Status `json:"status"`
	Checkpoint string `json:"checkpoint"`
	Source     string `json:"source"`
	Step       int    `json:"step"`
	// CreatedAt is when the checkpoint was made; zero when that is not known any more, and for a subgraph's.
	CreatedAt time.Time                  `json:"created_at,omitzero"`
	Values    map[string]json.RawMessage `json:"values"`
	Parent    string                     `json:"parent,omitempty"`
	Next      []string                   `json:"next"`
	Tasks     []TaskView                 `json:"tasks,omitempty"`
	Questions []Question                 `json:"questions,omitempty"`
}

// TaskView is one task that a checkpoint leads to.
type TaskView struct {
	Node string `json:"node"`
	Path string `json:"path"`
	// Done says that it has finished, although its superstep has not.
	Done      bool              `json:"done,omitempty"`
	Questions []Question        `json:"questions,omitempty"`
	Error     *pregel.NodeError `json:"error,omitempty"`
	// State is the state of the task's subgraph, while it has one and it was asked for.
	State *StateView `json:"state,omitempty"`
}

// CheckpointView is one line of a thread's history.
type CheckpointView struct {
	Step       int      `json:"step"`
	Checkpoint string   `json:"checkpoint"`
	Parent     string   `json:"parent,omitempty"`
	Source     string   `json:"source"`
	Ran        []string `json:"ran"`
	Wrote      []string `json:"wrote"`
	Next       []string `json:"next"`
	// CreatedAt is when it was made: by the server's clock, or in a superstep.Memory by this machine's. Checkpoints that one activity
	// made, fused or in async mode, have the time of its end. Zero when that is not known any more.
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Values are the channels that have a value there, when they were asked for.
	Values map[string]json.RawMessage `json:"values,omitempty"`
}

// EffectView is one write to the outside.
type EffectView struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
	// Node called it, in superstep Step.
	Node string `json:"node"`
	Step int    `json:"step,omitempty"`
	// State is how far it got: intent (it may have been called), committed, failed (the outside refused it), unknown (a
	// person has to say), compensated (it was undone).
	State    string          `json:"state"`
	Attempts int             `json:"attempts"`
	Receipt  json.RawMessage `json:"receipt,omitempty"`
	// Evidence says how the state is known when it is not from the call itself.
	Evidence string `json:"evidence,omitempty"`
	// Approved says which decision it was called by; nil when it needed none.
	Approved *ledger.Approved `json:"approved,omitempty"`
	// Run is the run in which it came to its state, "" when that is not known any more, and Time is when.
	Run  string    `json:"run,omitempty"`
	Time time.Time `json:"time,omitzero"`
}

// EffectsView is what a thread did outside.
type EffectsView struct {
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	Status Status `json:"status"`
	// Effects are in the order in which they were begun, each in its newest state.
	Effects []EffectView `json:"effects"`
	// Gone counts the thread's earlier runs that the server has no more, as far as they are known: what they did is not
	// among Effects, except what was unfinished at their end.
	Gone int `json:"gone,omitempty"`
}
