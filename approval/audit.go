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
	// Before and Hash chain the entries: Hash covers everything else in the entry.
	Before string `json:"before"`
	Hash   string `json:"hash"`
}

// Chain is the end of a thread's audit: as much as has to be carried to add to it. The zero Chain is an empty one.
type Chain struct {
	Count int    `json:"count"`
	Head  string `json:"head"`
}
