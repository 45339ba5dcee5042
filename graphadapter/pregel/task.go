package pregel

import (
	"slices"
	"strconv"
)

// Write puts one value on a channel. Overwrite replaces a reduce channel's value instead of reducing; one Overwrite a
// superstep is allowed and beats every other write of that superstep, in whatever order they come.
type Write struct {
	Channel   string `json:"channel"`
	Value     Value  `json:"value"`
	Overwrite bool   `json:"overwrite,omitempty"`
}

// Target is where control goes next: a node by name (or [End]), or with Send a task of its own with Arg as its input.
type Target struct {
	Node string `json:"node"`
	Send bool   `json:"send,omitempty"`
	Arg  Value  `json:"arg,omitempty"`
	// Timeouts are the Send's own: its task has them instead of its node's.
	Timeouts
}

// Timeouts bound one attempt of a Send's task, in milliseconds: its whole duration, and the time without progress. When
// neither is above 0 the node's timeouts count, else 0 means no bound.
type Timeouts struct {
	RunTimeout  int64 `json:"run_timeout_ms,omitempty"`
	IdleTimeout int64 `json:"idle_timeout_ms,omitempty"`
}

// Bounds reports whether there is a bound.
func (t Timeouts) Bounds() bool { return t.RunTimeout > 0 || t.IdleTimeout > 0 }

// Command is what a node returns to write and to choose where to go. Goto adds to the node's edges, it never replaces
// them (LangGraph rule).
type Command struct {
	Update []Write  `json:"update,omitempty"`
	Goto   []Target `json:"goto,omitempty"`
	// Parent addresses the command to the parent graph: it ends this graph's run, and the parent takes it as if the
	// subgraph's node had returned it. It excludes Update and Goto.
	Parent *Command `json:"parent,omitempty"`
}

// ResultBytes is how many bytes of values a task's result has: what it writes and sends.
func ResultBytes(c *Command, routes []Target) int {
	bytes := 0
	for i := range c.Update {
		bytes += len(c.Update[i].Value)
	}
	for _, targets := range [][]Target{c.Goto, routes} {
		for i := range targets {
			bytes += len(targets[i].Arg)
		}
	}
	return bytes
}

// Question is an interrupt that waits for an answer.
type Question struct {
	// ID is unique in the thread: a short hash of thread, branch, namespace, superstep, task path and About.
	ID string `json:"id"`
	// Ordinal counts the questions of one task from 0, in the order they were asked.
	Ordinal int `json:"ordinal"`
	// Key replaces the ordinal when the node gave one.
	Key string `json:"key,omitempty"`
	// About names what is asked within the task: the question with its schema, or the event. Questions of one task that ask the same differ
	// in it by their key, or by their order.
	About string `json:"about,omitempty"`
	// Value is what is asked, as the node gave it.
	Value Value `json:"value"`
	// Schema is the JSON schema of the answer; nil accepts any JSON value.
	Schema Value `json:"schema,omitempty"`
	// Event says that this is no question for a person but a wait for the event of that name, for Timeout milliseconds;
	// 0 means without an end.
	// A question for a person with a Timeout has a deadline.
	Event   string `json:"event,omitempty"`
	Timeout int64  `json:"timeout_ms,omitempty"`
	// Events are those of which the wait takes the first; Event names all of them then, for people. Nil for a wait for one.
	Events []Awaited `json:"events,omitempty"`
	// Default answers a question for a person that nobody has answered at its deadline; nil tells the node that nobody has.
	Default Value `json:"default,omitempty"`
	// Approval is the action that the question asks to approve, an approval.Action as JSON; nil for any other question.
	// Its answer is an approval.Decision, made from the replies of people that a gate allowed.
	Approval Value `json:"approval,omitempty"`
}

// Awaited is one of several events that a wait takes the first of.
type Awaited struct {
	Name   string `json:"name"`
	Schema Value  `json:"schema,omitempty"`
}

// Awaits reports whether the question is a wait that takes the event of that name.
func (q Question) Awaits(event string) bool {
	if len(q.Events) == 0 {
		return q.Event != "" && q.Event == event
	}
	return slices.ContainsFunc(q.Events, func(a Awaited) bool { return a.Name == event })
}

// Each returns the waits for single events that the wait is made of, all of its ID: itself, unless it takes the first of several.
func (q Question) Each() []Question {
	if len(q.Events) == 0 {
		return []Question{q}
	}
	out := make([]Question, len(q.Events))
	for i, a := range q.Events {
		out[i] = q
		out[i].Event, out[i].Schema, out[i].Events = a.Name, a.Schema, nil
	}
	return out
}

// For is the wait for the event of that name alone; the question itself when it takes no such event.
func (q Question) For(event string) Question {
	for _, one := range q.Each() {
		if one.Event == event {
			return one
		}
	}
	return q
}

func (q Question) forPeople() bool { return q.Event == "" }

// Answer is the reply to a question.
type Answer struct {
	// QuestionID is "" for an answer that was given before its question is asked again; see [Answer.Early].
	QuestionID string `json:"question_id"`
	// About is that of the question.
	About string `json:"about,omitempty"`
	Value Value  `json:"value"`
	// By names who answered; "" when nobody is named.
	By string `json:"by,omitempty"`
	// Event is which of several events came, for a wait that takes the first of them.
	Event string `json:"event,omitempty"`
	// TimedOut says that nobody replied: the time of a question with a Timeout is over. Value is the question's Default then.
	TimedOut bool `json:"timed_out,omitempty"`
}

// NodeError says why a task failed for good. It is data: it survives the process that saw the failure.
type NodeError struct {
	// Type is the error's kind, for handlers and people: "NodeFailure", "Timeout", "Panic", or a type's own name.
	Type    string `json:"type"`
	Message string `json:"message"`
	// Graph and Node name where it happened; Node is empty when the superstep itself failed.
	Graph string `json:"graph,omitempty"`
	Node  string `json:"node,omitempty"`
	// Final says that no retry policy may repeat what failed.
	Final bool `json:"final,omitempty"`
	// Wait is how many milliseconds the error asks to wait before what failed is tried again; 0 for no word of it.
	Wait int64 `json:"wait_ms,omitempty"`
}

// CancelledType is the type of the error of a task that was stopped from outside: its run was cancelled, or its
// superstep ran out of time. That is no failure of its node: no handler takes over, and the task runs again when the
// thread is continued.
const CancelledType = "Cancelled"

// Late is the outcome of a task that came when the time of its superstep was over: the task was stopped, whatever it has come back with. What it
// did outside stays known. A task that was given back has no outcome yet.
func (o Outcome) Late(graph string, t *Task) Outcome {
	if o.Yielded || o.Error != nil && o.Error.Type == CancelledType {
		return o
	}
	o.Command, o.Routes, o.Questions, o.Cached, o.Drain, o.Again = Command{}, nil, nil, false, "", false
	o.Error = &NodeError{Type: CancelledType, Graph: graph, Node: t.Node, Message: "cancelled: the superstep's time was over"}
	return o
}

// Permanent reports whether no retry policy may repeat what failed.
func (e *NodeError) Permanent() bool { return e.Final }

// Error implements error.
func (e *NodeError) Error() string {
	if e.Node == "" {
		return e.Message
	}
	return "node " + e.Node + " of graph " + e.Graph + ": " + e.Message
}

// Outcome is everything one execution of a task comes back with. Who runs tasks returns exactly one Outcome for each
// task that a [Loop] hands out.
//
// A task with Questions waits, whatever else it returned; one with an Error has failed for good (retries are the
// runner's business); one that was Yielded is handed out again; any other is finished.
type Outcome struct {
	Command
	// Routes are the targets that the node's branches chose, in branch order, labels already resolved.
	Routes    []Target   `json:"routes,omitempty"`
	Questions []Question `json:"questions,omitempty"`
	Error     *NodeError `json:"error,omitempty"`
	// Emitted is what the node streamed while it ran, failed attempts included, in order.
	Emitted []Emission `json:"emitted,omitempty"`
	// Cached says that the command came from a cache: the node did not run.
	Cached bool `json:"cached,omitempty"`
	// Drain asks the run to stop before its next superstep, with this reason.
	Drain string `json:"drain,omitempty"`
	// Again answers a task with Retry: the subgraph is to be run on.
	Again bool `json:"again,omitempty"`
	// Spent is what the task has spent, whatever its ending was; only of a task that is Metered. What is told counts: of a
	// task that is handed out again, its runner tells what came behind Task.Ledger and Task.Kept.
	Spent *Spent `json:"spent,omitempty"`
	// Took is how long the task had its runner, in milliseconds. The engine makes nothing of it.
	Took int64 `json:"took_ms,omitempty"`
	// Timed is when its runner had it, more closely, where that is traced; nil where it is not. The engine makes nothing of it.
	Timed *Timed `json:"timed,omitempty"`
	// Ledger is the runner's own record of what the task did, opaque to the engine: it comes back in Task.Ledger
	// when the same task runs again.
	Ledger Value `json:"ledger,omitempty"`
	// Yielded gives the task back without an end: it is handed out again, with its Ledger, and of the other fields only
	// Claim, Kept, Spent and Drain count. What it emitted is void; it emits again what counts.
	Yielded bool `json:"yielded,omitempty"`
	// Claim is a thread-wide key that a yielded task wants to own before it goes on. A key has one owner at a time, until
	// the owner's task has ended in any way; who claims it meanwhile is handed out after that. A task that waits for a key
	// owns none: what it owned, others may own and change until it is handed out.
	Claim string `json:"claim,omitempty"`
	// Kept is what the thread is to keep under keys that the task owns, however it ended: see [MaxKept] and
	// [MaxKeptBytes]. Null forgets what it kept.
	Kept map[string]Value `json:"kept,omitempty"`
}

// Timed is a time from Began, in microseconds since 1970, that lasted for as many microseconds as Took says.
type Timed struct {
	Began int64 `json:"began_us"`
	Took  int64 `json:"took_us"`
}

// EmissionKind says what an [Emission] is.
type EmissionKind string

// The kinds of what a node streams.
const (
	// EmissionCustom: Value is a value of the node's own.
	EmissionCustom EmissionKind = ""
	// EmissionMessage: Value is a message, or a piece of one that has the id of the whole.
	EmissionMessage EmissionKind = "message"
	// EmissionReset: attempt Attempt begins; what the attempts before it emitted is void.
	EmissionReset EmissionKind = "reset"
)

// Emission is one thing that a node streamed.
type Emission struct {
	Kind    EmissionKind `json:"kind,omitempty"`
	Value   Value        `json:"value,omitempty"`
	Attempt int          `json:"attempt,omitempty"`
}

// Task is one unit of work that a [Loop] hands out. It is read-only.
type Task struct {
	// Namespace is "" for the root graph; a subgraph's is its parent's namespace, the parent's superstep and the
	// parent task's path: "2/sub", "2/sub|1/inner".
	Namespace string `json:"ns,omitempty"`
	// Graph is the path of subgraph names from the root's Spec, empty for the root.
	Graph []string `json:"graph,omitempty"`
	// Step is the superstep, as LangGraph counts: the entry runs at 0, the first nodes at 1.
	Step int `json:"step"`
	// Path is unique within its namespace and superstep: the node's name, or "name:3" for the fourth Send.
	Path string `json:"path"`
	Node string `json:"node"`
	// Branch tells apart the lines of a thread that was forked; "" for the first.
	Branch string `json:"branch,omitempty"`
	// Origin is the thread's, see [Thread.Begin]: with it, what a task names has a name that no other thread gives.
	Origin string `json:"origin,omitempty"`
	// Asked is the branch that the ids of the task's questions have, nil for Branch: the task runs again on another line of
	// the thread, and answers from before find their questions.
	Asked *string `json:"asked,omitempty"`
	// AskedIn is the thread that those ids have, "" for the one that runs the task, which was copied from that one.
	AskedIn string `json:"asked_in,omitempty"`
	// Digest is the checkpoint's digest, in hex; a task on its way to where it runs goes without.
	Digest string `json:"digest,omitempty"`
	// State holds the channels that have a value: all that the node reads, or all of them when the node has branches.
	State map[string]Held `json:"state,omitempty"`
	// Arg is the Send's argument; nil for a task triggered by edges.
	Arg Value `json:"arg,omitempty"`
	// Timeouts are the Send's own: when they bound anything, the node's do not count.
	Timeouts
	// Answers are the replies to this task's earlier questions, in question order.
	Answers []Answer `json:"answers,omitempty"`
	// Ledger is what Outcome.Ledger carried when this task last ran.
	Ledger Value `json:"ledger,omitempty"`
	// Kept is what the thread keeps under the keys that this task owns, those of Outcome.Claim: null where it keeps
	// nothing yet.
	Kept map[string]Value `json:"kept,omitempty"`
	// Branches are the conditional edges to evaluate after the node.
	Branches []Branch `json:"branches,omitempty"`
	// RouteOnly asks to evaluate only the branches: Done is what the node (a subgraph) already returned.
	RouteOnly bool    `json:"route_only,omitempty"`
	Done      Command `json:"done,omitzero"`
	// Failure is set for an error handler's task: the failure that it handles. State and Arg are the failed task's.
	Failure *NodeError `json:"failure,omitempty"`
	// Retry is set when a subgraph's task has failed for the Attempt-th time and its node has a retry policy. Nothing is
	// to run: the outcome's Again says that the policy wants the subgraph run on (after its wait), an Error that it does
	// not.
	Retry   *NodeError `json:"retry,omitempty"`
	Attempt int        `json:"attempt,omitempty"`
	// Metered asks for Outcome.Spent: the thread has a budget.
	Metered bool `json:"metered,omitempty"`
	// StepsLeft counts the supersteps that may still run in this run after this one.
	StepsLeft int `json:"steps_left"`
	// Limit is the run's recursion limit, which graphs called from the node's code have too, each for itself.
	Limit int `json:"limit,omitempty"`

	loop *Loop
	run  *taskRun
	key  string // of a task that is handed out
	// reduced is what the task's own writes made of long values; see Program.Read.
	reduced []*reduced
	node    int
	send    int // a Send's place among those of its superstep
}

// IsSend reports whether the task was made by a Send.
func (t *Task) IsSend() bool { return t.Arg != nil }

// Space is the namespace of what runs inside the task.
func (t *Task) Space() string { return childNamespace(t) }

// Key names the task within its thread: the same on every attempt, resume and retry, another one in every superstep,
// namespace and branch.
func (t *Task) Key() string {
	if t.key != "" {
		return t.key
	}
	var room [64]byte
	key := room[:0]
	if t.Branch != "" {
		key = append(append(key, t.Branch...), '!')
	}
	if t.Namespace != "" {
		key = append(append(key, t.Namespace...), '|')
	}
	key = append(strconv.AppendInt(key, int64(t.Step), 10), '/')
	return string(append(key, t.Path...))
}

// Early reports whether the answer was given before its question was asked again: it has no QuestionID, and is for the
// task's question of its About.
func (a Answer) Early() bool { return a.QuestionID == "" }

// For reports whether an early answer is for that question. An approval or an event has a way of its own.
func (a Answer) For(q *Question) bool {
	return a.Early() && q.correctable() && a.About == q.About
}

// correctable reports whether an answer may come in another way than the question's own: an approval has its gate, and an
// event is sent.
func (q Question) correctable() bool { return q.forPeople() && q.Approval == nil }

func childNamespace(t *Task) string {
	ns := itoa(t.Step) + "/" + t.Path
	if t.Namespace != "" {
		ns = t.Namespace + "|" + ns
	}
	return ns
}
