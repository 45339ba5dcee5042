package remote

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/tape"
	"superstep.dev/thread/live"
)

// liveParts joins what comes live with what the history tells, for one reader of one run: what came live is not handed
// out again with the result, and what did not is.
type liveParts struct {
	run string
	// tasks are those under way, by key.
	tasks map[string]*liveTask
	early earlyParts
	// held says that the reader has not got to where it hands out parts: until then what comes is kept.
	held bool
	// ordered says that what a task emits is kept until nothing else can come before it.
	ordered bool
	// open is the number of tasks of which the reader has something that the history has not told.
	open int
}

// livePart is something that a task emits, and how much of that the reader has then. One that is had counts for what comes after it,
// and is not handed out: the reader had it before it reconnected.
type livePart struct {
	pregel.Event
	has tape.Emitted
	had bool
}

// liveTask is a task under way.
type liveTask struct {
	start tape.Entry
	// scheduled, execution and next are those expected; lost says that one of this execution was missed.
	scheduled time.Time
	execution int32
	next      int
	lost      bool
	// given are the emissions handed out, since the last void execution. Of these repeats were emitted again by the execution
	// that is expected: as long as it says the same it says nothing new.
	given   []pregel.Emission
	repeats int
	// has is how much of what the task emits was handed out; had, how much the reader had when it reconnected, nil once as much
	// has come again; resumed says that it had any.
	has     tape.Emitted
	had     *tape.Emitted
	resumed bool
	open    bool
	// strict says that nothing may be handed out that has a gap before it, whatever the attempt; missed, that there is one.
	strict, missed bool
}

func newLiveParts(run string, ordered bool) *liveParts {
	return &liveParts{run: run, ordered: ordered, tasks: map[string]*liveTask{}, held: true}
}

// Enter goes over to another run; with goesOn it is one that the run before was continued as, where tasks go on.
func (l *liveParts) Enter(run string, goesOn bool) {
	if !goesOn {
		clear(l.tasks)
		l.open = 0
	}
	if run != l.run {
		l.early.leave(l.run)
	}
	l.run, l.held = run, true
}

// emission reports whether an event is what a node emitted.
func emission(e pregel.Event) bool {
	return e.Kind == pregel.EventCustom || e.Kind == pregel.EventMessage || e.Kind == pregel.EventReset
}

// tells notes what the history tells of a task, and returns what came live before it.
func (l *liveParts) tells(t tape.Entry) []livePart {
	if t.Began != nil || t.Event.Task == nil {
		return nil
	}
	key := t.Event.Task.Key()
	switch t.Event.Kind {
	case pregel.EventTaskStart:
		l.close(key)
		l.tasks[key] = &liveTask{start: t, strict: l.ordered, has: tape.NothingEmitted}
	case pregel.EventUpdate, pregel.EventTaskEnd:
		l.early.take(earlyTask{l.run, key})
		l.close(key)
		delete(l.tasks, key)
	default:
		return nil
	}
	return l.due()
}

// close notes that the history has told all of a task.
func (l *liveParts) close(key string) {
	if t, ok := l.tasks[key]; ok && t.open {
		t.open = false
		l.open--
	}
}

// due returns what has come of tasks under way whose turn it is by now.
func (l *liveParts) due() []livePart {
	if l.held {
		return nil
	}
	var came []earlyPart
	for key, t := range l.tasks {
		if l.turn(t) {
			came = append(came, l.early.take(earlyTask{l.run, key})...)
		}
	}
	slices.SortFunc(came, func(a, b earlyPart) int { return cmp.Compare(a.number, b.number) })
	return l.all(came)
}

// turn reports whether what a task emits may be handed out: of a bounded number of tasks. In order it is the one task under way, but
// for those around it: the history tells of several in the order in which they end.
func (l *liveParts) turn(t *liveTask) bool {
	if !t.open && l.open >= tape.MostUnderWay {
		return false
	}
	if !l.ordered {
		return true
	}
	for _, other := range l.tasks {
		if other != t && !within(t.start.Event.Task.Namespace, other.start.Event.Task.Space()) {
			return false
		}
	}
	return true
}

// within reports whether a namespace is another one, or below it.
func within(namespace, outer string) bool {
	return namespace == outer || strings.HasPrefix(namespace, outer+"|")
}

// take returns what an emission gives to show now.
func (l *liveParts) take(e live.Emission) []livePart {
	t, ok := l.tasks[e.Task]
	if e.Run != l.run || !ok || l.held || !l.turn(t) {
		l.early.add(e)
		return nil
	}
	parts := t.news(t.take(e))
	if len(parts) > 0 {
		l.opens(t)
	}
	return parts
}

func (l *liveParts) opens(t *liveTask) {
	if !t.open {
		t.open = true
		l.open++
	}
}

// news tells which events the reader had before it reconnected: all until as much has come as it had. What it had of an attempt that is
// over does not count after another one has begun, but where the parts have to come in one order.
func (t *liveTask) news(events []pregel.Event) []livePart {
	parts := make([]livePart, len(events))
	for i, e := range events {
		t.has = t.has.With(e)
		if t.had != nil && !t.strict && e.Kind == pregel.EventReset && e.Attempt > t.had.Attempt {
			t.had = nil
		}
		parts[i] = livePart{Event: e, has: t.has, had: t.had != nil}
		if t.had != nil && t.has == *t.had {
			t.had = nil
		}
	}
	return parts
}

func (t *liveTask) take(e live.Emission) []pregel.Event {
	switch {
	case e.Scheduled.Before(t.start.When) || e.Scheduled.Before(t.scheduled) ||
		e.Scheduled.Equal(t.scheduled) && e.Execution < t.execution:
		return nil // of an earlier run of the same task
	case e.Scheduled.After(t.scheduled) || e.Execution > t.execution:
		t.scheduled, t.execution, t.next, t.lost, t.repeats = e.Scheduled, e.Execution, 0, false, 0
	}
	if e.Sequence < t.next || t.lost {
		return nil
	}
	if e.Sequence > t.next {
		t.lost, t.missed = true, true
		return nil
	}
	t.next++
	return t.emits(e.Emission)
}

// emits returns what the next emission of an execution gives to show. One that a worker was lost with is followed by one that
// begins anew: what that says again is not shown again, and when it says something else what was shown is void.
func (t *liveTask) emits(e pregel.Emission) (out []pregel.Event) {
	attempt, seen := attemptOf(t.given), latest(t.given)
	switch {
	case e.Kind == pregel.EmissionReset && len(t.given) > 0 && e.Attempt == attempt:
		t.repeats = 0 // the same attempt again
		return nil
	case e.Kind == pregel.EmissionReset && t.strict && (t.missed || len(t.given) == 0 || e.Attempt != attempt+1):
		t.lost, t.missed = true, true // the history tells all of the attempts before
		return nil
	case e.Kind == pregel.EmissionReset:
		t.repeats = 0
		t.given = append(t.given, e)
		return []pregel.Event{t.event(e)}
	case t.repeats < len(seen) && sameEmission(seen[t.repeats], e):
		t.repeats++
		return nil
	case t.repeats < len(seen):
		again := slices.Clone(seen[:t.repeats])
		t.given = []pregel.Emission{{Kind: pregel.EmissionReset, Attempt: attempt}}
		out = append(out, t.reset(attempt))
		for _, before := range again {
			t.given = append(t.given, before)
			out = append(out, t.event(before))
		}
	}
	t.repeats++
	t.given = append(t.given, e)
	return append(out, t.event(e))
}

func (t *liveTask) event(e pregel.Emission) pregel.Event {
	return tape.EmissionEvent(t.start.Event.Task, e)
}

func (t *liveTask) reset(attempt int) pregel.Event {
	return t.event(pregel.Emission{Kind: pregel.EmissionReset, Attempt: attempt})
}

// recorded compares what a task's result says it emitted with what was handed out. It returns how many of the result's
// are to be left out, and whether what was handed out is void.
func (l *liveParts) recorded(events []tape.Entry) (given int, void bool) {
	t, ok := l.tasks[events[0].Event.Task.Key()]
	if !ok || len(t.given) == 0 && t.had == nil {
		return 0, false
	}
	has := t.has
	if t.had != nil {
		has = *t.had
	}
	if given := withinResult(events, has); given > 0 {
		return given, false
	}
	whole := emissionsOf(events)
	last, seen := latest(whole), latest(t.given)
	if t.had != nil {
		return len(whole) - len(last), true
	}
	if attemptOf(whole) == attemptOf(t.given) && len(seen) <= len(last) && slices.EqualFunc(seen, last[:len(seen)], sameEmission) {
		return len(whole) - len(last) + len(seen), false
	}
	return len(whole) - len(last), true
}

// withinResult is how many of a result's emissions a reader has, 0 if what it has is not their beginning.
func withinResult(events []tape.Entry, has tape.Emitted) (given int) {
	told := tape.NothingEmitted
	for i, e := range events {
		if told = told.With(e.Event); told == has {
			given = i + 1
		}
	}
	return given
}

func emissionsOf(events []tape.Entry) []pregel.Emission {
	out := make([]pregel.Emission, len(events))
	for i, e := range events {
		out[i] = emissionOf(e.Event)
	}
	return out
}

// attemptIn is the number of the last attempt that events are of.
func attemptIn(events []tape.Entry) int { return attemptOf(emissionsOf(events)) }

// latest are the emissions of the last attempt.
func latest(all []pregel.Emission) []pregel.Emission {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Kind == pregel.EmissionReset {
			return all[i+1:]
		}
	}
	return all
}

// attemptOf is the number of the last attempt.
func attemptOf(all []pregel.Emission) int {
	for _, e := range slices.Backward(all) {
		if e.Kind == pregel.EmissionReset {
			return e.Attempt
		}
	}
	return 1
}

func sameEmission(a, b pregel.Emission) bool {
	return a.Kind == b.Kind && bytes.Equal(tape.Canonical(a.Value), tape.Canonical(b.Value))
}

// emissionOf is the reverse of emissionEvent.
func emissionOf(e pregel.Event) pregel.Emission {
	switch e.Kind {
	case pregel.EventMessage:
		return pregel.Emission{Kind: pregel.EmissionMessage, Value: e.Value}
	case pregel.EventReset:
		return pregel.Emission{Kind: pregel.EmissionReset, Attempt: e.Attempt}
	}
	return pregel.Emission{Value: e.Value}
}

// sameTask returns how many events at the beginning of a tape are what one task emitted.
func sameTask(tape []tape.Entry) int {
	n := 0
	for n < len(tape) && tape[n].Began == nil && emission(tape[n].Event) && tape[n].Event.Task.Key() == tape[0].Event.Task.Key() {
		n++
	}
	return n
}

// earlyParts are emissions that came before the history told of their task, or before the reader got to where it hands out
// parts: at most liveBacklog of them, and liveBacklogBytes.
type earlyParts struct {
	byTask map[earlyTask][]earlyPart
	queued int
	bytes  int
	came   int64
}

// earlyTask is a task of a run. The run may be one that the reader has not come to.
type earlyTask struct{ run, task string }

// earlyPart is an emission and its number among those that came.
type earlyPart struct {
	number int64
	live.Emission
}

// add keeps an emission; one too many is dropped, and the gap tells.
func (q *earlyParts) add(e live.Emission) {
	if q.queued == live.LiveBacklog || q.bytes+live.LiveSize(e) > live.LiveBacklogBytes {
		return
	}
	if q.byTask == nil {
		q.byTask = map[earlyTask][]earlyPart{}
	}
	key := earlyTask{e.Run, e.Task}
	q.came++
	q.byTask[key] = append(q.byTask[key], earlyPart{q.came, e})
	q.queued++
	q.bytes += live.LiveSize(e)
}

// take takes out what came of a task.
func (q *earlyParts) take(key earlyTask) []earlyPart {
	out := q.byTask[key]
	delete(q.byTask, key)
	for _, e := range out {
		q.queued--
		q.bytes -= live.LiveSize(e.Emission)
	}
	return out
}

// leave drops what came of a run that the reader has left.
func (q *earlyParts) leave(run string) {
	for key := range q.byTask {
		if key.run == run {
			q.take(key)
		}
	}
}

// release returns what the tasks under way have emitted so far, once the reader has got to where it hands out parts. had is how much it
// had of each when it reconnected.
func (l *liveParts) release(had func(task string) (tape.Emitted, bool)) []livePart {
	l.held = false
	for key, t := range l.tasks {
		if m, ok := had(key); ok {
			t.resumed = true
			l.opens(t)
			if m != t.has {
				t.had = &m
			}
		}
	}
	return l.due()
}

// all returns what emissions give to show now.
func (l *liveParts) all(came []earlyPart) []livePart {
	var out []livePart
	for _, e := range came {
		out = append(out, l.take(e.Emission)...)
	}
	return out
}
