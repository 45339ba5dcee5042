package segment

import (
	"cmp"
	"context"
	"errors"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

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
		s.leaving = !s.keep(ctx) || s.told()
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
		if _, _, err := s.graph.Serve(t); err != nil && t.Retry == nil {
			s.result.Apart = true
			return false
		}
	}
	return true
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
	returned := s.IsReturned(t) || s.strays(t, o) || errors.Is(context.Cause(s.ctx), ErrWorkerStops) && isStopped(o)
	d, frame := s.encode(t, o)
	if returned || s.bytes > 0 && s.bytes+len(frame) > maxOutcomeBytes {
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

// strays reports whether a task has written what the run's graph has no field for: an activity of its own gives it back.
func (s *Segment) strays(t *pregel.Task, o pregel.Outcome) bool {
	return s.req.Spec != nil && s.graph.CheckWrites(s.req.Spec, t, o.Update) != nil
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
