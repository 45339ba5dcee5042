package protocol

import "superstep.dev/graphadapter/life"

// CancelMode says what a cancelled run leaves behind.
type CancelMode = life.CancelMode

// The modes, the strongest last: see package life.
const (
	CancelKeep       = life.CancelKeep
	CancelDrop       = life.CancelDrop
	CancelCompensate = life.CancelCompensate
)

// CancelRequest is the argument of SignalCancel.
type CancelRequest = life.Cancel

// CancelReply is the outcome of UpdateCancel.
type CancelReply = life.CancelReply

// CancelBehind cancels a thread whose last run has ended.
type CancelBehind struct {
	CancelRequest
	// Suspect says that the last run ended without a word: it may have begun to undo effects.
	Suspect bool `json:"suspect,omitempty"`
}

// Cancellation is how a run was cancelled, and what became of its effects.
type Cancellation struct {
	Mode   CancelMode `json:"mode"`
	Reason string     `json:"reason,omitempty"`
	By     string     `json:"by,omitempty"`
	// Undone counts the effects that were undone, or were never made.
	Undone int `json:"undone,omitempty"`
	// Left are those that were not, at most 200 of them; More counts the others.
	Left []LeftEffect `json:"left,omitempty"`
	More int          `json:"more,omitempty"`
	// Gone counts earlier runs of the thread that the server had no more: their effects are not known.
	Gone int `json:"gone,omitempty"`
	// Problem says why not all effects were looked at, "" when they were.
	Problem string `json:"problem,omitempty"`
	// Checkpoint is the one before the oldest superstep of which a write was undone, as a copy that is the thread's newest:
	// the thread goes on from there. It is "" when that superstep was the one under way.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Renewed says that what runs next on the thread has keys that nothing had before.
	Renewed bool `json:"renewed,omitempty"`
	// Halted says why the thread cannot go on by itself, although effects were undone: it stands behind them. It is "" when
	// it can.
	Halted string `json:"halted,omitempty"`
}

// LeftEffect is an effect that a cancellation did not undo.
type LeftEffect struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
	Node   string `json:"node"`
	Reason string `json:"reason"`
}
