package workflows

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// ResumeRequest answers a question, as the argument of the update or the signal.
type ResumeRequest struct {
	// ID makes the request idempotent.
	ID string `json:"id"`
	// Call names one call of its sender: the outcome has the name of the call that was taken, so that a sender knows whether
	// a call before was.
	Call     string       `json:"call,omitempty"`
	Question string       `json:"question"`
	Value    pregel.Value `json:"value,omitempty"`
	By       string       `json:"by,omitempty"`
	// Answers answer several questions at once, all or none, instead of Question and Value.
	Answers []pregel.Answer `json:"answers,omitempty"`
	// Token proves who answers an approval; Tokens do, by question, with Answers. Whoever needs none leaves them out.
	Token  string            `json:"token,omitempty"`
	Tokens map[string]string `json:"tokens,omitempty"`
}

// ResumeReply is the outcome of an accepted answer.
type ResumeReply struct {
	Question string `json:"question"`
	Node     string `json:"node"`
	// Repeated says that this very request had been taken before, by the Call of another name.
	Repeated bool   `json:"repeated,omitempty"`
	Call     string `json:"call,omitempty"`
	// By is who it counts as answered by. Votes are the approvals of the question so far, of the Need that it takes, and
	// Decided says that this answer decided; for answers to approvals only. Audit is the end of the thread's audit then.
	By      string          `json:"by,omitempty"`
	Votes   int             `json:"votes,omitempty"`
	Need    int             `json:"need,omitempty"`
	Decided bool            `json:"decided,omitempty"`
	Audit   *approval.Chain `json:"audit,omitempty"`
}

// InvokeRequest is the argument of UpdateInvoke.
type InvokeRequest struct {
	ID    string       `json:"id"`
	Input pregel.Input `json:"input"`
	// State replaces the thread's state by an earlier one of its own, to run again from there; nil goes on from the newest.
	State pregel.Value `json:"state,omitempty"`
	// Settings are those of the run from now on; nil keeps what it has.
	Settings *Settings `json:"settings,omitempty"`
	// Asked is who asks for it, and why; nil when nobody said.
	Asked *Asked `json:"asked,omitempty"`
}

// Settings shape a run: see the fields of the same names in GraphInput.
type Settings struct {
	Options        pregel.Options          `json:"options"`
	Durability     graphadapter.Durability `json:"durability,omitempty"`
	Fused          bool                    `json:"fused,omitempty"`
	MaxConcurrency int                     `json:"max_concurrency,omitempty"`
	StepTimeout    int64                   `json:"step_timeout_ms,omitempty"`
	Context        pregel.Value            `json:"context,omitempty"`
	Requester      string                  `json:"requester,omitempty"`
	// KeepOpen of 0 keeps a run open that is.
	KeepOpen int64 `json:"keep_open_ms,omitempty"`
	Hold     bool  `json:"hold,omitempty"`
	Notices  bool  `json:"notices,omitempty"`
}

// UpdateStateRequest is the argument of UpdateState.
type UpdateStateRequest struct {
	// ID makes the request idempotent.
	ID string `json:"id"`
	// State is an earlier state of the thread to update, as a branch; nil means the newest.
	State pregel.Value `json:"state,omitempty"`
	// Edits are the updates, each a superstep of its own, of the graph at the path Within.
	Edits  [][]graphadapter.StateUpdate `json:"edits"`
	Within []string                     `json:"within,omitempty"`
	// Asked is who asks for it, and why; nil when nobody said.
	Asked *Asked `json:"asked,omitempty"`
}

// UpdateStateReply is the outcome of an update.
type UpdateStateReply struct {
	// Checkpoint is the newest checkpoint now.
	Checkpoint string `json:"checkpoint"`
	// Next are the nodes that it leads to.
	Next []string `json:"next"`
}

// RetryRequest is the argument of UpdateRetry.
type RetryRequest struct {
	// ID makes the request idempotent.
	ID string `json:"id"`
	// By says who asks, and Reason why, for the audit.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Token proves who asks, where rules want that.
	Token string `json:"token,omitempty"`
}

// DrainRequest is the argument of UpdateDrain.
type DrainRequest struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
	// Token proves who asks, where rules want that.
	Token string `json:"token,omitempty"`
}
