package superstep

import (
	"cmp"
	"encoding/json"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// Question is what a run asks a person or a program.
type Question struct {
	ID string `json:"id"`
	// Node asked it, at superstep Step.
	Node string `json:"node"`
	Step int    `json:"step"`
	// Value is what is asked, as the node gave it; Schema is the JSON schema of the answer, nil for any JSON.
	Value  json.RawMessage `json:"value"`
	Schema json.RawMessage `json:"schema,omitempty"`
	// Approval is the action that it asks to approve, nil for any other question. The answer is an [approval.Reply].
	Approval *ApprovalView `json:"approval,omitempty"`
}

// Text is the question as people read it: a string without its quotes, the text of an object that carries one (as text,
// question, message or ask), any other value as compact JSON.
func (q Question) Text() string { return graphadapter.QuestionText(pregel.Value(q.Value)) }

// ThreadView is what is known of a thread without its values.
type ThreadView struct {
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	Status Status `json:"status"`
	RunID  string `json:"run_id"`
	// Durability is the run's, or its graph's when the run named none; Fused says that its supersteps share activities in
	// sync mode too. Both are empty when nobody could say.
	Durability Durability `json:"durability,omitempty"`
	Fused      bool       `json:"fused,omitempty"`
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
	// Failure is why the run failed, nil when it did not or when nobody could say.
	Failure *pregel.NodeError `json:"failure,omitempty"`
	// Held says that the run is open although it failed ([WithHold]): a retry, new input or an update goes on with it.
	Held bool `json:"held,omitempty"`
	// Drained is why a run with StatusStopped was asked to stop; "" when it stands at a breakpoint.
	Drained string `json:"drained,omitempty"`
	// Paused says who paused the run, nil when nobody did. The run has StatusPaused once the tasks that were under way
	// have ended.
	Paused *PauseView `json:"paused,omitempty"`
	// Cancel is how the run was cancelled, also while it undoes its effects; nil for one that was not, or plainly.
	Cancel *CancelView `json:"cancel,omitempty"`
	// Problem is why a run makes no progress although nothing failed: no worker serves its graph, workers get lost.
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

// RefusedView is an answer, an event or a request by signal that a run did not take.
type RefusedView struct {
	// Question or Event is what it was for; neither, for a request to pause or cancel.
	Question string `json:"question,omitempty"`
	Event    string `json:"event,omitempty"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason"`
	// Code is why a gate refused an answer to an approval.
	Code approval.Code `json:"code,omitempty"`
	At   time.Time     `json:"at"`
}

func refusedViews(all []protocol.Refused) []RefusedView {
	var out []RefusedView
	for _, r := range all {
		out = append(out, RefusedView(r))
	}
	return out
}

// modeShown is a run's durability as views have it.
func modeShown(d graphadapter.Durability) Durability {
	return Durability(cmp.Or(d, graphadapter.DurabilitySync))
}

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
}

// TaskView is one task that a checkpoint leads to.
type TaskView struct {
	Node string `json:"node"`
	Path string `json:"path"`
	// Done says that it has finished, although its superstep has not.
	Done      bool              `json:"done,omitempty"`
	Questions []Question        `json:"questions,omitempty"`
	Error     *pregel.NodeError `json:"error,omitempty"`
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
	// CreatedAt is when it was made: by the server's clock, or in a [Memory] by this machine's. Checkpoints that one activity
	// made, fused or in async mode, have the time of its end. Zero when that is not known any more.
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Values are the channels that have a value there, when they were asked for.
	Values map[string]json.RawMessage `json:"values,omitempty"`
}

// The states of a [Progress].
const (
	ProgressStarted = "started"
	ProgressOK      = "ok"
	ProgressFailed  = "failed"
	ProgressWaiting = "waiting"
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
}

// ResumeRequest answers one question of a thread, or with Answers several.
type ResumeRequest struct {
	Thread string
	// Question is the question's id or an unambiguous start of it; "" while exactly one question is open.
	Question string
	Value    json.RawMessage
	// Answers answer several questions at once, all or none, by the questions' ids or unambiguous starts of them; Question and
	// Value are empty then. At most 256 KiB together.
	Answers map[string]json.RawMessage
	// By names who answers; "" for whoever the token names. An approval whose token names somebody else is refused.
	By string
	// Token proves who answers a question that asks for an approval; others need none. With Answers there are Tokens, by the
	// same keys.
	Token  string
	Tokens map[string]string
	// ID makes the request idempotent: the thread takes the same ID once, and says so of the next (ResumeReply.Repeated), also
	// when its run is over. "" makes one. At most 200 bytes.
	ID string
	// Signal sends the answer as a signal: durable even while no worker runs, but with no reply whether it was taken.
	Signal bool
}

// ResumeReply says what became of an answer.
type ResumeReply struct {
	Thread   string `json:"thread"`
	Question string `json:"question"`
	Node     string `json:"node"`
	// Questions are those that were answered, when the request had Answers.
	Questions []string `json:"questions,omitempty"`
	// Accepted is false, and Repeated true, when this very request had been taken before.
	Accepted bool `json:"accepted"`
	Repeated bool `json:"repeated,omitempty"`
	// By is whose approval, rejection or edit it counts as; "" for other answers.
	By string `json:"by,omitempty"`
	// Votes are the approvals of the question so far, of the Need that it takes; 0 for other answers.
	Votes int `json:"votes,omitempty"`
	Need  int `json:"need,omitempty"`
}
