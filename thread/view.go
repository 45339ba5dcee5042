package thread

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
)

// View is what is known of a thread without its values.
type View struct {
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	Status Status `json:"status"`
	RunID  string `json:"run_id"`
	// Durability is the run's, or its graph's when the run named none; Fused says that its supersteps share activities in
	// sync mode too. Both are empty when nobody could say.
	Durability graphadapter.Durability `json:"durability,omitempty"`
	Fused      bool                    `json:"fused,omitempty"`
	// Step is the superstep that runs or ran last; Nodes are those running or waiting now, or,
	// of a run that stopped, those that come next.
	Step      int        `json:"step"`
	Nodes     []string   `json:"nodes,omitempty"`
	Questions []Question `json:"questions,omitempty"`
	// Waits are tasks that wait for events, and Kept the events that nobody has waited for yet.
	Waits []WaitView      `json:"waits,omitempty"`
	Kept  []KeptEventView `json:"kept,omitempty"`
	// Refused are the latest 100 answers, events and requests that came by signal and were not taken: their senders had no
	// reply.
	Refused []RefusedView `json:"refused,omitempty"`
	Error   string        `json:"error,omitempty"`
	// Budget is what the thread has spent of its budget, nil without one.
	Budget *BudgetView `json:"budget,omitempty"`
	// Failure is why the run failed, nil when it did not or when nobody could say.
	Failure *pregel.NodeError `json:"failure,omitempty"`
	// Held says that the run is open although it failed (superstep.WithHold): a retry, new input or an update goes on with it.
	Held bool `json:"held,omitempty"`
	// Drained is why a run with StatusStopped was asked to stop; "" when it stands at a breakpoint.
	Drained string `json:"drained,omitempty"`
	// Paused says who paused the run, nil when nobody did. The run has StatusPaused once the tasks that were under way
	// have ended.
	Paused *PauseView `json:"paused,omitempty"`
	// Cancel is how the run was cancelled, also while it undoes its effects; nil for one that was not, or plainly.
	Cancel *CancelView `json:"cancel,omitempty"`
	// Attempts are the tasks under way that are not at their first attempt.
	Attempts []AttemptView `json:"attempts,omitempty"`
	// Problem is why a run makes no progress although nothing failed: no worker serves its graph, workers get lost, a storage is away.
	Problem string    `json:"problem,omitempty"`
	Started time.Time `json:"started"`
	// Closed and Expires are zero while the run is open; a closed thread is gone after Expires.
	Closed  time.Time `json:"closed,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Output holds the output channels of a run that is not under way, as far as they have a value.
	Output map[string]json.RawMessage `json:"output,omitempty"`
	// Events and HistoryBytes are the size of the run's history.
	Events       int64        `json:"events"`
	HistoryBytes int64        `json:"history_bytes"`
	Effects      []EffectView `json:"effects,omitempty"`
}

// Rests reports whether the run is open and has nothing under way: one that failed may be held.
func (v View) Rests() bool { return v.Held || v.Status.Rests() }

// AttemptView is a task under way of which an attempt has failed, or was lost with its worker.
type AttemptView struct {
	// Node runs, at superstep Step.
	Node string `json:"node"`
	Step int    `json:"step"`
	// Attempt is the attempt that runs or comes next, from 2 on, and Error why the one before failed.
	Attempt int    `json:"attempt"`
	Error   string `json:"error,omitempty"`
	// RetryAt is when the attempt begins, or began, by the server's clock; zero when it does not wait for a time.
	RetryAt time.Time `json:"retry_at,omitzero"`
}

// WaitView is one task's wait for an event.
type WaitView struct {
	// ID is the wait's: a wait for the first of several events has a view for each of them.
	ID    string `json:"id"`
	Event string `json:"event"`
	// Node waits, at superstep Step.
	Node string `json:"node"`
	Step int    `json:"step"`
	// Schema is the JSON schema of the event's value, nil for any JSON.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Due is when the wait is over; zero when it has no end.
	Due time.Time `json:"due,omitzero"`
}

// KeptEventView is an event that the thread keeps for the first wait of its name.
type KeptEventView struct {
	Event string    `json:"event"`
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
}

// RefusedView is an answer, an event or a request by signal that a run did not take.
type RefusedView = life.Refused

// CancelView is how a run was cancelled, or is being cancelled.
type CancelView struct {
	Mode   CancelMode `json:"mode"`
	Reason string     `json:"reason,omitempty"`
	By     string     `json:"by,omitempty"`
	// Undone counts the effects that were undone, or of which it turned out that they had never been made.
	Undone int `json:"undone,omitempty"`
	// Left are those that were not undone, at most 200 of them; More counts the others.
	Left []LeftEffect `json:"left,omitempty"`
	More int          `json:"more,omitempty"`
	// Gone counts earlier runs of the thread that the server has no more: what they did was not undone.
	Gone int `json:"gone,omitempty"`
	// Problem says why not all effects were looked at, "" when they were.
	Problem string `json:"problem,omitempty"`
	// Checkpoint is where the thread goes on: a copy of the one before the oldest superstep of which an effect was undone.
	// It is "" when that superstep was the one under way.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Waits is what the run waits for before it goes on to undo; nil when it does not wait.
	Waits *SettleView `json:"waits,omitempty"`
	// Halted says why the thread cannot go on by itself: effects were undone, and its state stands behind them. Cancel it
	// again in the same way, or run it from a checkpoint before them. It is "" when the thread can go on.
	Halted string `json:"halted,omitempty"`
	// Back says that a cancellation with CancelRollback has put the thread back to where it stood before the invocation.
	Back bool `json:"back,omitempty"`
}

// SettleView is a wait for an earlier call of an effect. The target may show that call until then, so what it says before
// is not believed.
type SettleView = graphadapter.Settling

// LeftEffect is an effect that a cancellation did not undo.
type LeftEffect = life.LeftEffect

// The states of a [Progress].
const (
	ProgressStarted = "started"
	ProgressOK      = "ok"
	ProgressFailed  = "failed"
	ProgressWaiting = "waiting"
	// ProgressRetrying: an attempt failed, or was lost with its worker; Attempt is the next one, and RetryAt when it begins.
	ProgressRetrying = "retrying"
	// ProgressWorking: the task is under way for Duration by now.
	ProgressWorking = "working"
)

// Progress is one line of a followed run.
type Progress struct {
	Step int    `json:"step"`
	Node string `json:"node"`
	// State is one of the Progress… constants.
	State    string        `json:"state"`
	Attempt  int           `json:"attempt,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Next are the nodes chosen by branches or commands (not those of plain edges).
	Next []string `json:"next,omitempty"`
	// Notes are the values the node emitted.
	Notes    []json.RawMessage `json:"notes,omitempty"`
	Question *Question         `json:"question,omitempty"`
	// Event is what the task waits for, when that is no person.
	Event string `json:"event,omitempty"`
	Error string `json:"error,omitempty"`
	// RetryAt is when the attempt of ProgressRetrying begins, by the server's clock; zero for at once.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Send says that a Send made the task. Of is how many tasks of the node were made so for the superstep, 0 when that is
	// not known.
	Send bool `json:"send,omitempty"`
	Of   int  `json:"of,omitempty"`
	// Done counts, for ProgressWorking without a node, the tasks that ended in the activity under way: each is reported once
	// the activity has ended.
	Done int `json:"done,omitempty"`
	// Task is the key of the task, as live.Emission names it. The JSON of a progress leaves it out.
	Task string `json:"-"`
}

// RootStep is the superstep of the thread's own graph in which the task runs: of a task of a subgraph, that of the node that runs the
// subgraph.
func (p Progress) RootStep() int {
	first, _, _ := strings.Cut(p.Task[strings.IndexByte(p.Task, '!')+1:], "/")
	if step, err := strconv.Atoi(first); err == nil {
		return step
	}
	return p.Step
}

// Status is where a thread stands. Each has one cause: a run that somebody paused is not one that failed, and one that
// ran out of time is not one that was cancelled.
type Status string

// The statuses of a thread.
const (
	StatusRunning Status = "running"
	// StatusWaiting: it waits for people to answer its questions.
	StatusWaiting Status = "waiting"
	// StatusWaitingEvent: it waits for events (superstep.WaitEvent), and for no person.
	StatusWaitingEvent Status = "waiting_event"
	// StatusPaused: somebody paused it (superstep unpause THREAD), and what was under way has ended.
	StatusPaused Status = "paused"
	// StatusStopped: it stands at a breakpoint, or was drained; it goes on when it is invoked without input.
	StatusStopped  Status = "stopped"
	StatusFinished Status = "finished"
	// StatusFailed: superstep retry THREAD goes on from its last checkpoint, as after the next two.
	StatusFailed Status = "failed"
	// StatusTimedOut: it failed because a bound on time was over: a node's, a superstep's, an event's that a node would
	// not go on without, or Temporal's own.
	StatusTimedOut Status = "timed_out"
	// StatusOutOfBudget: it failed at a bound on what it may use: its recursion limit, the size of its history, or a budget of which
	// nobody gave it more.
	StatusOutOfBudget Status = "out_of_budget"
	StatusCancelled   Status = "cancelled"
	// StatusTerminated: somebody ended it on the server, without a word to the run.
	StatusTerminated Status = "terminated"
)

// Failed reports whether a run with that status failed, for whatever reason: a retry goes on.
func (s Status) Failed() bool {
	return slices.Contains([]Status{StatusFailed, StatusTimedOut, StatusOutOfBudget}, s)
}

// Rests reports whether a run with that status is open and has nothing under way: it goes on when somebody lets it.
func (s Status) Rests() bool {
	return slices.Contains([]Status{StatusWaiting, StatusWaitingEvent, StatusPaused, StatusStopped}, s)
}

// Unfinished reports whether a run with that status is over without having finished.
func (s Status) Unfinished() bool { return s.Failed() || s == StatusCancelled || s == StatusTerminated }

// PauseView says who paused a run, when and why.
type PauseView = life.Paused

// StateView is a thread's state at one checkpoint.
type StateView struct {
	Thread     string `json:"thread"`
	Graph      string `json:"graph"`
	Status     Status `json:"status"`
	Checkpoint string `json:"checkpoint"`
	Source     string `json:"source"`
	Step       int    `json:"step"`
	// CreatedAt is when the checkpoint was made; zero when that is not known any more, and for a subgraph's.
	CreatedAt time.Time                  `json:"created_at,omitzero"`
	Values    map[string]json.RawMessage `json:"values"`
	Parent    string                     `json:"parent,omitempty"`
	Next      []string                   `json:"next"`
	Tasks     []TaskView                 `json:"tasks,omitempty"`
	Questions []Question                 `json:"questions,omitempty"`
	// Repeated says of the reply to an update that one of its id was taken before, and that nothing was written again.
	Repeated bool `json:"repeated,omitempty"`
}

// TaskView is one task that a checkpoint leads to.
type TaskView struct {
	Node string `json:"node"`
	Path string `json:"path"`
	// Done says that it has finished, although its superstep has not.
	Done      bool              `json:"done,omitempty"`
	Questions []Question        `json:"questions,omitempty"`
	Error     *pregel.NodeError `json:"error,omitempty"`
	// Result is what it wrote when it finished, by field: the last of several writes to one field.
	Result map[string]json.RawMessage `json:"result,omitempty"`
	// State is the state of the task's subgraph, while it has one and it was asked for.
	State *StateView `json:"state,omitempty"`
}

// CheckpointView is one line of a thread's history.
type CheckpointView struct {
	Step       int      `json:"step"`
	Checkpoint string   `json:"checkpoint"`
	Parent     string   `json:"parent,omitempty"`
	Source     string   `json:"source"`
	Ran        []string `json:"ran"`
	Wrote      []string `json:"wrote"`
	Next       []string `json:"next"`
	// CreatedAt is when it was made: by the server's clock, or in a superstep.Memory by this machine's. Checkpoints that one activity
	// made, fused or in async mode, have the time of its end. Zero when that is not known any more.
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Values are the channels that have a value there, and Tasks the tasks that it led to, when values were asked for.
	Values map[string]json.RawMessage `json:"values,omitempty"`
	Tasks  []TaskView                 `json:"tasks,omitempty"`
}

// EffectView is one write to the outside.
type EffectView struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
	// Node called it, in superstep Step.
	Node string `json:"node"`
	Step int    `json:"step,omitempty"`
	// State is how far it got: intent (it may have been called), committed, failed (the outside refused it), unknown (a
	// person has to say), compensated (it was undone).
	State    string          `json:"state"`
	Attempts int             `json:"attempts"`
	Receipt  json.RawMessage `json:"receipt,omitempty"`
	// Evidence says how the state is known when it is not from the call itself.
	Evidence string `json:"evidence,omitempty"`
	// Approved says which decision it was called by; nil when it needed none.
	Approved *ledger.Approved `json:"approved,omitempty"`
	// Run is the run in which it came to its state, "" when that is not known any more, and Time is when.
	Run  string    `json:"run,omitempty"`
	Time time.Time `json:"time,omitzero"`
}

// EffectsView is what a thread did outside.
type EffectsView struct {
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	Status Status `json:"status"`
	// Effects are in the order in which they were begun, each in its newest state.
	Effects []EffectView `json:"effects"`
	// Gone counts the thread's earlier runs that the server has no more, as far as they are known: what they did is not
	// among Effects, except what was unfinished at their end.
	Gone int `json:"gone,omitempty"`
}

// CheckpointRequest asks for the record of one checkpoint.
type CheckpointRequest struct {
	Thread string
	// Checkpoint names a checkpoint of the history; "" means where the thread stands now.
	Checkpoint string
}

// CheckpointRecord is all that a thread goes on with from a checkpoint, as one record: where it stands, what is done, what was
// written to the outside, what is to be decided, and what has to happen before it goes on. Values, parameters, receipts, tokens and
// keys are not in it: they are named by their digests, and permissions by their names.
type CheckpointRecord struct {
	ID     string `json:"checkpoint_id"`
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	// RunID is the run that made it, "" when the server has that run no more.
	RunID string `json:"run_id,omitempty"`
	// CreatedAt is when it was made, by the same rule as [CheckpointView].CreatedAt.
	CreatedAt time.Time `json:"created_at,omitzero"`
	Parent    string    `json:"parent,omitempty"`
	Source    string    `json:"source"`
	Step      int       `json:"step"`
	// Status is where the thread stands now, also in the record of an earlier checkpoint.
	Status Status `json:"status"`
	// Nodes are those that run next, wait or failed. Finished are the others of their superstep: they do not run again.
	Nodes    []string `json:"nodes"`
	Finished []string `json:"finished,omitempty"`
	// PlanVersion is the fingerprint of the graph with which the run goes on: the hex SHA-256 of its Spec.
	PlanVersion string `json:"plan_version"`
	// CompletedSteps are the supersteps on the way to the checkpoint, oldest first, at most the latest 1,000; More counts those
	// before them.
	CompletedSteps []CompletedStep `json:"completed_steps"`
	More           int             `json:"completed_steps_more,omitempty"`
	// SideEffects are the effects that were begun on the way to the checkpoint and in the superstep behind it, in their newest
	// states. PendingSideEffects are the keys of those of which it is not known whether they were made.
	SideEffects        []SideEffect `json:"side_effects"`
	PendingSideEffects []string     `json:"pending_side_effects"`
	// PendingActions are what people are asked to approve there.
	PendingActions []PendingAction `json:"pending_actions"`
	// Artifacts are the values of the state, by name, size and digest: the state at the checkpoint has them.
	Artifacts []ArtifactRef `json:"artifact_refs"`
	// ResumePolicy says what the thread waits for. Recheck says what is looked at again before it acts.
	ResumePolicy ResumePolicy `json:"resume_policy"`
	Recheck      []string     `json:"recheck,omitempty"`
}

// CompletedStep is a superstep that is done.
type CompletedStep struct {
	Step       int      `json:"step"`
	Nodes      []string `json:"nodes"`
	Checkpoint string   `json:"checkpoint"`
}

// SideEffect is an effect in the record of a checkpoint.
type SideEffect struct {
	Tool string `json:"tool"`
	Key  string `json:"idempotency_key"`
	Node string `json:"node"`
	Step int    `json:"step,omitempty"`
	// State is that of [EffectView].
	State      string `json:"state"`
	ParamsHash string `json:"params_hash,omitempty"`
	Attempts   int    `json:"attempts"`
	// Approval is the question by which it was approved, "" when it needed none.
	Approval string `json:"approval,omitempty"`
}

// PendingAction is an action that people are asked to approve: what is approved is exactly what the hashes name.
type PendingAction struct {
	Question    string `json:"question"`
	Node        string `json:"node"`
	Tool        string `json:"tool"`
	ToolVersion string `json:"tool_version,omitempty"`
	// ParamsHash is that of the parameters, Digest that of the whole action.
	ParamsHash string `json:"params_hash"`
	Digest     string `json:"digest"`
	Key        string `json:"idempotency_key,omitempty"`
	// Permissions are the names of what approver and requester must have when the action is carried out.
	Permissions []string `json:"permissions,omitempty"`
	Requester   string   `json:"requester,omitempty"`
	Risk        string   `json:"risk,omitempty"`
}

// ArtifactRef names a value of a thread's state.
type ArtifactRef struct {
	Name string `json:"name"`
	// Bytes is the size of its JSON, and SHA256 the digest of that, in hex.
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ResumePolicy is what a thread waits for at a checkpoint.
type ResumePolicy string

// The policies. Each follows from the thread's status and what is open there.
const (
	// ResumeByItself: it runs, and goes on by itself after a crash.
	ResumeByItself ResumePolicy = "by_itself"
	// ResumeAfterApproval: somebody has to decide on a pending action.
	ResumeAfterApproval ResumePolicy = "after_human_approval"
	ResumeAfterAnswer   ResumePolicy = "after_human_answer"
	ResumeAfterEvent    ResumePolicy = "after_event"
	ResumeAfterUnpause  ResumePolicy = "after_unpause"
	// ResumeAfterInvoke: it stands at a breakpoint or was drained.
	ResumeAfterInvoke ResumePolicy = "after_invoke"
	// ResumeAfterRetry: it failed, was cancelled or terminated.
	ResumeAfterRetry ResumePolicy = "after_retry"
	// ResumeAfterInput: it has finished.
	ResumeAfterInput ResumePolicy = "after_input"
	// ResumeByFork: the thread has passed the checkpoint.
	ResumeByFork ResumePolicy = "by_fork"
)

// What is looked at again before a thread acts: see [CheckpointRecord].Recheck.
const (
	// RecheckEffects: each pending side effect is looked up outside under its key before it is repeated.
	RecheckEffects = "effects"
	// RecheckPermissions: the approval is held against the action, the rules and the permissions of that moment.
	RecheckPermissions = "permissions"
)

// ScheduleView is a schedule as it is now.
type ScheduleView struct {
	ID       string    `json:"schedule"`
	Graph    string    `json:"graph"`
	Thread   string    `json:"thread"`
	Cron     string    `json:"cron,omitempty"`
	Every    string    `json:"every,omitempty"`
	TimeZone string    `json:"time_zone,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	Overlap  Overlap   `json:"overlap"`
	By       string    `json:"by,omitempty"`
	// Paused says that nothing comes due, and Note who said so, and why.
	Paused bool   `json:"paused,omitempty"`
	Note   string `json:"note,omitempty"`
	// Next are the times that come, at most three of them.
	Next []time.Time `json:"next"`
	// Last is the newest run, nil before the first.
	Last *ScheduledRun `json:"last,omitempty"`
	// Skipped counts the times that came due and began no run since one of before was open, as Overlap wants it. Missed counts those at
	// which the server could not begin one in time.
	Skipped int `json:"skipped,omitempty"`
	Missed  int `json:"missed,omitempty"`
}

// ScheduledRun is a run that a schedule has begun.
type ScheduledRun struct {
	Thread string    `json:"thread"`
	At     time.Time `json:"at"`
}
