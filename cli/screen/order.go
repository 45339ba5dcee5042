package screen

import (
	"time"

	"superstep.dev/thread"
	"superstep.dev/thread/live"
)

// order keeps the lines of a followed run in the order of its supersteps. What a node emits comes on a way of its own, often before
// the server shows that the superstep before has ended.
type order struct {
	reported int // the newest superstep of which something is on the screen
	held     []live.Emission
	timer    *time.Timer
}

const (
	// longestHold is how long an emission waits for the end of the superstep before. An activity that runs several supersteps
	// tells of their ends at its own end only, so longer waits would hold back words for nothing.
	longestHold = 300 * time.Millisecond
	// siblingsHold is how long it waits for other tasks of that superstep once one has ended.
	siblingsHold = 50 * time.Millisecond
)

// holds reports whether an emission waits for the end of the superstep before its own, and keeps it then.
func (s *Followed) holds(e live.Emission) bool {
	if rootStep(e.Task) <= s.order.reported+1 && len(s.order.held) == 0 {
		return false
	}
	s.order.held = append(s.order.held, e)
	if s.order.timer == nil {
		s.order.timer = time.AfterFunc(longestHold, s.releaseAll)
	}
	return true
}

// comes takes in that a line of a superstep is about to be shown: emissions of earlier ones go before it.
func (s *Followed) comes(p thread.Progress) {
	step := p.RootStep()
	if p.State == thread.ProgressStarted && p.Attempt <= 1 || p.Node == "" {
		return
	}
	s.order.reported = max(s.order.reported, step)
	if len(s.order.held) == 0 {
		return
	}
	switch next := rootStep(s.order.held[0].Task); {
	case next <= step:
		s.release()
	case next == step+1:
		s.order.timer.Reset(siblingsHold)
	}
}

func (s *Followed) releaseAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// release shows what is held.
func (s *Followed) release() {
	if s.order.timer != nil {
		s.order.timer.Stop()
		s.order.timer = nil
	}
	held := s.order.held
	s.order.held = nil
	for _, e := range held {
		s.order.reported = max(s.order.reported, rootStep(e.Task)-1)
		s.emit(e)
	}
}

// rootStep is the superstep of the root graph in which a task runs, by the task's key.
func rootStep(key string) int { return thread.Progress{Task: key}.RootStep() }
