package protocol

import (
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
)

// Bounds on what anyone can send to a run, in bytes unless said otherwise. Each junk signal costs four events, and the
// validator is the shield of updates, so all are checked before anything else. The server refuses a message of 2 MiB.
const (
	// MaxAnswerBytes bounds the answers of one request together, and the value of an event.
	MaxAnswerBytes = 256 << 10
	// MaxNameBytes bounds ids, and names of people, questions and events.
	MaxNameBytes = 256
	// MaxReasonBytes bounds why somebody asks for something.
	MaxReasonBytes = 1 << 10
	// MaxTokenBytes bounds a token.
	MaxTokenBytes = 8 << 10
	// MaxAnswers bounds the answers of one request, and those that a run remembers. It is a number of answers.
	MaxAnswers = 1000
	// MaxUpdates bounds the updates of one request, and its checkpoints. It is a number of updates.
	MaxUpdates = 1000
	// MaxUpdateBytes bounds input and updates; the state that they start from may fill the rest of the message.
	MaxUpdateBytes = 1 << 20
	// MaxStateBytes bounds the state of a thread between two of its runs, where that stands in the history: see [Found.MaxState].
	MaxStateBytes = 1600 << 10
	// MaxPayloadBytes bounds what a run hands on, where that stands in the history (see [Found.MaxPayload]), and what an expert
	// hands back: the server takes 2 MiB in one payload.
	MaxPayloadBytes = 1900 << 10
	// MaxStoredBytes bounds both where values go by reference. The rest of what a storage takes in one value is for what a codec adds.
	MaxStoredBytes = 192 << 20
	// MaxQueuedUpdates bounds the updates that wait for their turn: the server lets ten be under way. It is a number of updates.
	MaxQueuedUpdates = 10
	// MaxDepth bounds the path to a subgraph. It is a number of names.
	MaxDepth = 32
)

// CarriedLines bounds the checkpoints of earlier runs that a run is told of: when it has as many, there may be more.
const CarriedLines = 200

// InvokeRequest is the argument of UpdateInvoke.
type InvokeRequest struct {
	// ID makes the request idempotent.
	ID string `json:"id"`
	// Graph is the graph that the request is for: the run of another one refuses it. "" is for any.
	Graph string `json:"graph,omitempty"`
	Input
	// Begun leaves out the input: it is that of a run which has begun with the request of this ID, as its GraphInput says. Another run
	// refuses it with ErrTypeInputWanted.
	Begun bool `json:"begun,omitempty"`
	// State replaces the thread's state by an earlier one of its own, to run again from there; nil goes on from the newest.
	State pregel.Value `json:"state,omitempty"`
	// Settings are those of the run from now on; nil keeps what it has.
	Settings *Settings `json:"settings,omitempty"`
	// Asked is who asks for it, and why.
	Asked Asked `json:"asked,omitzero"`
	// Trace is as in GraphInput.
	Trace string `json:"trace,omitempty"`
	RestRequest
}

// RestRequest is the argument of UpdateRest, which needs none, and says of others when they return.
type RestRequest struct {
	// Rest makes the update return when the run rests or ends, as UpdateRest does; else it returns when the request is taken.
	Rest bool `json:"rest,omitempty"`
	// Has are long values that the caller has of the thread's output, by their channels: the reply tells what is new in them.
	Has map[string]pregel.Had `json:"has,omitempty"`
}

// GivenBy are the values of an input, which is JSON, by their channels; of one that is no object there are none.
func GivenBy(input pregel.Value) map[string]pregel.Value {
	if len(input) == 0 || input[0] != '{' {
		return nil
	}
	given := map[string]pregel.Value{}
	pregel.EachMember(input, func(name string, v pregel.Value) { given[name] = v })
	return given
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
	// Asked is who asks for it, and why.
	Asked Asked `json:"asked,omitzero"`
}

// UpdateStateReply is the outcome of an update.
type UpdateStateReply struct {
	// Checkpoint is the newest checkpoint now.
	Checkpoint string `json:"checkpoint"`
	// Next are the nodes that it leads to.
	Next []string `json:"next"`
}

// Asked is who asked for a run to begin, and why: it is for the audit.
type Asked struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// From is the thread whose checkpoint the run begins with, "" for its own.
	From string `json:"from,omitempty"`
	// Token proves who asks, where rules want that.
	Token string `json:"token,omitempty"`
	// Proven is what a gate said of the token. The run sets it, whatever is sent.
	Proven *approval.Ruling `json:"proven,omitempty"`
}

// Actor is who asked, for the audit.
func (a Asked) Actor() life.Actor {
	actor := life.Actor{Claimed: a.By}
	if a.Proven != nil {
		actor.Ruling = *a.Proven
	}
	return actor
}

// ProvenBy is who asked once a gate has said so; the token is not kept.
func (a Asked) ProvenBy(actor life.Actor) Asked {
	a.Token, a.Proven = "", nil
	if actor.Ruling.By != "" {
		a.Proven = &actor.Ruling
	}
	return a
}

// RetryRequest is the argument of UpdateRetry.
type RetryRequest = life.Retry

// RestReply says how a run stands that has come to rest, or has ended.
type RestReply struct {
	// Status is one of the Status constants, and never StatusRunning. It is "" with Moved, and in the reply to an InvokeRequest
	// without Rest.
	Status string `json:"status,omitempty"`
	// Ends says that the run is over: the reply is stored together with its last event.
	Ends bool `json:"ends,omitempty"`
	// Moved says that the run is about to be continued as a new one: ask that one.
	Moved bool `json:"moved,omitempty"`
	// Stands is where the run stands; nil with Moved.
	Stands *Standing `json:"stands,omitempty"`
}

// Standing is where a run stands that rests or has ended.
type Standing struct {
	Graph string `json:"graph"`
	// Began is when the run began, or the first of those that it continues as new ones, and At when it came to say this.
	Began time.Time `json:"began"`
	At    time.Time `json:"at"`
	// Events and Bytes are the size of its history before this reply.
	Events int `json:"events"`
	Bytes  int `json:"bytes"`
	// State is what QueryState returns, of the values those of the output alone; nil when these and the questions have more than
	// 16 KiB together: whoever needs them asks for them. The reply is stored with the run, and a query's is not.
	State *State `json:"state,omitempty"`
	// Grown are the values of the output that the caller has most of, and that are not in State therefore.
	Grown map[string]pregel.Grown `json:"grown,omitempty"`
}

// DrainRequest is the argument of UpdateDrain.
type DrainRequest = life.Drain

// PauseRequest is the argument of UpdatePause and SignalPause: it pauses a run, or with Unpause lets it go on.
type PauseRequest = life.Pause

// PauseReply says how the run stands after the request.
type PauseReply = life.PauseReply

// Pause says who paused a run, when and why.
type Pause = life.Paused

// EventRequest is the argument of UpdateEvent and SignalEvent: an event for every task of the thread that waits for it.
type EventRequest = life.Event

// EventReply says what became of an event.
type EventReply = life.EventReply

// ResumeRequest answers a question, as the argument of the update or the signal.
type ResumeRequest = life.Answer

// ResumeUpdate is the argument of UpdateResume. With Rest it returns when the run rests or ends with the answer.
type ResumeUpdate struct {
	ResumeRequest
	RestRequest
}

// ResumeReply is the outcome of an accepted answer.
type ResumeReply struct {
	life.AnswerReply
	// Rest says how the run stands that has come to rest with the answer, for a request that asks for that. It is nil where as many
	// others wait as the run lets wait: ask with UpdateRest, or follow the history.
	Rest *RestReply `json:"rest,omitempty"`
}

// AnswerRefusal says why a reply to an approval does not count.
type AnswerRefusal = life.Ruling

// ViewRequest is the argument of SignalViewed. Nobody checks who By is.
type ViewRequest = life.View

// AuditReply is the answer to QueryAudit: the newest entries of this run, oldest first, and the end of the thread's chain.
type AuditReply struct {
	Entries []approval.Entry `json:"entries"`
	Chain   approval.Chain   `json:"chain"`
	// Signed is the end of the chain as an approval.Head that the worker signed, "" when it has no key for that. Problem says
	// why it could not be signed.
	Signed  string `json:"signed,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// PendingApproval is an action that waits for approval.
type PendingApproval = life.Pending

// CancelMode says what a cancelled run leaves behind.
type CancelMode = life.CancelMode

// The modes, the strongest last: see package life.
const (
	CancelKeep       = life.CancelKeep
	CancelDrop       = life.CancelDrop
	CancelRollback   = life.CancelRollback
	CancelCompensate = life.CancelCompensate
)

// CancelRequest is the argument of SignalCancel.
type CancelRequest = life.Cancel

// CancelReply is the outcome of UpdateCancel.
type CancelReply = life.CancelReply

// CancelBehind cancels a thread whose last run has ended.
type CancelBehind struct {
	CancelRequest
	// Suspect says that the last run ended without a word: it may have begun to undo effects.
	Suspect bool `json:"suspect,omitempty"`
}

// Cancellation is how a run was cancelled, and what became of its effects.
type Cancellation = life.CancelReport

// LeftEffect is an effect that a cancellation did not undo.
type LeftEffect = life.LeftEffect

// AdmitRequest asks a desk about a graph.
type AdmitRequest struct {
	Graph string       `json:"graph"`
	Input pregel.Value `json:"input,omitempty"`
	// Edits are updates of the state of the graph at the path Within, as in GraphInput.
	Edits  [][]graphadapter.StateUpdate `json:"edits,omitempty"`
	Within []string                     `json:"within,omitempty"`
	// WithSpec asks for the graph's Spec.
	WithSpec bool `json:"with_spec,omitempty"`
	// WithSchemas asks what the graph's values look like.
	WithSchemas bool `json:"with_schemas,omitempty"`
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
	// Schemas are those of the graph and of its subgraphs, nil of a worker that knows none.
	Schemas *graphadapter.Schemas `json:"schemas,omitempty"`
	// Governs says that what is done to runs is under rules, and Ruling what they say of the Control that was asked about.
	Governs bool             `json:"governs,omitempty"`
	Ruling  *approval.Ruling `json:"ruling,omitempty"`
	// Notices says that the worker tells people outside of questions.
	Notices bool `json:"notices,omitempty"`
	// Leaders are the leaders of the worker that answered, and Experts those of the leader that was asked about.
	Leaders []string      `json:"leaders,omitempty"`
	Experts []job.Profile `json:"experts,omitempty"`
}
