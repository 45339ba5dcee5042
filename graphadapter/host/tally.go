package host

import (
	"sync"
	"time"

	"superstep.dev/graphadapter"
)

// Tally counts the executions of an activity that were lost with their workers, for the execution that follows them. It is
// safe for concurrent use.
type Tally struct {
	attempt int32
	began   time.Time

	mu     sync.Mutex
	losses graphadapter.Losses
	lost   bool // one before those in losses was lost, too
}

// NewTally returns the tally of an execution that begins now: the attempt of that number, from 1, with what the executions
// before it have left.
func NewTally(attempt int32, kept graphadapter.Progress) *Tally {
	return &Tally{attempt: attempt, began: time.Now(), losses: kept.Since(attempt), lost: kept.Lost}
}

// Counted is how many losses in a row count against the activity: after [graphadapter.MostLosses] a person is asked.
func (t *Tally) Counted() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.losses.Counted(t.attempt)
}

// HasLost reports whether an execution was lost with its worker.
func (t *Tally) HasLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost || t.losses.Any(t.attempt)
}

// Trial reports whether this execution is to run on trial, and for how long.
func (t *Tally) Trial() (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.losses.TrialTime(), t.losses.OnTrial(t.attempt)
}

// Try says that this execution runs on trial.
func (t *Tally) Try() { t.change(graphadapter.Losses.Tried) }

// Clear says that this execution has run on trial for long enough.
func (t *Tally) Clear() {
	t.change(func(l graphadapter.Losses) graphadapter.Losses { return l.Cleared(t.attempt) })
}

// End says that the end of this execution is known: it is not lost.
func (t *Tally) End() {
	t.change(func(l graphadapter.Losses) graphadapter.Losses { return l.Ended(t.attempt) })
}

func (t *Tally) change(next func(graphadapter.Losses) graphadapter.Losses) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = t.lost || t.losses.Any(t.attempt)
	t.losses = next(t.losses)
}

// Progress is what a heartbeat carries of the tally. further says that this execution came further than those before it,
// which were lost at something else then.
func (t *Tally) Progress(further bool) graphadapter.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := graphadapter.Progress{Losses: t.losses.Ran(time.Since(t.began)), Lost: t.lost}
	if further {
		p.Lost, p.Losses = p.Lost || p.Any(t.attempt), p.Cleared(t.attempt)
	}
	return p
}
