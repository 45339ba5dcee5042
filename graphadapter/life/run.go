package life

import (
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// Thread is where a run's engine stands, as its host knows. A [Run] looks at it whenever it decides, and never changes it.
type Thread interface {
	// Asks are the open questions of the thread's tasks, in task order: of people, and waits for events. Those whose answer
	// the engine was not given yet are among them.
	Asks() []pregel.OpenQuestion
	// Stand is how the run stands.
	Stand() Stand
}

// Stand is how a run stands.
type Stand struct {
	// Status is the word for it, for people.
	Status string
	// Standing says that nothing is under way: the run waits, is paused, or has stopped, failed or finished.
	Standing bool
	// Stopped says that it stands at a breakpoint, or was drained.
	Stopped bool
	// Failed says that it failed, or was ended, and can be retried.
	Failed bool
	// Held says that it is paused before tasks of its superstep which it would start otherwise.
	Held bool
	// Invoked says that it is about to begin something new; Edited, that its state is being changed. What is asked may not be
	// asked any more then.
	Invoked, Edited bool
	// Blind says that tasks are under way that nobody can look into: what they wait for is not known.
	Blind bool
	// Undoing says that effects are being undone, and that the questions are about those.
	Undoing bool
}

func (s Stand) changing() bool { return s.Invoked || s.Edited }

// State is what a run knows of people and of time. It is stored whole, and whatever continues the run is given it whole:
// another execution, which goes on in the middle of everything, or, as [Run.Left] says, the thread's next run.
type State struct {
	AuditState
	// Answered are the latest answers taken, oldest first.
	Answered []Answered `json:"answered,omitempty"`
	// Refused are the latest messages without a reply that were not taken, oldest first.
	Refused []Refused `json:"refused,omitempty"`
	// Taken are the latest commands that were done, oldest first: one that comes again is recognised.
	Taken []Taken `json:"taken,omitempty"`
	// Kept are the events that nobody has waited for yet, oldest first; Due is when the waits are over that have an end.
	Kept []KeptEvent `json:"kept,omitempty"`
	Due  []Due       `json:"due,omitempty"`
	// Pending are the approvals that the run asks for, in the order in which they were asked.
	Pending []Pending `json:"pending,omitempty"`
	// Used are the ids of the tokens that counted, the latest of them: none counts twice, whatever is asked again.
	Used []string `json:"used,omitempty"`
	// Paused says who paused the run, nil when nobody did.
	Paused *Paused `json:"paused,omitempty"`
	// Given are the answers that were taken and that the engine was not given yet. Passed says that the run is to pass the
	// breakpoint at which it stands, Retry that it is to go on after its failure, and Drain why it is to stop before its next
	// superstep.
	Given  []pregel.Answer `json:"given,omitempty"`
	Passed bool            `json:"passed,omitempty"`
	Retry  bool            `json:"retry,omitempty"`
	Drain  string          `json:"drain,omitempty"`
	// Replies are answers to approvals which no gate has looked at, and of which nobody waits for the outcome.
	Replies []WaitingReply `json:"replies,omitempty"`
	// Cancel is how the run is to end, nil when nobody said.
	Cancel *Cancellation `json:"cancel,omitempty"`
}

// Run is the life of one run. It is not safe for concurrent use: its host lets one call at a time in, in an order that a
// replay repeats.
type Run struct {
	State
	thread, graph string
	of            Thread
	trail         Trail
	actions       []Action
	// look says that something may be asked that was not, or not any more.
	look bool
	// claims keep questions for those who are answering them while a gate is asked; proving counts the other commands that a
	// gate is being asked about.
	claims  []*claim
	proving int
	// places are those in Replies, by what makes replies the same.
	places map[string]int
	// verifying counts how often a gate could not be asked about the replies that wait.
	verifying int
}

// New is the life of a run of that thread and graph, which goes on with what an earlier one knew; the zero State is that of a
// new thread.
func New(thread, graph string, of Thread, known State) *Run {
	r := &Run{State: known, thread: thread, graph: graph, of: of, look: true}
	r.trail = Trail{State: &r.State.AuditState, Thread: thread, Noted: func(e approval.Entry) { r.do(Noted{e}) }}
	return r
}

// ThreadID is the thread's id.
func (r *Run) ThreadID() string { return r.thread }

// Left is what the thread's next run has to know: what was taken, kept and is in the audit, and nothing that only an execution
// under way can use.
func (r *Run) Left() State {
	left := r.State
	left.Paused, left.Given, left.Passed, left.Retry, left.Drain = nil, nil, false, false, ""
	left.Replies, left.Cancel = nil, nil
	left.Taken = slices.DeleteFunc(slices.Clone(left.Taken), func(t Taken) bool { return t.Command != nameEvent })
	return left
}

// Action is something that a host has to do because of what was decided: a [Noted], a [Shown] or an [Ending].
type Action any

// Noted is an entry that is part of the thread's audit now.
type Noted struct{ approval.Entry }

// Shown says that the run was paused, or with the zero value that it goes on: what lists show of it.
type Shown struct{ Paused }

// Ending says that the run is to end: the tasks under way are to be told.
type Ending struct{}

func (r *Run) do(a Action) { r.actions = append(r.actions, a) }

// Actions returns what is to be done since it was called last, in its order. [Turn.Actions] has them too.
func (r *Run) Actions() []Action {
	all := r.actions
	r.actions = nil
	return all
}

// Answered is a question that got its answer.
type Answered struct {
	Question  string    `json:"question"`
	Node      string    `json:"node"`
	RequestID string    `json:"request_id"`
	By        string    `json:"by,omitempty"`
	At        time.Time `json:"at"`
}

// Refused is a message without a reply that was not taken, or an event that was kept and fits none who waits.
type Refused struct {
	// Question is what was answered, or the name of the command.
	Question string `json:"question"`
	Event    string `json:"event,omitempty"`
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason"`
	// Code is why a gate refused an answer to an approval.
	Code approval.Code `json:"code,omitempty"`
	At   time.Time     `json:"at"`
}

// The bounds of what anybody can send, and of what a run keeps of it.
const (
	MaxAnswerBytes = 256 << 10
	MaxNameBytes   = 256
	MaxReasonBytes = 1 << 10
	MaxTokenBytes  = 8 << 10
	maxAnswered    = 1000
	maxRefused     = 100
	maxUsedTokens  = 1000
	maxViewers     = 20
)

// note keeps who answered what, the latest of them.
func (s *State) note(a Answered) {
	s.Answered = latest(append(slices.Clip(s.Answered), a), maxAnswered)
}

func (s *State) noteRefused(f Refused, now time.Time) {
	f.At = now
	s.Refused = latest(append(slices.Clip(s.Refused), f), maxRefused)
}

// useToken remembers that a token counted.
func (s *State) useToken(id string) {
	if id != "" {
		s.Used = latest(append(slices.Clip(s.Used), id), maxUsedTokens)
	}
}

// latest are the last of all, at most that many.
func latest[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	return slices.Clone(all[len(all)-most:])
}
