package workflows

import (
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// The names by which clients and workers know the workflows and their messages.
const (
	GraphWorkflow = "superstep.graph"
	DeskWorkflow  = "superstep.desk"

	UpdateResume = "resume"
	// UpdateInvoke gives a waiting run something new to do: input, or nothing to go on where it stands.
	UpdateInvoke = "invoke"
	// UpdateState writes to the thread's state from outside, while the run waits.
	UpdateState = "update_state"
	// UpdateRetry lets a run that failed and was held open go on.
	UpdateRetry = "retry"
	// UpdateDrain asks a run to stop before its next superstep.
	UpdateDrain = "drain"
	// UpdatePause pauses a run, or lets a paused one go on; so does SignalPause while no worker is there to reply.
	UpdatePause = "pause"
	SignalPause = "pause"
	// UpdateEvent sends an event to the thread; so does SignalEvent while no worker is there to reply.
	UpdateEvent  = "event"
	SignalEvent  = "event"
	SignalResume = "resume"

	QueryState   = "state"
	QueryHistory = "history"
	QueryGraph   = "graph"
	// QueryHandoff returns what a new run needs to continue a thread whose last run closed without a word.
	QueryHandoff = "handoff"
	// QueryAdmit asks a desk whether its worker serves a graph and takes an input or updates.
	QueryAdmit = "admit"
)

// The memo fields of a run: its graph's name, the fingerprint of the Spec that it goes on with, and who started it.
const (
	MemoGraph = "graph"
	MemoSpec  = "spec"
	// MemoStart tells the one call that started a run from others that tried.
	MemoStart = "start"
	// MemoPause is the run's [Pause], an empty one once it goes on again.
	MemoPause = "pause"
)

// The custom search attributes. A server that lacks them is served without.
const (
	AttributeGraph     = "SuperstepGraph"
	AttributeStatus    = "SuperstepStatus"
	AttributeNodes     = "SuperstepNodes"
	AttributeQuestions = "SuperstepQuestions"
	AttributeParent    = "SuperstepParent"
)

// The types of the application errors with which messages are refused and runs fail.
const (
	ErrTypeNodeFailed      = "superstep.NodeFailed"
	ErrTypeRunFailed       = "superstep.RunFailed"
	ErrTypeUnknownQuestion = "superstep.UnknownQuestion"
	ErrTypeAnswered        = "superstep.AlreadyAnswered"
	ErrTypeBadAnswer       = "superstep.BadAnswer"
	ErrTypeBusy            = "superstep.RunBusy"
	// ErrTypeNotFailed: there is nothing to retry.
	ErrTypeNotFailed = "superstep.NotFailed"
	// ErrTypeBadUpdate: an update of the state cannot be applied; nothing was.
	ErrTypeBadUpdate = "superstep.BadUpdate"
)

// GraphInput is the input of a graph's run. Everything that a run must know of its past is in it, so that a run can be
// continued as a new one, retried or forked by giving the same shape again.
type GraphInput struct {
	Graph string `json:"graph"`
	// Spec is the graph that the run goes on with; nil makes the run record that of the worker it starts on.
	Spec *pregel.Spec `json:"spec,omitempty"`
	// State is the thread's state to continue, as pregel.Program.EncodeThread wrote it; nil for a new thread.
	State pregel.Value `json:"state,omitempty"`
	// Replay says that State was chosen by its checkpoint: what came after it runs again, on a branch of its own.
	Replay bool `json:"replay,omitempty"`
	// Newest is the thread's newest state, where a run from an earlier State may end without a checkpoint of its own: the
	// thread then stands there again.
	Newest pregel.Value `json:"newest,omitempty"`
	// Edits are updates from outside, each a superstep of its own, of the graph at the path Within. A run with Edits
	// applies them and does no more: it is finished when nothing is left to run, and otherwise stands still.
	Edits   [][]graphadapter.StateUpdate `json:"edits,omitempty"`
	Within  []string                     `json:"within,omitempty"`
	Input   pregel.Input                 `json:"input"`
	Options pregel.Options               `json:"options"`
	// MaxConcurrency bounds the tasks under way at once; 0 means the window's own bound (500).
	MaxConcurrency int `json:"max_concurrency,omitempty"`
	// StepTimeout bounds a superstep's wall clock, in milliseconds; 0 means no bound.
	StepTimeout int64 `json:"step_timeout_ms,omitempty"`
	// Context is the run's context value; nil for none.
	Context pregel.Value `json:"context,omitempty"`
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string `json:"requester,omitempty"`
	// Durability is what the run was asked for, "" for what its graph says: see graphadapter.ModeOf.
	Durability graphadapter.Durability `json:"durability,omitempty"`
	// Fused runs consecutive supersteps in one activity in sync mode too; async and exit mode do so anyway.
	Fused bool `json:"fused,omitempty"`
	// Segments says that the run may do so. A run that was started before there was such a thing does not: its history
	// would not replay.
	Segments bool `json:"segments,omitempty"`
	// ReadsStored says that the run reads what its tasks have stored before it tells them to end. A run that was started
	// before there was such a thing does not: its history would not replay.
	ReadsStored bool `json:"reads_stored,omitempty"`
	// Suspect says that the run continues one that ended in failure, cancellation or termination: its unfinished
	// tasks may have acted outside without a trace.
	Suspect bool `json:"suspect,omitempty"`
	// Suspects says which tasks, beyond those, a segment of an earlier run may have run without a trace.
	Suspects graphadapter.Suspicion `json:"suspects,omitzero"`
	// Attributes says that the namespace has the custom search attributes.
	Attributes bool `json:"attributes,omitempty"`
	// Answered are the latest answers taken so far, so that a repeated one is recognised across runs.
	Answered []Answered `json:"answered,omitempty"`
	// Lines are the latest checkpoints of earlier runs of the thread, oldest first.
	Lines []Line `json:"lines,omitempty"`
	// Cancel makes the run one that only cleans up behind the thread's last, which has ended.
	Cancel *CancelBehind `json:"cancel,omitempty"`
	// Previous is the id of the thread's run before this one, "" for the first.
	Previous string `json:"previous,omitempty"`
	// Pauses is what the run knew of its pauses, where this execution only continues it.
	Pauses *PauseState `json:"pauses,omitempty"`
	// Carried is set in a run that goes on where its predecessor was continued as a new one; Input, Replay, Edits and
	// Suspect are not, then.
	Carried *Carried `json:"carried,omitempty"`
	// KeepOpen is how long the run stays open when nothing is left to do, in milliseconds: for more input, which it takes by
	// UpdateInvoke. -1 is until it is cancelled, 0 not at all.
	KeepOpen int64 `json:"keep_open_ms,omitempty"`
	// Hold keeps the run open when it fails, for UpdateRetry, new input, an update of the state or its cancellation.
	Hold bool `json:"hold,omitempty"`
	// ContinueAt says when the run is continued as a new one; nil for the defaults.
	ContinueAt *ContinueAt `json:"continue_at,omitempty"`
	// Events is what the thread knows of events: those that it keeps, and until when its tasks wait.
	Events *EventState `json:"events,omitempty"`
	// Approvals is what the thread knows of its approvals.
	Approvals *ApprovalState `json:"approvals,omitempty"`
}

// GraphResult is the result of a finished run, and as Closing the detail of a failed or cancelled one.
type GraphResult struct {
	Graph  string                  `json:"graph"`
	Output map[string]pregel.Value `json:"output,omitempty"`
	Closing
}

// Closing is what a run leaves to the next run of its thread. One event holds it: the run's last.
type Closing struct {
	Step int          `json:"step"`
	Spec *pregel.Spec `json:"spec"`
	// State is the thread\'s state as pregel.Program.EncodeThread wrote it; nil when it does not fit (1,600 KiB), and
	// then Error says so.
	State pregel.Value `json:"state,omitempty"`
	Error string       `json:"error,omitempty"`
	// Failure is why the run failed, nil when it did not.
	Failure  *pregel.NodeError `json:"failure,omitempty"`
	Answered []Answered        `json:"answered,omitempty"`
	Lines    []Line            `json:"lines,omitempty"`
	// Cancel is how the run was cancelled, nil when it was not, or plainly.
	Cancel *Cancellation `json:"cancel,omitempty"`
	// Events is what the thread knows of events. Those that it keeps count with the State.
	Events *EventState `json:"events,omitempty"`
	// Approvals is what the thread knows of its approvals, and the end of its audit.
	Approvals *ApprovalState `json:"approvals,omitempty"`
	// Settings are those that the run had: a retry goes on with them.
	Settings *Settings `json:"settings,omitempty"`
	// Suspect says which tasks that come next a segment may have run that was lost: the next run's GraphInput.Suspects.
	Suspect graphadapter.Suspicion `json:"suspect,omitzero"`
}

// ResumeRequest answers a question, as the argument of the update or the signal.
type ResumeRequest struct {
	// ID makes the request idempotent.
	ID       string       `json:"id"`
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
	// Repeated says that this very request had been taken before.
	Repeated bool `json:"repeated,omitempty"`
	// Votes are the approvals of the question so far, of the Need that it takes, and Decided says that this answer decided;
	// for answers to approvals only. Audit is the end of the thread's audit then.
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
}

// DrainRequest is the argument of UpdateDrain.
type DrainRequest struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

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
	Running  []string          `json:"running,omitempty"`
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
	// Run is the id of the run that made it.
	Run string `json:"run,omitempty"`
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
}

// AdmitReply is a desk's answer.
type AdmitReply struct {
	// Serves are the graphs of the worker that answered.
	Serves []string `json:"serves"`
	Known  bool     `json:"known"`
	// Problem says why the input or the updates are refused.
	Problem string       `json:"problem,omitempty"`
	Spec    *pregel.Spec `json:"spec,omitempty"`
}
