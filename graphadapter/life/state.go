package life

import (
	"encoding/json"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// repeated finds a request whose answers were taken before under the same id, perhaps by an earlier run of the thread.
func (s *State) repeated(a Answer) (Answered, bool) {
	if a.ID == "" {
		return Answered{}, false
	}
	for _, given := range a.All() {
		for _, done := range s.Answered {
			if done.RequestID == a.ID && done.Question == given.QuestionID {
				return done, true
			}
		}
	}
	return Answered{}, false
}

// TakenAnswer is the outcome of a request with answers that was taken before, perhaps by an earlier run of the thread.
func (s *State) TakenAnswer(id string) (AnswerReply, bool) {
	if before, ok := s.Taken.Find(nameAnswer, id); ok {
		reply := read[AnswerReply](before)
		reply.Repeated = true
		return reply, true
	}
	at := slices.IndexFunc(s.Answered, func(a Answered) bool { return id != "" && a.RequestID == id })
	if at < 0 {
		return AnswerReply{}, false
	}
	return AnswerReply{Question: s.Answered[at].Question, Node: s.Answered[at].Node, Repeated: true}, true
}

// Reopen forgets the answers to questions that an earlier state of the thread has open.
func (s *State) Reopen(open []pregel.OpenQuestion) {
	s.Answered = slices.DeleteFunc(slices.Clone(s.Answered), func(a Answered) bool {
		return slices.ContainsFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == a.Question })
	})
}

// HasAnswer reports whether the answer to a question was taken, and the engine was not given it yet.
func (s *State) HasAnswer(question string) bool {
	return slices.ContainsFunc(s.Given, func(a pregel.Answer) bool { return a.QuestionID == question })
}

// Waiting reports whether there is something for the engine to go on with.
func (s *State) Waiting() bool { return len(s.Given) > 0 || s.Passed || s.Retry }

// State is what a run knows of people and of time. It is stored whole, and whatever continues the run is given it whole:
// another execution, which goes on in the middle of everything, or, as [Run.Left] says, the thread's next run.
type State struct {
	AuditState
	// Answered are the latest answers taken, oldest first.
	Answered []Answered `json:"answered,omitempty"`
	// Refused are the latest messages without a reply that were not taken, oldest first.
	Refused []Refused `json:"refused,omitempty"`
	// Early are the answers whose questions were not asked yet, oldest first.
	Early []EarlyAnswer `json:"early,omitempty"`
	// Taken are the latest commands that were done, oldest first: one that comes again is recognised.
	Taken TakenList `json:"taken,omitempty"`
	// Kept are the events that nobody has waited for yet, oldest first; Due is when the waits are over that have an end.
	Kept []KeptEvent `json:"kept,omitempty"`
	Due  []Due       `json:"due,omitempty"`
	// Open says since when the questions for people are open that lists were told of, in task order.
	Open []OpenSince `json:"open,omitempty"`
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
	// Notices are what people outside are told, nil when the run tells nobody.
	Notices *Notices `json:"notices,omitempty"`
}

// EarlyAnswer is an answer to questions that the thread has not asked yet. It comes so where a run was reset: the server brings what was
// sent to the run once more, before the run asks again. Whoever sent it has had the reply, or none, and does not send it twice.
type EarlyAnswer struct {
	Answer
	At time.Time `json:"at"`
}

// OpenSince is a question that was asked, and when.
type OpenSince struct {
	Question string    `json:"question"`
	At       time.Time `json:"at"`
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
	// Question or Event is what it was for; neither, for a request to pause or cancel.
	Question string `json:"question,omitempty"`
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

// KeptEvent is an event that nobody has waited for yet.
type KeptEvent struct {
	Name  string       `json:"name"`
	Value pregel.Value `json:"value,omitempty"`
	By    string       `json:"by,omitempty"`
	At    time.Time    `json:"at"`
	ID    string       `json:"id,omitempty"`
	// All says that it is for all who waited when it came, which nobody could tell then.
	All bool `json:"all,omitempty"`
}

// Due is when the wait for an event is over.
type Due struct {
	Question string    `json:"question"`
	At       time.Time `json:"at"`
}

// KeptBytes is the size of the values that are kept: they have to fit a run's last event beside its state.
func (s *State) KeptBytes() int {
	size := 0
	for _, k := range s.Kept {
		size += len(k.Value)
	}
	return size
}

// dueAt is when a wait is over: what was said when it began counts, whatever the run has gone through since.
func (s *State) dueAt(q pregel.OpenQuestion, now time.Time) time.Time {
	for _, d := range s.Due {
		if d.Question == q.ID {
			return d.At
		}
	}
	return now.Add(time.Duration(q.Timeout) * time.Millisecond)
}

// DueOf is when an open question or wait is over; zero for never, or when that is not known yet.
func (s *State) DueOf(question string) time.Time {
	for _, d := range s.Due {
		if d.Question == question {
			return d.At
		}
	}
	return time.Time{}
}

// Pending is an action that waits for approval.
type Pending struct {
	Question string `json:"question"`
	Node     string `json:"node"`
	// Digest is that of the action that is asked about, and ParamsHash its parameters'.
	Digest     string `json:"digest"`
	ParamsHash string `json:"params_hash"`
	// Asked are the people and groups who are asked now, none for whoever the policy allows.
	Asked []string `json:"asked,omitempty"`
	// Votes are the approvals that were given, of the Need that it takes.
	Votes []approval.Vote `json:"votes,omitempty"`
	Need  int             `json:"need"`
	// Warn is when people are to be warned, and Due when the time to answer is over; zero for never, or not any more.
	Warn time.Time `json:"warn,omitzero"`
	Due  time.Time `json:"due,omitzero"`
	// Missed is when the time to answer was over, of an approval that has paused its run and stays open.
	Missed time.Time `json:"missed,omitzero"`
	// Escalated says that the time was over once, and that others are asked since.
	Escalated bool `json:"escalated,omitempty"`
	// Viewers are who says to have looked at it, the first of them.
	Viewers []string `json:"viewers,omitempty"`
	// Claimed names who is answering at this moment, as far as that was said; Busy that somebody is. [Run.Shown] sets both.
	Claimed string `json:"claimed,omitempty"`
	Busy    bool   `json:"busy,omitempty"`
}

// PendingOn returns what is known of an approval that waits; nil when the run does not wait for it. It is not to be changed.
func (s *State) PendingOn(question string) *Pending {
	for i := range s.Pending {
		if s.Pending[i].Question == question {
			return &s.Pending[i]
		}
	}
	return nil
}

// settled forgets an approval that was decided.
func (s *State) settled(question string) {
	s.Pending = slices.DeleteFunc(slices.Clone(s.Pending), func(p Pending) bool { return p.Question == question })
}

// Paused says who paused a run, when and why.
type Paused struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// WaitingReply is an answer to approvals that waits to be verified, and whose sender gets no reply; Count says how often the
// same one came.
type WaitingReply struct {
	Request Answer `json:"request"`
	Count   int    `json:"count"`
}

// Backlogged reports whether more waits to be verified than can be handed on to another execution of the run.
func (s *State) Backlogged() bool {
	size := 0
	for _, w := range s.Replies {
		size += replyBytes(w.Request)
	}
	return size > maxBacklog
}

// CancelMode says what a cancelled run leaves behind.
type CancelMode string

// The modes, the strongest last. Of several that are asked for before the run has begun to end, the strongest counts.
const (
	// CancelKeep keeps what the superstep under way has finished: a retry goes on from there.
	CancelKeep CancelMode = "keep"
	// CancelDrop forgets the superstep under way, and open questions with it.
	CancelDrop CancelMode = "drop"
	// CancelRollback takes back the invocation under way: what it did outside is undone, and the thread stands where it stood
	// before it, with its questions open. What no program can undo is left, and then nothing else is taken back.
	CancelRollback CancelMode = "rollback"
	// CancelCompensate does the same as CancelDrop, and undoes the effects of the thread since it last finished, the newest receipt
	// first. What no program can undo, a person is asked about.
	CancelCompensate CancelMode = "compensate"
)

var cancelModes = []CancelMode{CancelKeep, CancelDrop, CancelRollback, CancelCompensate}

// Valid reports whether there is such a mode.
func (m CancelMode) Valid() bool { return slices.Contains(cancelModes, m) }

// Cancellation is how a run is being cancelled.
type Cancellation struct {
	Mode   CancelMode `json:"mode"`
	Reason string     `json:"reason,omitempty"`
	By     Actor      `json:"by"`
	// Begun says that the run ends so: it is too late for another way. Enough, that somebody wants a run that undoes its effects
	// to end without more being undone.
	Begun  bool `json:"begun,omitempty"`
	Enough bool `json:"enough,omitempty"`
	// Report is what becomes of the run, once it has begun to end; nil where only the server cancelled it.
	Report *CancelReport `json:"report,omitempty"`
}

// CancelMode is how the run is to end, if it is cancelled.
func (s *State) CancelMode() CancelMode {
	if s.Cancel == nil {
		return CancelKeep
	}
	return s.Cancel.Mode
}

// CancelBegun reports whether the run ends as it was asked to.
func (s *State) CancelBegun() bool { return s.Cancel != nil && s.Cancel.Begun }

// Undoes reports whether a run that is cancelled in that way undoes effects.
func (m CancelMode) Undoes() bool { return m == CancelCompensate || m == CancelRollback }

// Enough reports whether somebody wants a run that undoes its effects to end without more being undone.
func (s *State) Enough() bool { return s.Cancel != nil && s.Cancel.Enough }

// CancelReport says how a run was cancelled, and what became of the effects of its thread.
type CancelReport struct {
	Mode   CancelMode `json:"mode"`
	Reason string     `json:"reason,omitempty"`
	By     string     `json:"by,omitempty"`
	// Undone counts the effects that were undone, or were never made.
	Undone int `json:"undone,omitempty"`
	// Left are the effects that were not undone, at most 200 of them; More counts the others.
	Left []LeftEffect `json:"left,omitempty"`
	More int          `json:"more,omitempty"`
	// Gone counts earlier runs of the thread that the server had no more: their effects are not known.
	Gone int `json:"gone,omitempty"`
	// Problem says why not all effects were looked at, "" when they were.
	Problem string `json:"problem,omitempty"`
	// Checkpoint is the one before the oldest superstep of which a write was undone, as a copy that is the thread's newest:
	// the thread goes on from there. It is "" when that superstep was the one under way.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Renewed says that what runs next on the thread has keys that nothing had before.
	Renewed bool `json:"renewed,omitempty"`
	// Halted says why the thread cannot go on by itself, although effects were undone: its state says that they are there. It
	// is "" when the thread can go on.
	Halted string `json:"halted,omitempty"`
	// Back says that the thread stands where it stood before the invocation that was taken back.
	Back bool `json:"back,omitempty"`
}

// Whole reports whether all effects were undone that were to be.
func (c *CancelReport) Whole() bool { return c.Problem == "" && len(c.Left) == 0 }

// LeftEffect is an effect that a cancellation did not undo.
type LeftEffect struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Report is how the run is being cancelled, or was; nil for one that is not, or that only the server cancelled.
func (s *State) Report() *CancelReport {
	if s.Cancel == nil {
		return nil
	}
	return s.Cancel.Report
}

// Notices are what people outside are told of a run's questions.
type Notices struct {
	// Known are the open questions that people have been told of, or are being told.
	Known []string `json:"known,omitempty"`
	// Untold are the notices that wait to be told or are being told, oldest first.
	Untold []Untold `json:"untold,omitempty"`

	underWay, last int
}

// Untold is a notice that is told until its time is over.
type Untold struct {
	approval.Notice
	Until time.Time `json:"until"`

	number int // of the attempt that is under way, 0 for none
}

// Taken is a command that was done, with its outcome.
type Taken struct {
	Command string          `json:"command"`
	ID      string          `json:"id"`
	Reply   json.RawMessage `json:"reply,omitempty"`
}

// The names of commands.
const (
	nameAnswer = "resume"
	nameEvent  = "event"
	namePause  = "pause"
	nameRetry  = "retry"
	nameDrain  = "drain"
	nameCancel = "cancel"

	// NameInvoke is the name of an [Act] that gives the run new input.
	NameInvoke = "invoke"
)

// TakenList are the latest commands that were taken, oldest first. The server recognises an update that is repeated by its id, but
// only within one run: behind a continue-as-new the run itself does.
type TakenList []Taken

// Find finds a command that was taken before.
func (l TakenList) Find(name, id string) (Taken, bool) {
	at := slices.IndexFunc(l, func(t Taken) bool { return id != "" && t.Command == name && t.ID == id })
	if at < 0 {
		return Taken{}, false
	}
	return l[at], true
}

// Took notes a command and its outcome, nil for none. One without an id is not recognised when it comes again.
func (l *TakenList) Took(name, id string, reply any) {
	if id == "" {
		return
	}
	note := Taken{Command: name, ID: id}
	if text, err := json.Marshal(reply); err == nil && reply != nil {
		note.Reply = text
	}
	count, first := 0, -1
	for i, t := range *l {
		if t.Command == name {
			if count++; first < 0 {
				first = i
			}
		}
	}
	all := append(slices.Clip(*l), note)
	if count >= maxTaken {
		all = append(all[:first], all[first+1:]...)
	}
	*l = all
}

// leftInvokes bounds the inputs that a thread's next run recognises. A caller who lost the reply to a turn sends it again within seconds, and
// another caller's turn may have begun the next run by then. Most of what follows is taken by one run, which recognises many more.
const leftInvokes = 8

// left are those that the thread's next run recognises: events, and the latest inputs.
func (l TakenList) left() (left TakenList) {
	inputs := 0
	for _, t := range slices.Backward(l) {
		if t.Command == NameInvoke {
			inputs++
		}
		if t.Command == nameEvent || t.Command == NameInvoke && inputs <= leftInvokes {
			left = append(left, t)
		}
	}
	slices.Reverse(left)
	return left
}

// read reads the reply of a command that was taken.
func read[R any](t Taken) (reply R) {
	_ = json.Unmarshal(t.Reply, &reply) // it was written by took
	return reply
}

// maxTaken bounds the commands of one name that a run recognises. The server takes 2,000 updates for one run.
const maxTaken = 1000
