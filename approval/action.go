package approval

import (
	"encoding/json"
	"slices"
	"time"
)

// Risk is how much harm an action can do, as its author declares it.
type Risk string

// The risks, least first; "" counts as RiskMedium.
const (
	RiskLow      Risk = "low"
	RiskMedium   Risk = "medium"
	RiskHigh     Risk = "high"
	RiskCritical Risk = "critical"
)

// Silence is what happens when nobody has answered by the deadline.
type Silence string

const (
	// SilenceDeny rejects the action; it is what "" means.
	SilenceDeny Silence = "deny"
	// SilenceDefault decides as Action.Default says.
	SilenceDefault Silence = "default"
	// SilenceEscalate asks those in Action.Escalate for as long again, once; silence after that denies.
	SilenceEscalate Silence = "escalate"
	// SilencePause pauses the run and leaves the question open, without a deadline.
	SilencePause Silence = "pause"
)

// Drift is what happens when what was approved is not what would be done now: other parameters, tool version, plan
// version or watched state.
type Drift string

const (
	// DriftAsk asks again, a new question about what would be done now; it is what "" means.
	DriftAsk Drift = "ask"
	// DriftReplan gives the node a DriftError, for its graph to plan anew.
	DriftReplan Drift = "replan"
	// DriftStop fails the node for good.
	DriftStop Drift = "stop"
)

// Action is one thing that waits for approval. Its author fills it in but for the fields that say so. [Action.Check] has
// the bounds.
type Action struct {
	// Tool names what would be done, and ToolVersion which version of it; for an effect both are set by Superstep.
	Tool        string `json:"tool"`
	ToolVersion string `json:"tool_version,omitempty"`
	// Summary says in one sentence what would happen.
	Summary string `json:"summary"`
	// Params are exactly what it would happen with, and ParamsHash their hash: "sha256:" and the hex SHA-256 of their
	// RFC 8785 form. Superstep sets the hash, and for an effect the parameters.
	Params     json.RawMessage `json:"params,omitempty"`
	ParamsHash string          `json:"params_hash"`
	// PlanVersion is the version of the plan that the action belongs to.
	PlanVersion int `json:"plan_version,omitempty"`
	// Key is the idempotency key of the effect's call; set by Superstep.
	Key string `json:"key,omitempty"`
	// Requester is on whose behalf it would happen; "" means whoever started the run.
	Requester string `json:"requester,omitempty"`
	// Permissions are what approver and requester must have: names such as "refund.write", never secrets.
	Permissions []string `json:"permissions,omitempty"`
	Risk        Risk     `json:"risk,omitempty"`
	// Undo says how it can be undone; "" means that it cannot.
	Undo string `json:"undo,omitempty"`
	// Approvers are the people, and as "group:NAME" the groups, who are asked; none means whoever the policy allows.
	Approvers []string `json:"approvers,omitempty"`
	// Quorum is how many different people must approve; 0 means one. A policy may ask for more.
	Quorum int `json:"quorum,omitempty"`
	// Within is the time to answer, in milliseconds, 0 for ever; Warn is how long before its end people are warned.
	Within int64 `json:"within_ms,omitempty"`
	Warn   int64 `json:"warn_ms,omitempty"`
	// ValidFor is how long an approval counts once it was given, in milliseconds: whoever would act upon it later asks
	// anew. 0 is [DefaultValidity] with a high or critical risk, and for ever with a lower one. A policy may want less.
	ValidFor int64 `json:"valid_for_ms,omitempty"`
	// Silence says what follows when the time to answer is over, Default the verdict with SilenceDefault, and Escalate who is asked
	// then with SilenceEscalate.
	Silence  Silence  `json:"silence,omitempty"`
	Default  Verdict  `json:"default,omitempty"`
	Escalate []string `json:"escalate,omitempty"`
	// Secrets are JSON pointers (RFC 6901) to parameters that are never shown.
	Secrets []string `json:"secrets,omitempty"`
	// Watch is state of the outside that the approval relies on, by name; a change is a drift.
	Watch map[string]string `json:"watch,omitempty"`
	Drift Drift             `json:"drift,omitempty"`
	// Before says what this question follows from, nil for the first; set by Superstep.
	Before *Before `json:"before,omitempty"`
}

// Before is what was asked before, and why it is asked anew.
type Before struct {
	Question string `json:"question"`
	// By is who proposed other parameters; "" when the action drifted, or its approval counts no more.
	By string `json:"by,omitempty"`
	// Params are those of the question before, and Changed names what is different: "params", "tool_version",
	// "plan_version", "permissions", "watch.NAME", or "approval" for nothing but that the approval counts no more.
	Params  json.RawMessage `json:"params,omitempty"`
	Changed []string        `json:"changed,omitempty"`
	// Proposers are all who have proposed parameters since the action was first asked about: what is asked about now may
	// be from any of them.
	Proposers []string `json:"proposers,omitempty"`
}

// Proposers are the people who have changed the action's parameters since it was first asked about.
func (a Action) Proposers() []string {
	if a.Before == nil {
		return nil
	}
	return a.Before.Proposers
}

// Above reports whether r is a higher risk than other. "" is below all, for questions that are no approvals; a word that
// is not known is above all.
func (r Risk) Above(other Risk) bool { return r.level() > other.level() }

func (r Risk) level() int {
	all := []Risk{"", RiskLow, RiskMedium, RiskHigh, RiskCritical}
	if at := slices.Index(all, r); at >= 0 {
		return at
	}
	return len(all)
}

// Digest returns the hash of everything in the action that an approval is bound to: what would be done, with what, by
// which version, under which plan and key, for whom, needing what, and the watched state. How it is asked about (who,
// until when, what silence means) and what was asked before are not part of it. No permissions and no watched state are
// the same whether they are nil or empty.
func (a Action) Digest() string {
	bound := struct {
		Tool, ToolVersion, Summary, ParamsHash string
		PlanVersion                            int
		Key, Requester                         string
		Permissions                            []string
		Watch                                  map[string]string
	}{
		a.Tool, a.ToolVersion, a.Summary, a.ParamsHash, a.PlanVersion, a.Key, a.Requester,
		append([]string(nil), a.Permissions...), nil,
	}
	if len(a.Watch) > 0 {
		bound.Watch = a.Watch
	}
	text, _ := json.Marshal(bound) // strings, ints and a map with sorted keys always encode
	return hash(text)
}

// Verdict is what was decided about an action.
type Verdict string

const (
	VerdictApprove Verdict = "approve"
	VerdictReject  Verdict = "reject"
	// VerdictEdit proposes other parameters, which are a new question.
	VerdictEdit Verdict = "edit"
	// VerdictExpired: nobody answered in time, and silence denies. People cannot give it.
	VerdictExpired Verdict = "expired"
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
