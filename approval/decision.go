package approval

import (
	"encoding/json"
	"slices"
	"time"
)

// Vote is one person's reply that a [Gate] allowed.
type Vote struct {
	By      string    `json:"by"`
	Verdict Verdict   `json:"verdict"`
	Reason  string    `json:"reason,omitempty"`
	Token   string    `json:"token,omitempty"`  // the token's id, never the token
	KeyID   string    `json:"key_id,omitempty"` // of the key that signed the token
	At      time.Time `json:"at"`
	Policy  string    `json:"policy,omitempty"` // the version of policy and directory that allowed it
}

// Decision is the answer that a task gets: it is bound to what was asked.
type Decision struct {
	Verdict  Verdict `json:"verdict"`
	Question string  `json:"question"`
	// Digest is that of the action that was decided on, see [Action.Digest]; ParamsHash is its parameters'.
	Digest     string `json:"digest"`
	ParamsHash string `json:"params_hash"`
	// Params are the parameters to go on with, when they are not those that the task asked about first.
	Params json.RawMessage `json:"params,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Votes  []Vote          `json:"votes,omitempty"`
	// At is when it was made: by the last vote, or by silence.
	At time.Time `json:"at,omitzero"`
}

// MaxQuorum bounds the approvals that one action can need.
const MaxQuorum = 20

// Needs returns how many approvals the action needs when its policy asks for need, 0 for none in particular.
func (a Action) Needs(need int) int { return min(max(1, a.Quorum, need), MaxQuorum) }

// Decide returns the decision that the votes make, the newest last; false while more approvals are needed. A rejection
// or an edit decides alone; proposed are the parameters of an edit.
func (a Action) Decide(question string, votes []Vote, need int, proposed json.RawMessage) (Decision, bool) {
	if len(votes) == 0 {
		return Decision{}, false
	}
	last := votes[len(votes)-1]
	d := a.decision(question, last.Verdict)
	d.Reason, d.Votes, d.At = last.Reason, votes, last.At
	switch last.Verdict {
	case VerdictEdit:
		d.Params = proposed
	case VerdictApprove:
		return d, len(votes) >= a.Needs(need)
	}
	return d, true
}

// Silent returns what is decided when nobody has answered in time, now: Default where Silence says so, and otherwise that
// the action is not done. votes are those of an incomplete quorum.
func (a Action) Silent(question string, votes []Vote, now time.Time) Decision {
	d := a.decision(question, VerdictExpired)
	if a.Silence == SilenceDefault && (a.Default == VerdictApprove || a.Default == VerdictReject) {
		d.Verdict = a.Default
	}
	d.Reason, d.Votes, d.At = "nobody decided in time", votes, now
	return d
}

// decision is bound to the action. The parameters go along where an approver has changed them: then they are not those
// that the task knows.
func (a Action) decision(question string, v Verdict) Decision {
	d := Decision{Verdict: v, Question: question, Digest: a.Digest(), ParamsHash: a.ParamsHash}
	if a.Before != nil {
		d.Params = a.Params
	}
	return d
}

// DefaultValidity is how long an approval of a high or critical risk counts whose action does not say.
const DefaultValidity = 24 * time.Hour

// Validity returns how long an approval of the action counts once it was given, 0 for ever: as the action says, or as its
// policy does, 0 for nothing, when that is less.
func (a Action) Validity(policy time.Duration) time.Duration {
	own := time.Duration(a.ValidFor) * time.Millisecond
	if own <= 0 && a.Risk.Above(RiskMedium) {
		own = DefaultValidity
	}
	return sooner(own, policy)
}

// sooner is the shorter of two times, of which 0 is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// given is the time from which the decision's validity counts: its oldest vote, or silence.
func (d Decision) given() time.Time {
	if len(d.Votes) == 0 {
		return d.At
	}
	return slices.MinFunc(d.Votes, func(a, b Vote) int { return a.At.Compare(b.At) }).At
}

func isOver(at time.Time, validity time.Duration, now time.Time) bool {
	return validity > 0 && !now.Before(at.Add(validity))
}
