package thread

import (
	"encoding/json"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
)

// StartRequest asks for a new run of a thread, or lets one that stands still go on. At most one of Input, Resume and
// Control with Resume is given; with none the thread goes on where it stands.
type StartRequest struct {
	Graph string
	// Thread is the thread's id, see [CheckID]; "" makes one (see [NewID]), of a thread that must be new.
	Thread string
	// ID names the request in the server's records, for callers who may never learn what became of it: it is in the memo of the
	// run that it begins, as "start", or the id of the update that an open run takes, which takes it once. "" makes one. At most 200 bytes.
	ID string `json:",omitempty"`
	// NewThread refuses, with ErrBadInput, to go on with a thread that is there.
	NewThread bool `json:",omitempty"`
	// Input is a JSON object of the graph's input channels. It abandons open questions.
	Input json.RawMessage
	// Resume answers open questions, and Control writes and routes from outside without abandoning anything (LangGraph's
	// Command as input).
	Resume  *pregel.Resume
	Control *pregel.Command
	// Checkpoint names the checkpoint of the thread's history to run from; "" means the newest. What came after it runs
	// again, on a branch of its own, and stays in the history.
	Checkpoint string
	// Durability is "sync", "async" or "exit"; "" means the graph's own, which is sync unless it says otherwise.
	Durability graphadapter.Durability
	// Fused runs consecutive supersteps in one activity in sync mode too; async and exit mode do so anyway.
	Fused bool
	// RecursionLimit bounds the supersteps of the run; 0 means the default of 10,007 (LangGraph's).
	RecursionLimit int
	// Budget is what the thread may spend from now on, its turns included; nil leaves the budget that it has. See
	// superstep.WithBudget.
	Budget *Budget
	// InterruptBefore and InterruptAfter replace the graph's breakpoints when not nil.
	InterruptBefore, InterruptAfter []string
	// MaxConcurrency bounds the tasks that run at once; 0 means no bound but the runtime's own.
	MaxConcurrency int
	// StepTimeout bounds a superstep's wall clock; 0 means no bound.
	StepTimeout time.Duration
	// KeepOpen keeps the run open when nothing is left to do, for the thread's next input, until it is cancelled or was idle for
	// IdleTimeout; 0 is for ever. Without KeepOpen an IdleTimeout below 0 ends the run in any case. See superstep.WithKeepOpen.
	KeepOpen    bool
	IdleTimeout time.Duration
	// Hold keeps the run open when it fails. See superstep.WithHold.
	Hold bool
	// Context is a value that every node and branch of the run can read; nil for none.
	Context json.RawMessage
	// Trace is the span in which the run is asked for, a W3C traceparent and behind a space its tracestate, if it has one; "" for the
	// span of the call's ctx. What is none is ignored.
	Trace string
	// Requester is on whose behalf the run is, at most 200 bytes; see superstep.WithRequester.
	Requester string
	// By names who asks for it, at most 200 bytes, Reason says why, at most 1,000, and Token proves it where rules want
	// that. They are in the audit when the run is a retry or a fork, or is given answers or a command.
	By, Reason, Token string
}

// StateRequest asks for a thread's state.
type StateRequest struct {
	Thread string
	// Checkpoint names a checkpoint of the history; "" means now.
	Checkpoint string
	// Subgraph are the nodes that lead to a subgraph that is under way, outermost first; empty means the root graph.
	Subgraph []string
	// Subgraphs asks for the states of subgraphs under way in TaskView.State.
	Subgraphs bool
}

// HistoryRequest asks for a thread's checkpoints.
type HistoryRequest struct {
	Thread string
	// Subgraph are the nodes that lead to a subgraph that is under way; empty means the root graph.
	Subgraph []string
	// Checkpoint is that of the root graph at which the subgraph was under way, for one that has ended; "" means now.
	Checkpoint string
	// Limit is the most checkpoints to return, newest first; 0 means all that are known.
	Limit int
	// Before leaves out that checkpoint and everything newer.
	Before string
	// Source and Step select; "" and nil mean any.
	Source string
	Step   *int
	// Values asks for CheckpointView.Values.
	Values bool
}

// UpdateRequest asks for an update of a thread's state from outside.
type UpdateRequest struct {
	Graph, Thread string
	// Checkpoint names the checkpoint to update, as a branch; "" means the newest.
	Checkpoint string
	// Subgraph are the nodes that lead to a subgraph that is under way; empty means the root graph.
	Subgraph []string
	// Updates make one checkpoint each; those of one list share it.
	Updates [][]graphadapter.StateUpdate
	// Values and AsNode are one update, for callers without Updates: a JSON object of channels, in which a channel with a
	// reducer takes {"__overwrite__": v} to be set to v, and the node in whose name it is made, "" to infer it. No values
	// only route on.
	Values json.RawMessage
	AsNode string
	// ID makes the request idempotent, for callers who never learnt what became of it: the thread's last run takes the
	// same ID once. "" makes one. At most 200 bytes.
	ID string
	// By names who asks for it, at most 200 bytes, Reason says why, at most 1,000, and Token proves it where rules want that.
	By, Reason, Token string
}

// ForkRequest asks for a run from an earlier checkpoint of a thread.
type ForkRequest struct {
	Thread string
	// Checkpoint is where it runs from. What came after it runs again, on a branch of its own.
	Checkpoint string
	// As is the id of a new thread to run it on: that one begins with the checkpoint, and Thread stays as it is. "" means
	// Thread itself, whose history keeps both branches. The history of a new thread begins with that of Thread, as far as the
	// server has that one.
	As string
	// Copy makes the new thread stand where Thread stood at the checkpoint: its questions are open under the same ids, but for approvals,
	// which are asked for anew, and nothing runs until somebody goes on with it. A task that has asked runs again from its beginning then, as
	// in any thread: what it did outside before it asked is done again, by a thread of its own. Checkpoint may be "", the newest. It needs As.
	Copy bool
	// By names who asks for it, at most 200 bytes, Reason says why, at most 1,000, and Token proves it where rules want that.
	By, Reason, Token string
}

// RetryRequest asks to continue a thread after a failure.
type RetryRequest struct {
	Thread string
	// By names who asks for it, at most 200 bytes, Reason says why, at most 1,000, and Token proves it where rules want that.
	By, Reason, Token string
}

// DrainRequest asks a thread's run to stop before its next superstep.
type DrainRequest struct {
	Thread string
	// By names who asks for it, at most 200 bytes, Reason says why, at most 1,000, and Token proves it where rules want that.
	By, Reason, Token string
}

// EffectsRequest asks for what a thread did outside.
type EffectsRequest struct{ Thread string }

// The bounds of what one request gives a run, in bytes: with the thread's state it has to fit one event of 2 MiB.
const (
	MostInput  = 1 << 20
	MostAnswer = 256 << 10
)

// CancelMode says what a cancelled run leaves behind.
type CancelMode = life.CancelMode

const (
	// CancelKeep keeps what the superstep under way has finished, and accepted answers: a retry goes on from there. It is
	// the default.
	CancelKeep = life.CancelKeep
	// CancelDrop forgets the superstep under way, and open questions with it: a retry runs it anew. Effects that were made
	// stay, and a retry does not make them again.
	CancelDrop = life.CancelDrop
	// CancelRollback takes back the invocation under way, the one that the newest input or answer began: its effects are undone, the
	// newest receipt first, and the thread stands where it stood before, with the questions open that were open then. Effects of
	// earlier invocations stay. Nobody is asked: where an effect cannot be undone View.Cancel lists it, and the thread is left as
	// with CancelDrop.
	CancelRollback = life.CancelRollback
	// CancelCompensate forgets the superstep under way too, and undoes the effects of the thread since it last finished,
	// the newest receipt first, by their Compensate. For those that no program can undo the run waits for a person: each is
	// a question, answered "done" (it is undone), "repeat" (try again) or "leave". A second cancellation with CancelKeep
	// ends the waiting; what was not undone is listed in View.Cancel. The thread then stands before the oldest superstep
	// of which an effect was undone. A retry goes on from there: it makes undone effects anew, under other keys, and finds
	// those that were left.
	CancelCompensate = life.CancelCompensate
)

// CancelRequest asks to end a thread's run.
type CancelRequest struct {
	Thread string
	// Mode is "" for CancelKeep. Of several that are asked for before the run begins to end, the strongest counts:
	// compensate, then rollback, drop and keep.
	Mode CancelMode
	// Reason says why, at most 1,000 bytes, and By who asks, at most 200; both are kept with the run.
	Reason, By string
	// ID makes the request idempotent: the run takes the same ID once. "" makes one.
	ID string
	// Token proves who asks, where rules want that.
	Token string
}

// PauseRequest asks to pause a thread's run, or to let it go on.
type PauseRequest struct {
	Thread string
	// By names who asks, at most 200 bytes; Reason says why, at most 1,000.
	By, Reason string
	// ID makes the request idempotent: the run takes the same ID once, in whichever order requests arrive. "" makes one.
	ID string
	// Token proves who asks, where rules want that.
	Token string
}

// PauseReply says how a thread stands after a pause was asked for or taken back.
type PauseReply struct {
	Thread string `json:"thread"`
	Status Status `json:"status"`
	// Paused is nil when the run is not paused. A run that was paused before keeps who did it first.
	Paused *PauseView `json:"paused,omitempty"`
	// Changed says that this request changed something.
	Changed bool `json:"changed"`
	// Stored says that no worker took the request yet: it is stored, and counts as soon as one runs.
	Stored bool `json:"stored,omitempty"`
}

// EventRequest sends an event to a thread.
type EventRequest struct {
	Thread string
	// Name has 1 to 256 bytes; Value is JSON of at most 256 KiB, nil means null.
	Name  string
	Value json.RawMessage
	// By names who sends it, at most 200 bytes.
	By string
	// ID makes the request idempotent: the thread takes the same ID once. "" makes one. At most 200 bytes.
	ID string
	// Token proves who sends it, where rules want that.
	Token string
}

// EventReply says what became of an event.
type EventReply struct {
	Thread string `json:"thread"`
	Event  string `json:"event"`
	// Nodes are those that waited for it, one for each wait. Without any the event is kept for the first wait to come.
	Nodes []string `json:"nodes,omitempty"`
	// Repeated says that this very request had been taken before.
	Repeated bool `json:"repeated,omitempty"`
	// Stored says that no worker took the event yet: it is stored, and counts as soon as one runs.
	Stored bool `json:"stored,omitempty"`
	// Paused says that nothing goes on with the event before somebody unpauses the run.
	Paused bool `json:"paused,omitempty"`
}

// ScheduleRequest asks for runs of a graph by the calendar. Each run is a new thread, in lists and in the inbox as all others.
type ScheduleRequest struct {
	// ID names the schedule, as ids of threads are. There is none of that id yet.
	ID string
	// Run is what each run is asked for with: Graph, Input ({} without any), and the settings of a run. Its Thread begins the ids of the
	// threads, which have the schedule's ID and the time behind it, so that no two schedules begin the same thread; "" is the ID alone.
	// What is before the time may have 170 bytes.
	Run StartRequest
	// Cron has five fields: minute, hour, day of the month, month and day of the week. Every is a time between runs, of a second or more.
	// One of them is given, or both.
	Cron  string
	Every time.Duration
	// TimeZone is the IANA name of the zone in which Cron is read, "" for UTC.
	TimeZone string
	// Until is when it ends, zero for never.
	Until time.Time
	// Overlap says what becomes of a run that comes due while the one before is open, waiting for people included; "" is OverlapSkip.
	Overlap Overlap
	// CatchUp is how late a run is still begun after the server was away; 0 is ten minutes. At least ten seconds.
	CatchUp time.Duration
	// Paused makes a schedule that waits to be unpaused.
	Paused bool
	// By names who asks, at most 200 bytes.
	By string
}

// Overlap says what becomes of a run that comes due while the one before is open.
type Overlap string

// What becomes of such a run.
const (
	// OverlapSkip leaves it out.
	OverlapSkip Overlap = "skip"
	// OverlapWait begins it when the one before has ended; at most one waits.
	OverlapWait Overlap = "wait"
	// OverlapAllow begins it beside the one before.
	OverlapAllow Overlap = "allow"
)

// Overlaps are all of them.
var Overlaps = []Overlap{OverlapSkip, OverlapWait, OverlapAllow}

// SchedulePause pauses a schedule, or lets it go on. By is who says so, at most 200 bytes, and Reason why, at most 1,000.
type SchedulePause struct{ ID, By, Reason string }
