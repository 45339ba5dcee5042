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
type Cancellation = life.CancelReport

// LeftEffect is an effect that a cancellation did not undo.
type LeftEffect = life.LeftEffect
