package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// underWay is one task under way in a segment.
type underWay struct {
	*taskrun.Outbox
	key   string // pregel.Task.Key
	began time.Time
}

// Left is what the execution leaves to the next beside its record, as it is now: the ledgers of the tasks that have not
// ended, by their keys, as far as the request did not bring them. It is safe for concurrent use. Heartbeats take it before the
// record: a task that ends meanwhile is then in both, never in neither.
func (s *Segment) Left() map[string]pregel.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := maps.Clone(s.left)
	room := s.room()
	for _, full := range []bool{false, true} { // tasks that yield have the room that the others leave
		for _, t := range s.under {
			if _, is := t.Pressure(); is == full {
				news := t.News(max(room, 0))
				if room -= len(news); news != nil {
					left[t.key] = news
				}
			}
		}
	}
	return left
}

// room is how much of a heartbeat the ledgers of the tasks under way may take together.
func (s *Segment) room() int { return cmp.Or(s.req.LedgerBytes, maxOutcomeBytes) }

// store is a segment as the taskrun.Store of its tasks.
type store struct{ *Segment }

// Keep implements taskrun.Store.
func (s store) Keep(ctx context.Context) error {
	if s.host.Keep == nil {
		return nil
	}
	return s.host.Keep(ctx)
}

// Room implements taskrun.Store: the other tasks have their part of a heartbeat.
func (s store) Room(o *taskrun.Outbox) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.room()
	for _, other := range s.under {
		if size, full := other.Pressure(); other.Outbox != o && !full {
			room -= size
		}
	}
	return room
}

// maxHeldWait is how long the wait for a task's next attempt may keep a segment from leaving: a longer one is the
// server's, and holds no worker.
const maxHeldWait = 5 * time.Second

// Holds implements taskrun.Store. The count of a failed attempt that cannot be made durable is lost with this process.
func (s store) Holds(ctx context.Context, wait time.Duration, failed bool) bool {
	if failed {
		_ = s.Keep(ctx)
	}
	return wait <= maxHeldWait
}

// Leaving implements taskrun.Store.
func (s store) Leaving() <-chan struct{} { return s.host.Leave }

// Now implements taskrun.Store.
func (s store) Now() time.Time {
	if s.host.Now == nil {
		return time.Now()
	}
	return s.host.Now()
}

// Record is what a heartbeat carries of the deliveries, and how many they are. It is safe for concurrent use.
func (s *Segment) Record() (record []byte, deliveries int) {
	return s.record.carry()
}

// enter makes a task one of those under way, with what earlier executions left to it.
func (s *Segment) enter(t *pregel.Task) (*underWay, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := t.Key()
	outbox, err := taskrun.OpenOutbox(t, s.left[key], store{s}, s.req.Durability)
	if err != nil {
		return nil, err
	}
	under := &underWay{Outbox: outbox, key: key, began: time.Now()}
	s.under[t] = under
	delete(s.left, key)
	return under, nil
}

// IsReturned reports whether a task under way is given back before its next attempt.
func (s *Segment) IsReturned(t *pregel.Task) bool {
	s.mu.Lock()
	under, ok := s.under[t]
	s.mu.Unlock()
	return ok && under.IsReturned()
}

// Leave forgets a task that was under way. What it leaves is recorded before, unless it is given back.
func (s *Segment) Leave(t *pregel.Task, giveBack bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if under, ok := s.under[t]; ok && giveBack {
		if news := under.News(maxOutcomeBytes); news != nil {
			s.left[under.key] = news
		}
	}
	delete(s.under, t)
}

// leftovers is what executions left to tasks that are to run again: those of the queue, and those that were given back.
func (s *Segment) leftovers(queue []*pregel.Task) map[string]pregel.Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]pregel.Value{}
	for _, t := range append(s.returned, queue...) {
		if news, ok := s.left[t.Key()]; ok {
			out[t.Key()] = news
		}
	}
	return out
}

// Begins are the keys of the tasks that were ready when this execution began.
func (s *Segment) Begins() []string {
	keys := make([]string, len(s.ready))
	for i, t := range s.ready {
		keys[i] = t.Key()
	}
	return keys
}

// Suspects reports whether an execution that was lost may have run the task.
func (s *Segment) Suspects(t *pregel.Task) bool { return s.suspect.has(t) }

// Root implements taskrun.Runner.
func (s *Segment) Root() *graphadapter.Graph { return s.graph }

// Begin implements taskrun.Runner.
func (s *Segment) Begin(t *pregel.Task, env *taskrun.Env) *pregel.Outcome {
	under, err := s.enter(t)
	if err != nil {
		return &pregel.Outcome{Error: graphadapter.FailureOf(s.graph.NameOf(t), t.Node, err)}
	}
	if s.host.Refuse != nil {
		if refused := s.host.Refuse(t); refused != nil {
			refused.Ledger, refused.Kept = under.Ledger(), taskrun.KeptOf(t, under.Entries())
			refused.Spent = taskrun.SpentOf(t, under.Entries())
			return refused
		}
	}
	*env = taskrun.Env{Thread: s.req.Thread, Context: s.req.Context, Requester: s.req.Requester, Outbox: under.Outbox,
		Behind: graphadapter.Milliseconds(s.req.Behind), Suspect: s.suspect.has(t),
		Lost: s.suspect.lost && s.suspect.has(t), Begin: s.host.Begin}
	if s.host.Prepare != nil {
		s.host.Prepare(t, env)
	}
	return nil
}

// encode returns an outcome's frame, and the outcome as whoever reads that finds it: encoding escapes and compacts what a node
// wrote, and the run's own engine must come to the same digests as this one. An outcome that no payload holds, or that nobody
// could read, is a failure of its node that says why. The frame stands until the next call.
func (s *Segment) encode(t *pregel.Task, o pregel.Outcome) (Delivery, []byte) {
	d, frame, err := s.coder.roundTrip(s.delivery(t, o))
	switch {
	case err != nil:
		return s.encodeFailure(t, o, "InvalidUpdateError", "the result is no JSON that can be read back: "+err.Error())
	case len(frame) > s.most():
		return s.encodeFailure(t, o, "PayloadTooLarge", fmt.Sprintf("the result has %d bytes, at most %d can be stored: write a "+
			"reference to the value instead of the value", len(frame), s.most()))
	}
	return d, frame
}

// most is how many bytes the segment brings back.
func (s *Segment) most() int { return cmp.Or(s.host.MostBytes, maxOutcomeBytes) }

// delivery is an outcome of a task under way, with the time that the task took.
func (s *Segment) delivery(t *pregel.Task, o pregel.Outcome) Delivery {
	d := deliveryOf(t, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if under, ok := s.under[t]; ok {
		d.Took = time.Since(under.began).Milliseconds()
		if s.req.Trace != "" {
			d.Outcome.Timed = &pregel.Timed{Began: under.began.UnixMicro(), Took: time.Since(under.began).Microseconds()}
		}
	}
	return d
}

// encodeFailure is the failure of a task that came back with what cannot be stored, with as much beside it as can.
func (s *Segment) encodeFailure(t *pregel.Task, o pregel.Outcome, kind, why string) (d Delivery, frame []byte) {
	problem := &pregel.NodeError{Type: kind, Message: why, Graph: s.graph.NameOf(t), Node: t.Node}
	short, _ := graphadapter.SlimLedger(o.Ledger) // of a task under way, which has read it
	for _, left := range []pregel.Outcome{
		{Emitted: taskrun.KeepEmitted(o.Emitted, maxOutcomeBytes/2-len(o.Ledger)), Ledger: o.Ledger, Kept: o.Kept, Spent: o.Spent},
		{Ledger: o.Ledger, Kept: o.Kept, Spent: o.Spent}, // an emission, or a receipt, is what cannot be read
		{Ledger: short, Kept: o.Kept, Spent: o.Spent},
	} {
		var err error
		left.Error = problem
		if d, frame, err = s.coder.roundTrip(s.delivery(t, left)); err == nil {
			break
		}
	}
	return d, frame
}

// Open implements taskrun.Guard: it says whether tasks that wait may start. fresh says that some were handed out just now.
func (s *Segment) Open(ctx context.Context, queue []*pregel.Task, fresh bool) bool {
	switch {
	case s.leaving:
	case ctx.Err() != nil, s.told(), s.bytes >= maxSegmentBytes, time.Since(s.began) >= s.maxTime():
		s.leaving = true
	case fresh && !s.mine(queue):
		s.leaving = true
	case fresh && s.unkept && len(queue) > 0:
		s.makeResumePoint(queue)
		s.leaving = s.req.Single || !s.keep(ctx) || s.told()
	}
	return !s.leaving
}

func (s *Segment) maxTime() time.Duration { return cmp.Or(s.host.MaxTime, maxSegmentTime) }

// told reports whether the host wants the segment to leave.
func (s *Segment) told() bool {
	select {
	case <-s.host.Leave:
		return true
	default:
		return false
	}
}

// mine reports whether the tasks are for this worker.
func (s *Segment) mine(tasks []*pregel.Task) bool {
	for _, t := range tasks {
		if s.program.TaskQueue(t) != "" {
			return false
		}
		if _, _, err := s.graph.Serve(t); t.Retry == nil && cmp.Or(err, s.checkCalls(t)) != nil {
			s.result.Apart = true
			return false
		}
	}
	return true
}

// checkCalls is [graphadapter.Graph.CheckCalls] of what earlier executions left to a task.
func (s *Segment) checkCalls(t *pregel.Task) error {
	s.mu.Lock()
	left := s.left[t.Key()]
	s.mu.Unlock()
	for _, stored := range []pregel.Value{t.Ledger, left} {
		if stored == nil {
			continue
		}
		entries, err := graphadapter.DecodeLedger(stored)
		if err = cmp.Or(err, s.graph.CheckCalls(t, entries)); err != nil {
			return err
		}
	}
	return nil
}

// keep makes durable what was delivered, as the mode asks.
func (s *Segment) keep(ctx context.Context) bool {
	s.unkept = false
	if s.host.Keep == nil {
		return true
	}
	switch s.req.Durability {
	case graphadapter.DurabilityExit: // there is no record
	case graphadapter.DurabilityAsync:
		if s.record.isSpent() {
			return false
		}
	default:
		if !s.record.fits() || s.record.isSpent() {
			return false
		}
	}
	return s.host.Keep(ctx) == nil
}

// Arrived implements taskrun.Guard: it records an outcome, and reports whether it is to be delivered.
func (s *Segment) Arrived(t *pregel.Task, o pregel.Outcome) (pregel.Outcome, bool) {
	returned := s.IsReturned(t) || s.strays(t, &o) || errors.Is(context.Cause(s.ctx), ErrWorkerStops) && isStopped(o)
	d, frame := s.encode(t, o)
	if returned || s.bytes > 0 && s.bytes+len(frame) > s.most() {
		s.leaving, s.result.Apart = true, s.ctx.Err() == nil
		s.returned = append(s.returned, t)
		s.Leave(t, true)
		return o, false
	}
	s.note(&d, frame, t.Namespace == "" && s.loop.IsOnly(t))
	s.Leave(t, false) // after it is recorded: a heartbeat in between must have one of the two
	if s.host.Over != nil && !d.Outcome.Yielded {
		s.host.Over(t)
	}
	s.leaving = s.leaving || len(o.Questions) > 0
	return d.Outcome, true
}

// strays reports whether the run's graph has no field or no node for what a task came to: an activity of its own gives it back.
func (s *Segment) strays(t *pregel.Task, o *pregel.Outcome) bool {
	return s.req.Spec != nil && s.graph.CheckOutcome(s.req.Spec, t, o) != nil
}

// isStopped reports whether the task did not come to an end of its own.
func isStopped(o pregel.Outcome) bool { return o.Error != nil && o.Error.Type == pregel.CancelledType }

// note records a delivery. only is that of [segmentRecord.add].
func (s *Segment) note(d *Delivery, frame []byte, only bool) {
	s.resume.delivered(&d.Outcome)
	s.result.made++
	s.result.frames = append(s.result.frames, frame...)
	s.bytes += len(frame) + outcomeCost
	if s.req.Durability != graphadapter.DurabilityExit {
		s.record.add(d, frame, only)
	}
	s.unkept = true
}
