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
	// Reset says that the run was reset: what was sent to it before comes again.
	Reset bool
	// Blind says that tasks are under way that nobody can look into: what they wait for is not known.
	Blind bool
}

func (s Stand) changing() bool { return s.Invoked || s.Edited }

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
	// undo undoes the run's effects; nil while nothing does.
	undo *Undo
	// tells says that the host tells people outside.
	tells bool
}

// New is the life of a run of that thread and graph, which goes on with what an earlier one knew; the zero State is that of a
// new thread.
func New(thread, graph string, of Thread, known State) *Run {
	r := &Run{State: known, thread: thread, graph: graph, of: of, look: true}
	r.trail = Trail{State: &r.State.AuditState, Thread: thread, Noted: r.noted}
	return r
}

func (r *Run) noted(e approval.Entry) {
	r.do(Noted{e})
	r.tellAudited(e)
}

// asks are the questions of the thread's tasks, or while effects are undone those about the effects.
func (r *Run) asks() []pregel.OpenQuestion {
	if r.undo != nil {
		return r.undo.questions()
	}
	return r.of.Asks()
}

// stand is how the run stands. One that undoes effects does not stand still.
func (r *Run) stand() Stand {
	s := r.of.Stand()
	s.Standing = s.Standing && r.undo == nil
	return s
}

// ThreadID is the thread's id.
func (r *Run) ThreadID() string { return r.thread }

// Left is what the thread's next run has to know: what was taken, kept and is in the audit, and nothing that only an execution
// under way can use.
func (r *Run) Left() State {
	left := r.State
	left.Paused, left.Given, left.Passed, left.Retry, left.Drain = nil, nil, false, false, ""
	left.Replies, left.Cancel, left.Notices = nil, nil, nil
	left.Taken = left.Taken.left()
	return left
}

// Action is something that a host has to do because of what was decided: a [Noted], a [Shown], an [Ending], a [Tell] or a [Hush].
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

// Note adds an entry to the thread's audit, of something that a host has done.
func (r *Run) Note(now time.Time, entries ...approval.Entry) {
	for _, e := range entries {
		r.trail.Note(now, e)
	}
}

// Happened notes what a task's ledger tells: what became of approvals, and of writes that were not made by one call.
func (r *Run) Happened(now time.Time, e pregel.Event) { r.trail.Happened(now, e) }

// Flush makes entries of all refusals that are in none yet: the run ends, or is continued as a new one.
func (r *Run) Flush(now time.Time) []Action {
	r.flush(now, true)
	return r.Actions()
}

func (r *Run) flush(now time.Time, all bool) { r.trail.Flush(now, all) }

// GoesOn reports whether the engine is to go on with that now: nobody holds the run up. A run that failed does not go on with
// an answer alone.
func (r *Run) GoesOn() bool {
	return r.State.Paused == nil && (r.State.Retry || r.Waiting() && !r.stand().Failed)
}

// GiveAnswers hands over the answers that the engine is to be given. A bare retry, or passing a breakpoint, has none.
func (r *Run) GiveAnswers() []pregel.Answer {
	given := r.State.Given
	r.State.Given, r.Passed, r.State.Retry = nil, false, false
	return given
}

// Unanswered are the open questions without those whose answer was taken already.
func (r *Run) Unanswered() []pregel.OpenQuestion {
	return slices.DeleteFunc(slices.Clone(r.asks()), func(q pregel.OpenQuestion) bool { return r.HasAnswer(q.ID) })
}

// Questions are the open questions for people.
func (r *Run) Questions() []pregel.OpenQuestion {
	return slices.DeleteFunc(r.Unanswered(), func(q pregel.OpenQuestion) bool { return q.Event != "" })
}

// SeeAsked notes of the questions for people that are open when they were asked: now, unless that was noted before, perhaps by an earlier
// run. Those that are not open any more are forgotten.
func (r *Run) SeeAsked(now time.Time) {
	var open []OpenSince
	for _, q := range r.Questions() {
		at := r.AskedAt(q.ID)
		if at.IsZero() {
			at = now.UTC().Truncate(time.Second)
		}
		open = append(open, OpenSince{q.ID, at})
	}
	r.State.Open = open
}

// AskedAt is when an open question was asked, zero when that was not noted.
func (r *Run) AskedAt(question string) time.Time {
	for _, o := range r.State.Open {
		if o.Question == question {
			return o.At
		}
	}
	return time.Time{}
}

// claim keeps questions for those who are answering them while their answers are verified.
type claim struct {
	questions []string
	by        string
}

func (r *Run) claimOf(question string) *claim {
	for _, c := range r.claims {
		if slices.Contains(c.questions, question) {
			return c
		}
	}
	return nil
}

// Drops reports whether the superstep under way is going to be forgotten.
func (r *Run) Drops() bool { return r.CancelMode() != CancelKeep && r.undo == nil }
