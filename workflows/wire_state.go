package workflows

import (
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
)

// Answered is a question that got its answer.
type Answered struct {
	Question  string    `json:"question"`
	Node      string    `json:"node"`
	RequestID string    `json:"request_id"`
	By        string    `json:"by,omitempty"`
	At        time.Time `json:"at"`
}

// State is the answer to QueryState.
type State struct {
	Graph  string `json:"graph"`
	Status string `json:"status"`
	// Durability and Fused are the mode that the run runs in, "" for sync.
	Durability graphadapter.Durability `json:"durability,omitempty"`
	Fused      bool                    `json:"fused,omitempty"`
	// Drained is why the run was asked to stop, when that is why it stands still.
	Drained string `json:"drained,omitempty"`
	// Paused says who paused the run, also while the tasks that were under way end.
	Paused *Pause `json:"paused,omitempty"`
	// Failure is why a run failed that is held open; nil for any other.
	Failure  *pregel.NodeError `json:"failure,omitempty"`
	Snapshot pregel.Snapshot   `json:"snapshot"`
	// Made is when the snapshot's checkpoint was made, in milliseconds since 1970; 0 when that is not known any more.
	Made    int64    `json:"made_ms,omitempty"`
	Running []string `json:"running,omitempty"`
	// Output names the channels of the snapshot that are the graph's output; nil means all.
	Output []string `json:"output,omitzero"`
	// Questions wait for an answer of a person.
	Questions []pregel.OpenQuestion `json:"questions,omitempty"`
	// Approvals are what is known of those of the Questions that ask for approvals.
	Approvals []PendingApproval `json:"approvals,omitempty"`
	// Waits are for events; Due is when those with a timeout are over, and when the time to answer an approval is.
	Waits []pregel.OpenQuestion `json:"waits,omitempty"`
	Due   []Due                 `json:"due,omitempty"`
	// Kept are the events that nobody has waited for yet, without their values.
	Kept []KeptEvent `json:"kept,omitempty"`
	// Answered are the latest answers taken.
	Answered []Answered `json:"answered,omitempty"`
	// Refused are the latest answers by signal that were not taken, with the reason: a signal gets no reply.
	Refused []Refused `json:"refused,omitempty"`
	// Cancel is how the run is being cancelled, while it undoes its effects.
	Cancel *Cancellation `json:"cancel,omitempty"`
	// Ledgers are what the tasks of the newest superstep did outside.
	Ledgers []pregel.TaskLedger `json:"ledgers,omitempty"`
}

// QuestionReply is the answer to QueryQuestion.
type QuestionReply struct {
	// State is that of QueryOutline. Its questions are whole as far as a reply takes them: if not, all of them have one line
	// of their text as value.
	State
	// Question is the one that was asked about; nil when none is open, or several can be meant.
	Question *pregel.OpenQuestion `json:"question,omitempty"`
}

// StateTooLarge begins the error of a QueryState of a run that has more than one reply takes. The run's history has it.
const StateTooLarge = "the run's state is more than one reply takes"

// Refused is an answer or an event by signal that was not taken, or an event that was kept and fits none who waits.
type Refused struct {
	Question string `json:"question"`
	Event    string `json:"event,omitempty"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason"`
	// Code is why a gate refused an answer to an approval.
	Code approval.Code `json:"code,omitempty"`
	At   time.Time     `json:"at"`
}

// Line is one checkpoint in the thread's history.
type Line struct {
	Step       int           `json:"step"`
	Checkpoint string        `json:"checkpoint"`
	Parent     string        `json:"parent,omitempty"`
	Source     pregel.Source `json:"source"`
	Ran        []string      `json:"ran,omitempty"`
	Wrote      []string      `json:"wrote,omitempty"`
	Next       []string      `json:"next,omitempty"`
	// Run is the id of the run that made it, and At when it did, in milliseconds since 1970.
	Run string `json:"run,omitempty"`
	At  int64  `json:"at_ms,omitempty"`
}

// AdmitRequest asks a desk about a graph.
type AdmitRequest struct {
	Graph string       `json:"graph"`
	Input pregel.Value `json:"input,omitempty"`
	// Edits are updates of the state of the graph at the path Within, as in GraphInput.
	Edits  [][]graphadapter.StateUpdate `json:"edits,omitempty"`
	Within []string                     `json:"within,omitempty"`
	// WithSpec asks for the graph's Spec.
	WithSpec bool `json:"with_spec,omitempty"`
	// Leader asks about a leader instead of a graph.
	Leader string `json:"leader,omitempty"`
	// Control asks whether something may be done to a thread that has no run which could say so.
	Control *approval.ControlCheck `json:"control,omitempty"`
}

// AdmitReply is a desk's answer.
type AdmitReply struct {
	// Serves are the graphs of the worker that answered.
	Serves []string `json:"serves"`
	Known  bool     `json:"known"`
	// Problem says why the input or the updates are refused.
	Problem string       `json:"problem,omitempty"`
	Spec    *pregel.Spec `json:"spec,omitempty"`
	// Print is the fingerprint of the graph as that worker serves it.
	Print string `json:"print,omitempty"`
	// Governs says that what is done to runs is under rules, and Ruling what they say of the Control that was asked about.
	Governs bool             `json:"governs,omitempty"`
	Ruling  *approval.Ruling `json:"ruling,omitempty"`
	// Notices says that the worker tells people outside of questions.
	Notices bool `json:"notices,omitempty"`
	// Leaders are the leaders of the worker that answered, and Experts those of the leader that was asked about.
	Leaders []string      `json:"leaders,omitempty"`
	Experts []job.Profile `json:"experts,omitempty"`
}
