package job

import (
	"strings"
	"time"
)

// Board is the whole state of a job. It has one writer: every method but Ready and the readers tells it what happened,
// and Ready says what is to be done because of that. It is data: encoded as JSON and decoded again it goes on where it was.
// It reads no clock (the time is given), uses no randomness and depends on no map order, so the same calls always lead to
// the same state.
//
// A call that the job cannot take now is a *[RefusedError] and changes nothing. The report of an attempt that
// counts for nothing any more (it was replaced, or is stale) is taken, its usage is counted, and that is all.
type Board struct {
	Job         Job       `json:"job"`
	Experts     []Profile `json:"experts"`
	Status      Status    `json:"status"`
	Phase       Phase     `json:"phase,omitempty"`
	PlanVersion int       `json:"plan_version"`
	// SubJobs are in the order in which they were planned, replaced ones included.
	SubJobs []*SubJob `json:"subjobs,omitempty"`
	Spent   Usage     `json:"spent,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Reason says why the job has its status and phase, in a sentence.
	Reason string  `json:"reason,omitempty"`
	Events []Event `json:"events,omitempty"` // the latest

	// Plans are what is to be planned: the first one is under way, or waits for a decision, the others wait for it.
	Plans []*Planning `json:"plans,omitempty"`
	// Ending is the status in which the job ends once nothing is under way any more: FAILED or STOPPED; "" when it goes on.
	Ending Status `json:"ending,omitempty"`
	// Worked is for how long the job had run when it was last stopped, and Resumed since when it runs again.
	Worked  time.Duration `json:"worked,omitempty"`
	Resumed time.Time     `json:"resumed,omitzero"`
	// Complaints counts the input data errors that made predecessors work again: see Policy.MaxReopensTotal.
	Complaints int `json:"complaints,omitempty"`
	EventBytes int `json:"event_bytes,omitempty"` // that Events take

	byID map[string]*SubJob // follows from SubJobs: see Board.find
}

// Planning is a plan that is being made: of the job, or of a subjob that was too complicated.
type Planning struct {
	SubJob string `json:"subjob,omitempty"` // "" for the job
	// Report is how the attempt ended that found the subjob too complicated.
	Report *WorkflowMessage `json:"report,omitempty"`
	// Attempt counts the planner's answers and the call under way, Lesson is part of the next call.
	Attempt int    `json:"attempt,omitempty"`
	Lesson  string `json:"lesson,omitempty"`
	// Open says that the planner's call is under way, Cancelled that it was asked to end, and Void that its answer is of no use
	// any more.
	Open      bool `json:"open,omitempty"`
	Cancelled bool `json:"cancelled,omitempty"`
	Void      bool `json:"void,omitempty"`
	// Proposed is the plan that waits for a person's decision.
	Proposed *Draft `json:"proposed,omitempty"`
	// Needs is how many subjobs the planner's last plan had, more than the budget has left: it is asked again once that has them.
	Needs int `json:"needs,omitempty"`
}

// Work is what is to be done now. The board remembers that it was handed out: it is not returned again.
type Work struct {
	// Plan is a call of the planner to make.
	Plan *PlanRequest
	// Run are the attempts to begin, in order.
	Run []Assignment
	// Cancel are the attempts under way that are to be asked to end, each once. They still report, at the latest with what
	// their cancellation says.
	Cancel []Attempt
	// CancelPlan says that the planner's call under way is to be asked to end.
	CancelPlan bool
	// Wake is when to call Ready again though nothing has happened, zero for never.
	Wake time.Time
	// Done says that the job has ended: nothing is under way, and nothing will be.
	Done bool
}

// Attempt names an attempt of a subjob.
type Attempt struct {
	SubJob  string `json:"subjob"`
	Attempt int    `json:"attempt"`
}

// Recover says how a job that was stopped, or has failed, goes on.
type Recover struct {
	// Again are subjobs to do again although they finished, with what depends on them.
	Again []string `json:"again,omitempty"`
	// Lesson goes to the subjobs that had failed, that were stopped under way, or that are to be done again, and to the
	// planner while it plans; without any of those to all that are left to do.
	Lesson string `json:"lesson,omitempty"`
	By     string `json:"by,omitempty"`
}

// RefusedError says that the board cannot do what it was asked: the job stays as it was.
type RefusedError struct {
	Job string `json:"job"`
	// Code is one of: not_running, not_recoverable, unknown_subjob, wrong_status, wrong_plan_version, bad_plan, unknown_expert,
	// expert_in_use, bad_expert, bad_budget, bad_text, bad_job, no_room.
	Code    string `json:"code"`
	Problem string `json:"problem"`
	Do      string `json:"do,omitempty"`
}

func (e *RefusedError) Error() string {
	text := "job " + e.Job + ": " + e.Problem
	if e.Do != "" {
		text += "; " + e.Do
	}
	return text
}

// Event is something that happened to a job, for those who follow it.
type Event struct {
	Seq  int64     `json:"seq"` // counts from 1, without gaps, over the whole job
	Time time.Time `json:"time"`
	// Kind is one of: submitted, planning, plan_refused, planned, approving, approved, edited, rejected, started, finished,
	// retrying, complained, too_complicated, reopened, stale, replaced, failed, failing, stopping, stopped, recovered, over_budget,
	// raised, expert_added, expert_removed, job_finished, job_failed. An attempt that has ended has one behind its "started".
	Kind    string `json:"kind"`
	SubJob  string `json:"subjob,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Expert  string `json:"expert,omitempty"`
	// Text says it in a sentence: the lesson, the reason, what was wrong.
	Text string `json:"text,omitempty"`
}

// MaxEvents is how many events of a job are kept at most, and MaxEventBytes what they may take as JSON.
const (
	MaxEvents     = 1000
	MaxEventBytes = 96 << 10
)

// maxEventText bounds the text of an event, in bytes as JSON: the whole text is with the subjob or its attempt.
const maxEventText = 256

// log notes an event, and forgets the oldest ones when there are too many.
func (b *Board) log(now time.Time, e Event) {
	e.Seq, e.Time, e.Text = b.lastEvent()+1, now, clip(e.Text, maxEventText)
	b.Events = append(b.Events, e)
	b.EventBytes += e.size()
	drop := max(0, len(b.Events)-MaxEvents)
	for _, old := range b.Events[:drop] {
		b.EventBytes -= old.size()
	}
	for ; b.EventBytes > MaxEventBytes; drop++ {
		b.EventBytes -= b.Events[drop].size()
	}
	b.Events = b.Events[drop:]
}

// logSubJob notes an event of a subjob.
func (b *Board) logSubJob(now time.Time, kind string, s *SubJob, text string) {
	b.log(now, Event{Kind: kind, SubJob: s.ID, Attempt: s.Attempts, Expert: s.Expert, Text: text})
}

// size is how many bytes an event takes in JSON, at most.
func (e Event) size() int {
	return 128 + len(e.Kind) + len(e.SubJob) + quoted(e.Expert) + quoted(e.Text)
}

func (b *Board) lastEvent() int64 {
	if len(b.Events) == 0 {
		return 0
	}
	return b.Events[len(b.Events)-1].Seq
}

// byWhom ends a sentence with who did it, when that is known.
func byWhom(sentence, by string) string {
	if by == "" {
		return sentence
	}
	return strings.TrimSpace(sentence + " by " + by)
}

// reasoned adds the reason to what was done, when one is given.
func reasoned(done, reason string) string {
	if done == "" || reason == "" {
		return done + reason
	}
	return done + ": " + reason
}
