package protocol

import (
	"cmp"
	"encoding/json"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/job"
)

// Origin is the checkpoint of another thread with which a thread begins: what that one came by until then is the past of both.
type Origin struct {
	Thread string `json:"thread"`
	// Run is the newest run of that thread when it was copied.
	Run        string `json:"run"`
	Checkpoint string `json:"checkpoint"`
}

// GraphInput is the input of a graph's run. A graph's name and an input are all that a new thread needs; everything else has a
// default that the run decides on. What a run must know of its past is in it too, so that a run can be continued as a new one,
// retried or forked by giving the same shape again.
type GraphInput struct {
	Graph string `json:"graph"`
	// ID names the request that the run begins with: an InvokeRequest of the same ID is that request, and is given nothing again. ""
	// is not recognised.
	ID string `json:"id,omitempty"`
	Input
	// Spec is the graph that the run goes on with; nil makes the run record that of the worker it starts on.
	Spec *pregel.Spec `json:"spec,omitempty"`
	// Found is what the run finds around it; nil makes the run record what its first worker knows.
	Found *Found `json:"found,omitempty"`
	// State is the thread's state to continue, as pregel.Program.EncodeThread wrote it; nil for a new thread.
	State pregel.Value `json:"state,omitempty"`
	// ThreadOrigin is the origin of a thread that begins, which the keys of its effects contain: see pregel.Thread.Begin. "" makes it
	// that of the run, and of those that continue it.
	ThreadOrigin string `json:"thread_origin,omitempty"`
	// Replay says that State was chosen by its checkpoint: what came after it runs again, on a branch of its own.
	Replay bool `json:"replay,omitempty"`
	// Newest is the thread's newest state, where a run from an earlier State may end without a checkpoint of its own: the
	// thread then stands there again.
	Newest pregel.Value `json:"newest,omitempty"`
	// Edits are updates from outside, each a superstep of its own, of the graph at the path Within. A run with Edits
	// applies them and does no more: it is finished when nothing is left to run, and otherwise stands still.
	Edits   [][]graphadapter.StateUpdate `json:"edits,omitempty"`
	Within  []string                     `json:"within,omitempty"`
	Options pregel.Options               `json:"options,omitzero"`
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
	// Failed says that the run continues one that ended in failure, cancellation or termination: to go on without input is a retry.
	Failed bool `json:"failed,omitempty"`
	// Suspect says that the unfinished tasks of such a run may have acted outside without a trace: those that run next are the same
	// tasks, under the same keys.
	Suspect bool `json:"suspect,omitempty"`
	// Behind says that the thread goes on behind a run that failed, was cancelled or was terminated at least that many
	// milliseconds before this run began; 0 for none. Suspect alone is the same as 1.
	Behind int64 `json:"behind_ms,omitempty"`
	// Suspects says which tasks, beyond those, a segment of an earlier run may have run without a trace.
	Suspects segment.Suspicion `json:"suspects,omitzero"`
	// Life is what the run has to know of people and of time: what an earlier run of the thread left, or all that this one knew
	// where it is only continued.
	Life life.State `json:"life,omitzero"`
	// Lines are the latest checkpoints of earlier runs of the thread, oldest first.
	Lines Lines `json:"lines,omitempty"`
	// Cancel makes the run one that only cleans up behind the thread's last, which has ended.
	Cancel *CancelBehind `json:"cancel,omitempty"`
	// Previous is the id of the thread's run before this one, "" for the first.
	Previous string `json:"previous,omitempty"`
	// Origin is where the thread was copied from; nil in every run but the first of a copy, and in threads that are none.
	Origin *Origin `json:"origin,omitempty"`
	// Copy makes the run do nothing: the thread stands where State stood.
	Copy bool `json:"copy,omitempty"`
	// Asked is who asked for the run, and why.
	Asked Asked `json:"asked,omitzero"`
	// Carried is set in a run that goes on where its predecessor was continued as a new one; Input, Replay, Edits,
	// Failed and Suspect are not, then.
	Carried *Carried `json:"carried,omitempty"`
	// KeepOpen is how long the run stays open when nothing is left to do, in milliseconds: for more input, which it takes by
	// UpdateInvoke. -1 is until it is cancelled, 0 not at all.
	KeepOpen int64 `json:"keep_open_ms,omitempty"`
	// Hold keeps the run open when it fails, for UpdateRetry, new input, an update of the state or its cancellation.
	Hold bool `json:"hold,omitempty"`
	// ContinueAt says when the run is continued as a new one; nil for the defaults.
	ContinueAt *ContinueAt `json:"continue_at,omitempty"`
	// Expert says that the run is an attempt of a leader's subjob: it hands back a message, and keeps the rest of its result
	// in its own history. See [ExpertRecord].
	Expert bool `json:"expert,omitempty"`

	// Trace is the span of who asked for the run, as package tracing carries it; "" for none.
	Trace string `json:"trace,omitempty"`
	// TraceBefore is the span of the thread's run before this one, its Closing.Trace.
	TraceBefore string `json:"trace_before,omitempty"`

	unreadable error // why what was sent is none of this
}

// Input is what a run is to go on with: new input, or answers and a command, or nothing.
type Input struct {
	// Value is new input, of the form that the graph takes.
	Value pregel.Value `json:"input,omitempty"`
	// Resume answers open questions, and Control writes and routes from outside.
	Resume  *pregel.Resume  `json:"resume,omitempty"`
	Control *pregel.Command `json:"command,omitempty"`
}

// Found is what a run finds around it, and goes on with whatever is deployed later.
type Found struct {
	// Lists says that the namespace has the custom search attributes of runs, and Inbox those of open questions beside them.
	Lists bool `json:"lists,omitempty"`
	Inbox bool `json:"inbox,omitempty"`
	// Notices says that the run's worker has a notifier: people outside are told of questions.
	Notices bool `json:"notices,omitempty"`
	// Storage says that the run's worker has a storage: large values go by reference, and what bounds them is not the history.
	Storage bool `json:"storage,omitempty"`
}

// MaxState is how many bytes the state may have that a run of these findings leaves.
func (f *Found) MaxState() int {
	if f != nil && f.Storage {
		return MaxStoredBytes
	}
	return MaxStateBytes
}

// MaxPayload is how many bytes such a run may hand on to the one that continues it.
func (f *Found) MaxPayload() int {
	if f != nil && f.Storage {
		return MaxStoredBytes
	}
	return MaxPayloadBytes
}

// Smaller says what to do about a state that is too large for such a run.
func (f *Found) Smaller() string {
	const outside = "keep large values outside and references in the state"
	if f != nil && f.Storage {
		return outside
	}
	return "give workers and clients a storage (--storage), or " + outside
}

// GraphResult is the result of a finished run, and as Closing the detail of a failed or cancelled one.
type GraphResult struct {
	Graph  string                  `json:"graph"`
	Output map[string]pregel.Value `json:"output,omitempty"`
	// Stored says that this is a leader's part of the result: the rest is in the run's last [ExpertRecord]s. Message is what
	// the expert says; nil when the run failed or was cancelled.
	Stored  bool                 `json:"stored,omitempty"`
	Message *job.WorkflowMessage `json:"message,omitempty"`
	Closing

	// ForParent says that a workflow of somebody's own reads the result, whose worker may have no storage.
	ForParent bool `json:"-"`
}

// maxForParent bounds a result that goes to such a parent as it is: with its state it has to fit the parent's history.
const maxForParent = 1700 << 10

// Passing implements storage.Passing: what the parent can read only where its message has it stays there. A longer result is stored.
func (r GraphResult) Passing() bool {
	if !r.ForParent {
		return false
	}
	text, err := json.Marshal(r)
	return err == nil && len(text) <= maxForParent
}

// Closing is what a run leaves to the next run of its thread. One event holds it: the run's last.
type Closing struct {
	Step int          `json:"step"`
	Spec *pregel.Spec `json:"spec"`
	// State is the thread\'s state as pregel.Program.EncodeThread wrote it; nil when it does not fit (1,600 KiB without a storage), and
	// then Error says so.
	State pregel.Value `json:"state,omitempty"`
	Error string       `json:"error,omitempty"`
	// Dropped says that State is the newest checkpoint without what the superstep under way had finished: that does not fit.
	Dropped bool `json:"dropped,omitempty"`
	// Failure is why the run failed, nil when it did not.
	Failure *pregel.NodeError `json:"failure,omitempty"`
	// Budget is what the thread has spent of its budget, nil without one.
	Budget *pregel.Meter `json:"budget,omitempty"`
	// Life is what the thread knows of people and of time. The events that it keeps count with the State.
	Life  life.State `json:"life,omitzero"`
	Lines Lines      `json:"lines,omitempty"`
	// Cancel is how the run was cancelled, nil when it was not, or plainly.
	Cancel *Cancellation `json:"cancel,omitempty"`
	// Settings are those that the run had: a retry goes on with them.
	Settings *Settings `json:"settings,omitempty"`
	// Behind is how long before its end a run of the thread ended badly: the next run's GraphInput.Behind.
	Behind int64 `json:"behind_ms,omitempty"`
	// Suspect says which tasks that come next a segment may have run that was lost: the next run's GraphInput.Suspects.
	Suspect segment.Suspicion `json:"suspect,omitzero"`
	// Trace is the run's span, "" where nobody traces it: the next run's GraphInput.TraceBefore.
	Trace string `json:"trace,omitempty"`
}

// Settings shape a run: see the fields of the same names in GraphInput.
type Settings struct {
	Options        pregel.Options          `json:"options,omitzero"`
	Durability     graphadapter.Durability `json:"durability,omitempty"`
	Fused          bool                    `json:"fused,omitempty"`
	MaxConcurrency int                     `json:"max_concurrency,omitempty"`
	StepTimeout    int64                   `json:"step_timeout_ms,omitempty"`
	Context        pregel.Value            `json:"context,omitempty"`
	Requester      string                  `json:"requester,omitempty"`
	// KeepOpen of 0 keeps a run open that is.
	KeepOpen int64 `json:"keep_open_ms,omitempty"`
	Hold     bool  `json:"hold,omitempty"`
	// Notices makes a run tell people outside of its questions that began while its worker had no notifier.
	Notices bool `json:"notices,omitempty"`
}

func (in *GraphInput) Settings() *Settings {
	return &Settings{Options: in.Options, Durability: in.Durability, Fused: in.Fused, Context: in.Context, Requester: in.Requester,
		MaxConcurrency: in.MaxConcurrency, StepTimeout: in.StepTimeout, KeepOpen: in.KeepOpen, Hold: in.Hold}
}

// ContextOf is the context of a run that continues one with the context before: what goes on where the thread stands, without an input of
// its own, and brings none, leaves that one. nil is none.
func ContextOf(given, before, input pregel.Value) pregel.Value {
	if given == nil && input == nil {
		return before
	}
	return given
}

// Set makes the settings those of the run.
func (in *GraphInput) Set(s Settings) {
	in.Options, in.Durability, in.Fused, in.Context = s.Options, s.Durability, s.Fused, s.Context
	in.Requester = s.Requester
	in.MaxConcurrency, in.StepTimeout, in.Hold = s.MaxConcurrency, s.StepTimeout, s.Hold
	in.KeepOpen = cmp.Or(s.KeepOpen, in.KeepOpen)
	if s.Notices && in.Found != nil {
		found := *in.Found
		found.Notices = true
		in.Found = &found
	}
}

// Carried is what a run hands to the run that continues it as a new one, beside its thread's state: what it was doing, and
// what it had been told. It is part of a [GraphInput]. To whoever looks at the thread both are one run.
type Carried struct {
	// Since is when the first of the runs began.
	Since time.Time `json:"since,omitzero"`
	// UnderWay says that the state is the engine's run under way, with its thread. Else it is the thread alone. The state is the run's
	// second argument, the bytes of a pregel.Suspended: as JSON within the first its long values would be read four times, and written
	// twice.
	UnderWay bool `json:"under_way,omitempty"`
	// Status and Drained are as in State.
	Status  string `json:"status"`
	Drained string `json:"drained,omitempty"`
	// Invoked says that an invocation is under way. It began at the checkpoint Base, in the run Began.
	Invoked bool   `json:"invoked,omitempty"`
	Base    string `json:"base,omitempty"`
	Began   string `json:"began,omitempty"`
	// SuspectStep is the superstep whose tasks may have acted in an earlier run, -1 for none.
	SuspectStep int `json:"suspect_step"`
	// Suspect says which tasks a segment that was lost may have run; Apart, that those which wait are not for a segment.
	Suspect segment.Suspicion `json:"suspect,omitzero"`
	Apart   bool              `json:"apart,omitempty"`
	// StepEnds is when the superstep under way is out of time; zero when it is not timed.
	StepEnds time.Time `json:"step_ends,omitzero"`
	// IdleEnds is when a run that is kept open ends for want of input; zero while it has something to do.
	IdleEnds time.Time `json:"idle_ends,omitzero"`
	// Invoke was taken and not used yet, because the run is paused; Signals were not even looked at.
	Invoke  *InvokeRequest  `json:"invoke,omitempty"`
	Signals []ResumeRequest `json:"signals,omitempty"`
	// Failure is why the run failed that is held open; nil for one that is not.
	Failure *pregel.NodeError `json:"failure,omitempty"`
	// Traced is what is under way of which spans are told once it has ended; nil where nobody traces the run.
	Traced []UnderWay `json:"traced,omitempty"`
}

// UnderWay is what of a run is told of when it has ended: with a Question that one, with a Task that, else a superstep.
type UnderWay struct {
	Namespace string    `json:"ns,omitempty"`
	Branch    string    `json:"branch,omitempty"`
	Step      int       `json:"step,omitempty"`
	Task      string    `json:"task,omitempty"` // its pregel.Task.Key
	Node      string    `json:"node,omitempty"`
	Question  string    `json:"question,omitempty"`
	About     string    `json:"about,omitempty"`
	Began     time.Time `json:"began"`
	// Failed is the type of the error of what has failed and may be retried, and Ended when it did.
	Failed string    `json:"failed,omitempty"`
	Ended  time.Time `json:"ended,omitzero"`
}

// ContinueAt are the bounds at which a run is continued as a new one, each 0 for the default.
type ContinueAt struct {
	// Events and Bytes are of the run's history: 4,096 events, 4 MiB.
	Events int `json:"events,omitempty"`
	Bytes  int `json:"bytes,omitempty"`
	// Updates are those that a run has taken when it rests: 250. The server writes each of a run's updates down again with every
	// change of the run, so that a turn behind 500 others takes a seventh longer than the first.
	Updates int `json:"updates,omitempty"`
	// MostUpdates are those that it has taken when it is continued wherever it is: 1,500. The server refuses the 2,001st.
	MostUpdates int `json:"most_updates,omitempty"`
	// HoldEvents: a run that is not quiet by then starts no more tasks until it is: 8,000 events. With the length of a history
	// grows what the server does for each of its events, so that a superstep of 10,000 tasks takes four fifths of the time it took with 20,000.
	HoldEvents int `json:"hold_events,omitempty"`
	// Life is the least time that a run lives before, in milliseconds: 1,000. The server delays the next run by what is
	// missing to a second.
	Life int64 `json:"life_ms,omitempty"`
}

// WorkflowTaskTimeout is how long a lost worker keeps a workflow task, and with it what begins within one: as long as it keeps an
// activity. The server's default of 10 s would be most of the time that a recovery takes. A task that takes longer, as the replay of
// a large state on a slow machine may, ends all the same: behind the third attempt Temporal's server adds 5 s to this time, then
// 10 s, and so on (of 1.32: getStartToCloseTimeout of its workflow task state machine).
const WorkflowTaskTimeout = 2 * time.Second

// When a run is continued as a new one unless it is told otherwise. The server suggests it, and would end the run at 51,200
// events; it delays the next run when one lived for less than a second.
const (
	continueEvents = 4096
	continueBytes  = 4 << 20
	// continueUpdates balances what each update adds to every later one, a third of a thousandth, with a continuation, which takes as long as a
	// turn and copies the state.
	continueUpdates = 250
	// mostUpdates leaves a quarter of what the server takes to those who come while the run is not quiet.
	mostUpdates = 1500
	holdEvents  = 8_000
	minRunLife  = time.Second
	// leastEvents are more than a run begins with: one that has done nothing yet is not continued, again and again, for what it was handed.
	leastEvents = 8
)

// Filled are the bounds with a default for each that is not said.
func (c *ContinueAt) Filled() ContinueAt {
	at := ContinueAt{}
	if c != nil {
		at = *c
	}
	at.Events = max(cmp.Or(at.Events, continueEvents), leastEvents)
	at.Bytes = cmp.Or(at.Bytes, continueBytes)
	at.Updates = cmp.Or(at.Updates, continueUpdates)
	at.MostUpdates = max(cmp.Or(at.MostUpdates, mostUpdates), at.Updates)
	at.Life = cmp.Or(at.Life, minRunLife.Milliseconds())
	at.HoldEvents = cmp.Or(at.HoldEvents, holdEvents)
	return at
}

// Long reports whether a history is so long that its run is to be continued as a new one; suggested says that the server thinks so.
func (c *ContinueAt) Long(events, bytes int, suggested bool) bool {
	at := c.Filled()
	return events >= leastEvents && (suggested || events >= at.Events || bytes >= at.Bytes)
}
