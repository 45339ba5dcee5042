package remote

import (
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/history"
	"superstep.dev/internal/tape"
	"superstep.dev/workflows"
)

// replayed is what a run's events tell.
type replayed struct {
	tape []tape.Entry
	// stands says that the newest invocation is over.
	stands bool
	ahead  *ahead // nil while no segment is under way
}

// whole is what the events tell, and what a segment under way has stored.
func (r replayed) whole() []tape.Entry {
	if r.ahead == nil {
		return r.tape
	}
	return slices.Concat(r.tape, r.ahead.tape)
}

// replay reads what happened in the run so far. The workflow itself says it: there is no second interpretation. before is
// what was known of a segment under way, and stays known while it is.
func (f *feed) replay(events *history.Events, before *ahead) (out replayed, took time.Duration, err error) {
	began := time.Now()
	r := feedRecorder{events: events.All}
	err = f.client.tail.ReplayEvents(f.key.thread, f.key.run, events.All, workflows.NewReader(f.key.graph, &r))
	if out = r.replayed; err == nil {
		out.ahead = r.handed.ahead(events.All)
	}
	if out.ahead != nil && before != nil && before.activityID == out.ahead.activityID {
		out.ahead = before
	}
	return out, time.Since(began), err
}

// feedRecorder writes down what a replay tells.
type feedRecorder struct {
	replayed
	events []*historypb.HistoryEvent
	handed *handed // the last one
}

// Handed implements graphadapter.SegmentRecorder.
func (r *feedRecorder) Handed(activityID string, p *pregel.Program, suspended pregel.Value) {
	r.handed = &handed{activityID, p, suspended}
}

// Began implements graphadapter.Recorder.
func (r *feedRecorder) Began(at int64, p *pregel.Program, _ *pregel.Thread, d graphadapter.Durability) {
	r.stands = false
	r.tape = append(r.tape, tape.Entry{At: at, Began: p, Durability: d})
}

// Continued implements graphadapter.Recorder.
func (r *feedRecorder) Continued(at int64, p *pregel.Program, t *pregel.Thread, d graphadapter.Durability, s pregel.Status, base string) {
	r.stands = s != pregel.StatusRunning
	where := tape.Entry{At: at, Began: p, Durability: d, GoesOn: true, Base: base}
	if t.Head != nil {
		where.Head = t.Head.Checkpoint.ID
	}
	r.tape = append(r.tape, where)
}

// Happened implements graphadapter.Recorder.
func (r *feedRecorder) Happened(at int64, e pregel.Event) {
	t := tape.Entry{At: at, Event: e}
	if at > 0 && at <= int64(len(r.events)) {
		t.When = r.events[at-1].GetEventTime().AsTime()
	}
	r.tape = append(r.tape, t)
}

// Edited implements graphadapter.Recorder. Updates from outside are no part of a stream; a run takes them while it rests.
func (r *feedRecorder) Edited(int64, string, *pregel.Record) { r.stands = true }

// Ended implements graphadapter.Recorder.
func (r *feedRecorder) Ended(int64, pregel.Status, *pregel.Thread) { r.stands = true }
