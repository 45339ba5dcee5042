package approval

import (
	"encoding/json"
	"slices"
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
