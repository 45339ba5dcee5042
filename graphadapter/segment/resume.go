package segment

import (
	"slices"

	"superstep.dev/graphadapter/pregel"
)

// The bounds of resume points: a suspended run takes as long to make as one to three supersteps that do nothing.
const (
	// resumeEvery is how many outcomes lie between two resume points at least.
	resumeEvery = 64
	// maxResumeBytes bounds the suspended run of a resume point.
	maxResumeBytes = 64 << 10
)

// resumePoints are the places that a segment can be gone on from.
type resumePoints struct {
	before int // supersteps that have to come after the one that is used; 0 for no resume points
	all    []madePoint
	last   int  // of them, at the newest resume point or the last attempt to make one
	cost   int  // bytes of the newest resume point: as many outcomes pay for the next
	passed int  // bytes of the outcomes by then
	over   bool // something was delivered that nobody may pass over, or the run is too large
}

// delivered notes an outcome.
func (p *resumePoints) delivered(o *pregel.Outcome) {
	p.over = p.over || len(o.Questions) > 0 || o.Ledger != nil || o.Kept != nil
}

// makeResumePoint makes the place where the segment stands one that can be gone on from, if enough has happened since the
// last. The tasks in the queue are those that were handed out; others must not be under way.
func (s *Segment) makeResumePoint(queue []*pregel.Task) {
	p := &s.resume
	if p.before == 0 || p.over || s.result.made-p.last < resumeEvery || s.bytes-p.passed < p.cost {
		return
	}
	s.loop.PutBack(queue...)
	defer s.loop.Ready() // the same ones
	if !s.loop.Quiet() {
		return // until the next superstep
	}
	p.last, p.passed = s.result.made, s.bytes
	loop, err := s.loop.Suspend()
	if err != nil || len(loop) > maxResumeBytes {
		p.over = true
		return
	}
	p.cost = len(loop)
	p.all = append(p.all, madePoint{step: s.loop.Step(), frames: len(s.result.frames), point: ResumePoint{Deliveries: s.result.made, Loop: loop}})
	// All but the newest that is far enough back are of no use any more.
	if useful := p.usable(s.loop.Step()); useful > 0 {
		p.all = slices.Delete(p.all, 0, useful)
	}
}

// usable is the place of the newest resume point that is far enough before a superstep; -1 for none.
func (p *resumePoints) usable(step int) int {
	for i, one := range slices.Backward(p.all) {
		if step-one.step >= p.before {
			return i
		}
	}
	return -1
}

// chosen is the resume point of a segment that ends here; nil for none.
func (p *resumePoints) chosen(step int) *madePoint {
	if i := p.usable(step); i >= 0 {
		return &p.all[i]
	}
	return nil
}
