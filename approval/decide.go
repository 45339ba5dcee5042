package approval

import (
	"encoding/json"
	"time"
)

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
