package superstep

import (
	"encoding/json"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// StartRequest asks for a new run of a thread, or lets one that stands still go on. At most one of Input, Resume and
// Control with Resume is given; with none the thread goes on where it stands.
type StartRequest struct {
	Graph string
	// Thread is the thread's id, see [CheckThreadID]; "" makes one (see [NewThreadID]), of a thread that must be new.
	Thread string
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
	// branch makes the run from Checkpoint begin with a checkpoint of its own in any case.
	branch bool
	// notices makes the run tell people outside of its questions.
	notices bool
	// governed says that what is done to runs is under rules.
	governed bool
	// served is the fingerprint of the graph as a worker served it when it was asked about the request.
	served string
	// Durability is "sync", "async" or "exit"; "" means the graph's own, which is sync unless it says otherwise.
	Durability Durability
	// Fused runs consecutive supersteps in one activity in sync mode too; async and exit mode do so anyway.
	Fused bool
	// RecursionLimit bounds the supersteps of the run; 0 means the default of 10,007 (LangGraph's).
	RecursionLimit int
	// InterruptBefore and InterruptAfter replace the graph's breakpoints when not nil.
	InterruptBefore, InterruptAfter []string
	// MaxConcurrency bounds the tasks that run at once; 0 means no bound but the runtime's own.
	MaxConcurrency int
	// StepTimeout bounds a superstep's wall clock; 0 means no bound.
	StepTimeout time.Duration
	// KeepOpen keeps the run open when nothing is left to do, for the thread's next input, until it is cancelled or was idle for
	// IdleTimeout; 0 is for ever. See [WithKeepOpen].
	KeepOpen    bool
	IdleTimeout time.Duration
	// Hold keeps the run open when it fails. See [WithHold].
	Hold bool
	// Context is a value that every node and branch of the run can read; nil for none.
	Context json.RawMessage
	// Requester is on whose behalf the run is, at most 200 bytes; see [WithRequester].
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
	// Thread itself, whose history keeps both branches.
	As string
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

// StreamMode says what of a run is streamed: LangGraph's modes.
type StreamMode string

// The stream modes.
const (
	// StreamValues: the output fields, after each superstep that wrote one.
	StreamValues StreamMode = "values"
	// StreamUpdates: what each node wrote, when it ended; and the questions of those that ask.
	StreamUpdates StreamMode = "updates"
	// StreamMessages: chat messages, and pieces of them, as nodes emit or write them.
	StreamMessages StreamMode = "messages"
	// StreamCustom: what nodes emit.
	StreamCustom StreamMode = "custom"
	// StreamTasks: the start and the end of each task.
	StreamTasks StreamMode = "tasks"
	// StreamCheckpoints: each checkpoint as it is made.
	StreamCheckpoints StreamMode = "checkpoints"
	// StreamDebug: checkpoints and tasks, with superstep and time.
	StreamDebug StreamMode = "debug"
	// StreamReset is no mode to ask for: it comes with messages and custom, and says that a task is attempted again, so
	// that what its earlier attempt emitted is void.
	StreamReset StreamMode = "reset"
)

// StreamRequest asks for what a thread's runs stream.
type StreamRequest struct {
	Thread string
	// Modes are those wanted; none means updates.
	Modes []StreamMode
	// Subgraphs asks for the streams of subgraphs too.
	Subgraphs bool
	// From is an Offset of an earlier part, to go on behind it in any process; "" begins with the newest run.
	From string
}

// StreamPart is one part of a stream.
type StreamPart struct {
	// Offset is the place behind this part.
	Offset string `json:"offset"`
	// Namespace leads to the graph: one element for each subgraph, outermost first; empty for the root graph.
	Namespace []string        `json:"ns,omitempty"`
	Mode      StreamMode      `json:"mode"`
	Step      int             `json:"step"`
	Data      json.RawMessage `json:"data"`
}
