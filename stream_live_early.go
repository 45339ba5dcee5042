package superstep

import (
	"cmp"
	"slices"

	"superstep.dev/graphadapter/pregel"
)

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
	LiveEmission
}

// add keeps an emission; one too many is dropped, and the gap tells.
func (q *earlyParts) add(e LiveEmission) {
	if q.queued == liveBacklog || q.bytes+liveSize(e) > liveBacklogBytes {
		return
	}
	if q.byTask == nil {
		q.byTask = map[earlyTask][]earlyPart{}
	}
	key := earlyTask{e.Run, e.Task}
	q.came++
	q.byTask[key] = append(q.byTask[key], earlyPart{q.came, e})
	q.queued++
	q.bytes += liveSize(e)
}

// take takes out what came of a task.
func (q *earlyParts) take(key earlyTask) []earlyPart {
	out := q.byTask[key]
	delete(q.byTask, key)
	for _, e := range out {
		q.queued--
		q.bytes -= liveSize(e.LiveEmission)
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
		out = append(out, l.take(e.LiveEmission)...)
	}
	return out
}
