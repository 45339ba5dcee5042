package segment

import (
	"fmt"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// IsPinned reports whether a task is for the workers of a task queue of its own: then the tasks are for no segment.
func IsPinned(program *pregel.Program, tasks []*pregel.Task) bool {
	return slices.ContainsFunc(tasks, func(t *pregel.Task) bool { return program.TaskQueue(t) != "" })
}

// HandOver suspends a loop, for a segment to go on with, whose tasks in the queue were handed out and have not begun. ready
// are those tasks as the loop has handed them out again: [TakeIn] needs them.
func HandOver(loop *pregel.Loop, queue []*pregel.Task) (suspended pregel.Value, ready []*pregel.Task, err error) {
	loop.PutBack(queue...)
	suspended, err = loop.Suspend()
	return suspended, loop.Ready(), err
}

// TakeIn delivers to the loop that was handed over what a segment brought back, and returns the tasks that are to run.
// apart says that those are not for a segment. between is that of [Redeliver], and so is the error.
func TakeIn(loop *pregel.Loop, ready []*pregel.Task, r *Result, between func(int)) (queue []*pregel.Task, apart bool, err error) {
	if ready, err = Redeliver(loop, ready, r.Deliveries, between); err == nil {
		ready, err = yield(loop, ready, r.Left)
	}
	return ready, r.Apart || len(r.Deliveries) == 0, err
}

// yield puts on record what executions did in tasks that they gave back, or were lost with, and returns the tasks that
// are to run. ready are those that the loop has handed out.
func yield(loop *pregel.Loop, ready []*pregel.Task, left map[string]pregel.Value) ([]*pregel.Task, error) {
	out := newHandedOut(ready)
	for _, t := range ready {
		news, ok := left[t.Key()]
		if !ok || t.Retry != nil { // whether to run a subgraph on is asked again
			continue
		}
		stored, err := graphadapter.MergeLedger(t.Ledger, news)
		if err != nil {
			return out.order, fmt.Errorf("the task %s was given back: %w", t.Key(), err)
		}
		out.remove(t, t.Key())
		loop.Deliver(t, pregel.Outcome{Yielded: true, Ledger: stored, Kept: taskrun.KeptIn(t, stored)})
		out.add(loop.Ready())
	}
	return out.order, nil
}
