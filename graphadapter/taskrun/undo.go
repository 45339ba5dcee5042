package taskrun

import (
	"context"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// Compensation is one effect of a thread that is to be undone.
type Compensation struct {
	// Graph is the path of subgraph names to the graph whose node called the effect, empty for the root graph.
	Graph []string `json:"graph,omitempty"`
	Node  string   `json:"node"`
	Step  int      `json:"step"`
	// Effect is its ledger entry.
	Effect ledger.Entry `json:"effect"`
	// Place is the [pregel.Task.Place] of the task that called it, "" when that is not known any more.
	Place string `json:"place,omitempty"`
	// Tried says that an earlier compensation of it was begun.
	Tried bool `json:"tried,omitempty"`
}

// UndoState says what became of a [Compensation].
type UndoState string

const (
	// UndoDone: the outside had the write, and has it no more.
	UndoDone UndoState = "compensated"
	// UndoAbsent: the outside never had it.
	UndoAbsent UndoState = "absent"
	// UndoOpen: no program can undo it, or tell whether it is undone; Reason says why. A person is asked.
	UndoOpen UndoState = "open"
)

// Undone is the outcome of a [Compensation].
type Undone struct {
	State UndoState `json:"state"`
	// Evidence says how we know, "" after our own call.
	Evidence string `json:"evidence,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Calls counts the calls that were started to undo it.
	Calls int `json:"calls,omitempty"`
	// Receipt is the receipt that was found of an effect that had none.
	Receipt pregel.Value `json:"receipt,omitempty"`
	// Params are, with UndoOpen, the effect's parameters as people are shown them, without the secrets that its Approval
	// names. They are null when they are larger than 16 KiB or not on record, and nil when nobody knows what to hide.
	Params pregel.Value `json:"params,omitempty"`
}

// CompensateEnv is what runs a compensation: like an [Env].
type CompensateEnv struct {
	Thread  string
	Context pregel.Value
	// Suspect says that an earlier execution may have called without a trace in the journal.
	Suspect bool
	Journal Journal
	// Lease says for how long the compensation is this execution's; nil for always.
	Lease Lease
	// Pause bounds the wait before the first repetition of a call that failed; 0 means 0.2 s, and each wait doubles.
	Pause time.Duration
	// Settling is told until when the compensation waits for an earlier call, which may still show in the outside, and the
	// zero time when it goes on; nil for nobody.
	Settling func(until time.Time)
	// wait waits for an earlier call to settle; nil waits.
	wait func(context.Context, time.Duration) error
}

// maxUndoCalls bounds the calls that are made to undo one effect before a person is asked.
const maxUndoCalls = 5

// undo is one compensation on its way through the protocol.
type undo struct {
	of       Compensation
	env      CompensateEnv
	effect   graphadapter.Effect
	own      ledger.Entry // of the compensation
	recorded bool         // own is in the journal
	finding  ledger.Finding
	found    pregel.Value // the receipt that was found
	note     string
	failure  error // of the last call
	// partly says that what is there is to be undone, whole or not: a person has said so.
	partly bool
}

func (u *undo) open(reason string) Undone {
	return Undone{State: UndoOpen, Reason: graphadapter.Bounded(reason), Receipt: u.found}
}

func (u *undo) pauseAfter(calls int) time.Duration {
	first := u.env.Pause
	if first == 0 {
		first = 200 * time.Millisecond
	}
	return first << max(calls-1, 0)
}

// before is what is known of the executions before this one. One of them that left nothing may have been lost.
func (u *undo) before() ledger.Earlier {
	switch {
	case !u.env.Suspect:
		return ledger.EarlierNone
	case u.recorded:
		return ledger.EarlierUncertain
	}
	return ledger.EarlierLost
}

// settledAfter is how long a call may still be under way unseen: the effect's, and one that may have been made to undo it,
// which has the default times.
func (u *undo) settledAfter() time.Duration {
	wait := settledAfter(u.of.Effect)
	if u.recorded || u.env.Suspect {
		wait = max(wait, graphadapter.DefaultCallTimeout+graphadapter.DefaultSettleTime)
	}
	return wait
}

// settledAfter is how long after a call of an effect began it may show in the outside at the latest.
func settledAfter(e ledger.Entry) time.Duration {
	if e.Settle <= 0 {
		return graphadapter.DefaultCallTimeout + graphadapter.DefaultSettleTime
	}
	return graphadapter.Milliseconds(e.Settle)
}
