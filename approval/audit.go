package approval

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"superstep.dev/internal/clip"
)

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
	KindLapsed    Kind = "lapsed"    // an approval, of several that are needed, does not count any more: Code and Reason say why
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
	// Who is the person that it is about, "" when nobody is proven.
	Who        string  `json:"who,omitempty"`
	Verdict    Verdict `json:"verdict,omitempty"`
	ParamsHash string  `json:"params_hash,omitempty"`
	// Token is a token's id, and KeyID that of the key that signed it.
	Token  string `json:"token,omitempty"`
	KeyID  string `json:"key_id,omitempty"`
	Code   Code   `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	Policy string `json:"policy,omitempty"`
	// Count is how many of the same kind the entry counts, 0 for one: a flood is one entry.
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

// Append returns e as the next entry of the chain, and moves the chain on: Seq, Before and Hash are set, the time is in
// UTC, a reason has at most [MaxReason] bytes and every other text at most as many.
func (c *Chain) Append(e Entry) Entry {
	e = e.bounded()
	e.Seq, e.Before = c.Count+1, c.Head
	e.Hash = e.hash()
	c.Count, c.Head = e.Seq, e.Hash
	return e
}

// bounded returns the entry in a form that is the same after it was stored as JSON and read.
func (e Entry) bounded() Entry {
	for _, text := range []*string{
		(*string)(&e.Kind), &e.Thread, &e.Question, &e.Who, (*string)(&e.Verdict), &e.ParamsHash, &e.Token, &e.KeyID, (*string)(&e.Code),
		&e.Reason, &e.Policy,
		&e.Claimed, (*string)(&e.Op), &e.Mode, &e.Node, &e.Effect, &e.EffectKey, &e.State, &e.Checkpoint, &e.From, &e.Event,
	} {
		*text = clip.Text(*text, MaxReason)
	}
	e.At = e.At.Round(0).UTC()
	if year := e.At.Year(); year < 0 || year > 9999 {
		e.At = time.Time{} // JSON knows no such year
	}
	return e
}

// hash returns the hash of everything in the entry but its Hash, as canonical JSON.
func (e Entry) hash() string {
	e.Hash = ""
	text, err := json.Marshal(e)
	if err != nil {
		return "" // a year that JSON does not know: no entry of a chain has it
	}
	canonical, err := Canonical(text)
	if err != nil {
		return ""
	}
	return hash(canonical)
}

// BrokenError says that an audit is not what was recorded: an entry was edited, left out, added or moved.
type BrokenError struct {
	// Seq is the number at which it shows.
	Seq    int
	Reason string
}

// Error implements error.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the audit is broken at entry %d: %s; compare it with the run's event history", e.Seq, e.Reason)
}

// VerifyEntries checks that the entries follow the chain without a gap, and returns the chain after them. The error is a
// [*BrokenError]. Entries left out at the end show only when the chain that it returns is compared with the one known
// from elsewhere, as [Chain.Ends] does.
func VerifyEntries(from Chain, entries []Entry) (Chain, error) {
	for _, e := range entries {
		switch {
		case e.Seq != from.Count+1:
			return from, &BrokenError{Seq: from.Count + 1, Reason: fmt.Sprintf("entry %d stands in its place", e.Seq)}
		case e.Before != from.Head:
			return from, &BrokenError{Seq: e.Seq, Reason: "it follows another entry than the one before it"}
		case e.Hash == "" || e.Hash != e.hash():
			return from, &BrokenError{Seq: e.Seq, Reason: "its hash is not that of what it says"}
		}
		from = Chain{Count: e.Seq, Head: e.Hash}
	}
	return from, nil
}

// Ends returns a [*BrokenError] unless the chain ends as a known one does.
func (c Chain) Ends(known Chain) error {
	switch {
	case c.Count < known.Count:
		return &BrokenError{Seq: c.Count + 1, Reason: fmt.Sprintf("it and those up to %d are missing", known.Count)}
	case c.Count > known.Count:
		return &BrokenError{Seq: known.Count + 1, Reason: fmt.Sprintf("only %d entries were recorded", known.Count)}
	case c.Head != known.Head:
		return &BrokenError{Seq: c.Count, Reason: "it is not the last one that was recorded"}
	}
	return nil
}

// Lapsed is the entry of an audit that says that a vote counts no more: see [Ruling.Standing].
func (r Ruling) Lapsed(v Vote, question string, a Action) Entry {
	e := Entry{Kind: KindLapsed, Question: question, Who: v.By, Verdict: v.Verdict, ParamsHash: a.ParamsHash, Token: v.Token,
		KeyID: v.KeyID, Code: CodeLapsed, Reason: "it was given at " + stamp(v.At) + ", too long ago to count"}
	if r.revokes(v) {
		e.Code, e.Reason = CodeRevoked, "it was given at "+stamp(v.At)+" with a key that does not count any more"
	}
	if slices.Contains(r.Lost, v.Token) {
		e.Code, e.Reason = CodePermission, "it was given at "+stamp(v.At)+" by somebody who may not approve it any more"
	}
	return e
}
