package graphtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
)

// segments runs the loop as the workflow does where supersteps are fused. Tasks that are for no segment run by themselves.
func (tr *trial) segments() error {
	suspect, apart := tr.suspect, false
	defer func() { tr.suspect = suspect }()
	for {
		ready := tr.loop.Ready()
		if len(ready) == 0 {
			return nil
		}
		if apart || segment.IsPinned(tr.program, ready) {
			tr.loop.PutBack(ready...)
			if err := tr.batch(suspect, true); err != nil {
				return err
			}
			apart, suspect = false, segment.Suspicion{}
			continue
		}
		suspended, ready, err := segment.HandOver(tr.loop, ready, (*pregel.Loop).Suspend)
		if err != nil {
			return err
		}
		result, err := tr.segment(suspended, suspect)
		if err != nil {
			return err
		}
		if ready, apart, err = segment.TakeIn(tr.loop, ready, &result, nil); err != nil {
			return err
		}
		tr.loop.PutBack(ready...)
		suspect = result.Suspect
	}
}

// stored is what the heartbeats of a segment leave to its next execution.
type stored struct {
	record     []byte
	deliveries int                     // that the record has
	left       map[string]pregel.Value // see segment.Segment.Left
}

// segment runs a segment as its activity does: execution after execution, until one comes to an end.
func (tr *trial) segment(suspended pregel.Value, suspect segment.Suspicion) (segment.Result, error) {
	req := segment.Request{Graph: tr.graph.Spec.Name, Thread: matrixThread, Loop: suspended, Suspect: suspect,
		Context: tr.m.settings.context, Durability: tr.mode.durability(), LedgerBytes: 128 << 10}
	name := fmt.Sprintf("segment.%d", tr.loop.Step())
	kept, next := &stored{}, &stored{}
	for number := 1; ; number++ {
		w := tr.live()
		result, err := executed(w, func() (segment.Result, error) {
			w.at(name + ".start")
			x := &segmentExecution{process: w, name: name, kept: kept, next: next}
			result, err := x.run(req, number > 1)
			w.at(name + ".end")
			if err != nil {
				return result, err
			}
			encoded, err := result.Encode()
			if err != nil {
				return segment.Result{}, err
			}
			return segment.DecodeWhole(encoded)
		})
		if !errors.Is(err, errLost) {
			return result, err
		}
		*next = stored{} // what was on its way to the server is gone
	}
}

// segmentExecution is one execution of a segment by a worker.
type segmentExecution struct {
	*process
	name       string
	running    *segment.Segment
	kept, next *stored
	done       map[string]bool // tasks that have ended as far as the record tells
}

func (x *segmentExecution) run(req segment.Request, repeated bool) (segment.Result, error) {
	var none segment.Result
	known, err := segment.DecodeRecord(x.kept.record)
	if err != nil {
		return none, err
	}
	left, err := sent(x.kept.left)
	if err != nil {
		return none, err
	}
	if x.running, err = segment.OpenSegment(x.of.graph, &req, repeated, known, left); err != nil {
		return none, err
	}
	x.done = map[string]bool{}
	for _, d := range known { // which has its tasks now
		x.done[d.Key] = !d.Outcome.Yielded
	}
	return x.running.Run(x.ctx, segment.Host{Keep: x.keep, Prepare: x.prepare, MaxTime: time.Hour})
}

// prepare makes the points of a task's execution.
func (x *segmentExecution) prepare(t *pregel.Task, env *taskrun.Env) {
	task := x.execution(t.Key())
	if x.done[t.Key()] {
		x.of.wrong("the task %s ran again although its end was stored", task.task)
	}
	x.crash(task.point("start")) // not in a goroutine of the node's: its context ends
	env.Journal = task.record(env.Outbox)
	env.Outside, env.Use = x.of.outside.serve(task), allowed
}

// heartbeatPoint is in the names of the points of heartbeats between supersteps. When one goes depends on which of a
// superstep's tasks ends first, where there are subgraphs: a run need not come to it again.
const heartbeatPoint = ".heartbeat."

// keep stores a heartbeat; in async mode the one before, because the newest is still on its way.
func (x *segmentExecution) keep(ctx context.Context) error {
	_, inNode := taskrun.TaskFrom(ctx)
	point := ""
	if !inNode { // between supersteps: in a node the record has points of its own
		_, recorded := x.running.Record()
		point = fmt.Sprintf("%s%s%d", x.name, heartbeatPoint, recorded)
		if x.crash(point + ".before") {
			return graphadapter.ErrFenced
		}
	}
	left := x.running.Left() // before the record: see there
	record, deliveries := x.running.Record()
	now := stored{record: record, deliveries: deliveries, left: left}
	if !x.of.crashes.alive(x.process, func() { x.store(now) }) {
		return graphadapter.ErrFenced
	}
	if point != "" && x.crash(point+".after") {
		return graphadapter.ErrFenced
	}
	return nil
}

func (x *segmentExecution) store(now stored) {
	if now.deliveries < x.next.deliveries {
		return // a heartbeat that another one has overtaken
	}
	if x.of.behind {
		*x.kept = *x.next
	} else {
		*x.kept = now
	}
	*x.next = now
}
