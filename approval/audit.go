package approval

import "time"

// Kind is what an [Entry] records.
type Kind string

const (
	KindAsked     Kind = "asked"
	KindViewed    Kind = "viewed"
	KindVoted     Kind = "voted"    // a reply that counts, of several that are needed
	KindAnswered  Kind = "answered" // the reply that decided
	KindRefused   Kind = "refused"  // a reply that does not count
	KindWarned    Kind = "warned"
	KindEscalated Kind = "escalated"
	KindExpired   Kind = "expired"
	KindWithdrawn Kind = "withdrawn" // the question is not asked any more
	KindUsed      Kind = "used"      // what was approved was done
	KindNotUsed   Kind = "not_used"  // what was approved was refused right before it was to be done
	KindLapsed    Kind = "lapsed"    // an approval, of several that are needed, was given too long ago to count
)

// The kinds of what people and programs did to a run beside its approvals, and of what became of writes that were unclear.
const (
	KindPaused    Kind = "paused"
	KindUnpaused  Kind = "unpaused"
	KindCancelled Kind = "cancelled" // Mode says how
	KindRetried   Kind = "retried"   // it goes on after it failed or was ended
	KindForked    Kind = "forked"    // it goes on from an earlier checkpoint, of this thread or of another
	KindUpdated   Kind = "updated"   // its state was written from outside
	KindDrained   Kind = "drained"   // it was asked to stop before its next superstep
	KindInvoked   Kind = "invoked"   // it was given answers or a command with its input
	KindEvent     Kind = "event"     // it was sent one
	KindDenied    Kind = "denied"    // the rules refused to do what was asked for; Code and Reason say why

	KindReconciled Kind = "reconciled" // what became of a write was found out, State says what, or it was called again
	KindUnclear    Kind = "unclear"    // no program can tell, so a person is asked
	KindRuled      Kind = "ruled"      // a person said: Verdict is their word
	KindUndone     Kind = "undone"     // a write was taken back
	KindLeft       Kind = "left"       // a write was not taken back, though the run was cancelled for that
)

// Entry is one line of a thread's audit.
type Entry struct {
	// Seq counts a thread's entries from 1.
	Seq      int       `json:"seq"`
	At       time.Time `json:"at"`
	Kind     Kind      `json:"kind"`
	Thread   string    `json:"thread"`
	Question string    `json:"question,omitempty"`
	// Who is the person it is about, as far as it is proven; "" for nobody.
	Who        string  `json:"who,omitempty"`
	Verdict    Verdict `json:"verdict,omitempty"`
	ParamsHash string  `json:"params_hash,omitempty"`
	// Token is a token's id, and KeyID that of the key that signed it.
	Token  string `json:"token,omitempty"`
	KeyID  string `json:"key_id,omitempty"`
	Code   Code   `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	Policy string `json:"policy,omitempty"`
	// Count is how many of the same kind the entry stands for, 0 for one: a flood is one entry.
	Count int `json:"count,omitempty"`
	// Claimed is who says to have done it, which nobody has proven.
	Claimed string `json:"claimed,omitempty"`
	// Op is what was denied.
	Op Op `json:"op,omitempty"`
	// Mode is how a run was cancelled: keep, drop or compensate.
	Mode string `json:"mode,omitempty"`
	// Node is where it happened, and Effect and EffectKey which write it is about; State is what became of that.
	Node      string `json:"node,omitempty"`
	Effect    string `json:"effect,omitempty"`
	EffectKey string `json:"effect_key,omitempty"`
	State     string `json:"state,omitempty"`
	// Checkpoint is the one that an update has made, or at which a fork begins; From is the thread that has that one, ""
	// for this.
	Checkpoint string `json:"checkpoint,omitempty"`
	From       string `json:"from,omitempty"`
	// Event is an event's name.
	Event string `json:"event,omitempty"`
	// Before and Hash chain the entries: Hash covers everything else in the entry.
	Before string `json:"before"`
	Hash   string `json:"hash"`
}

// Chain is the end of a thread's audit: as much as has to be carried to add to it. The zero Chain is an empty one.
type Chain struct {
	Count int    `json:"count"`
	Head  string `json:"head"`
}
