package superstep

import (
	"context"
	"encoding/json"
	"time"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/past"
)

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

// EffectsRequest asks for what a thread did outside.
type EffectsRequest struct{ Thread string }

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

// Effects returns what the thread did outside: the effects of all its runs and branches, with those that failed or were
// cancelled and those of tasks under way, one row for each key. Errors: ErrNotFound.
func (t *Thread[Out]) Effects(ctx context.Context) (EffectsView, error) {
	return t.runtime.effectsOf(ctx, t.graph, t.id)
}

func effectsView(records []past.EffectRecord) []EffectView {
	out := make([]EffectView, len(records))
	for i, r := range records {
		out[i] = effectView(r.Node, r.Entry)
		out[i].Step, out[i].Run, out[i].Time = r.Step, r.Run, r.Time
	}
	return out
}
