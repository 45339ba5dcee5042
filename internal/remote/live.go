package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
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
}

// liveTask is a task under way.
type liveTask struct {
	start tape.Entry
	// scheduled, execution and next are those expected; lost says that one of this execution was missed.
	scheduled time.Time
	execution int32
	next      int
	lost      bool
	// given are the emissions handed out, since the last void execution.
	given []pregel.Emission
}

func newLiveParts(run string) *liveParts {
	return &liveParts{run: run, tasks: map[string]*liveTask{}, held: true}
}

// Enter goes over to another run; with goesOn it is one that the run before was continued as, where tasks go on.
func (l *liveParts) Enter(run string, goesOn bool) {
	if !goesOn {
		clear(l.tasks)
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
func (l *liveParts) tells(t tape.Entry) []pregel.Event {
	if t.Began != nil || t.Event.Task == nil {
		return nil
	}
	key := t.Event.Task.Key()
	switch t.Event.Kind {
	case pregel.EventTaskStart:
		l.tasks[key] = &liveTask{start: t}
		if !l.held {
			return l.all(l.early.take(earlyTask{l.run, key}))
		}
	case pregel.EventUpdate, pregel.EventTaskEnd:
		l.early.take(earlyTask{l.run, key})
		delete(l.tasks, key)
	}
	return nil
}

// take returns what an emission gives to show now.
func (l *liveParts) take(e live.Emission) []pregel.Event {
	t, ok := l.tasks[e.Task]
	if e.Run != l.run || !ok || l.held {
		l.early.add(e)
		return nil
	}
	return t.take(e)
}

func (t *liveTask) take(e live.Emission) []pregel.Event {
	var out []pregel.Event
	switch {
	case e.Scheduled.Before(t.start.When) || e.Scheduled.Before(t.scheduled) ||
		e.Scheduled.Equal(t.scheduled) && e.Execution < t.execution:
		return nil // of an earlier run of the same task
	case e.Scheduled.After(t.scheduled) || e.Execution > t.execution:
		// A repeated attempt says so itself; an execution that a worker was lost with does not.
		if len(t.given) > 0 && e.Emission.Kind != pregel.EmissionReset {
			out = append(out, t.reset(attemptOf(t.given)))
			t.given = nil
		}
		t.scheduled, t.execution, t.next, t.lost = e.Scheduled, e.Execution, 0, false
	}
	if e.Sequence < t.next || t.lost {
		return out
	}
	if e.Sequence > t.next {
		t.lost = true
		return out
	}
	t.next++
	t.given = append(t.given, e.Emission)
	return append(out, t.event(e.Emission))
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
	if !ok || len(t.given) == 0 {
		return 0, false
	}
	whole := emissionsOf(events)
	last, seen := latest(whole), latest(t.given)
	if attemptOf(whole) == attemptOf(t.given) && len(seen) <= len(last) && slices.EqualFunc(seen, last[:len(seen)], sameEmission) {
		return len(whole) - len(last) + len(seen), false
	}
	return len(whole) - len(last), true
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
	return a.Kind == b.Kind && bytes.Equal(canonicalText(a.Value), canonicalText(b.Value))
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

// canonicalText is a value however it was written on its way.
func canonicalText(v pregel.Value) []byte {
	var plain, out bytes.Buffer
	if json.Compact(&plain, v) != nil {
		return v
	}
	json.HTMLEscape(&out, plain.Bytes())
	return out.Bytes()
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

// release returns what the tasks under way have emitted so far, once the reader has got to where it hands out parts.
func (l *liveParts) release() []pregel.Event {
	var came []earlyPart
	for key := range l.tasks {
		came = append(came, l.early.take(earlyTask{l.run, key})...)
	}
	slices.SortFunc(came, func(a, b earlyPart) int { return cmp.Compare(a.number, b.number) })
	l.held = false
	return l.all(came)
}

// all returns what emissions give to show now.
func (l *liveParts) all(came []earlyPart) []pregel.Event {
	var out []pregel.Event
	for _, e := range came {
		out = append(out, l.take(e.Emission)...)
	}
	return out
}
