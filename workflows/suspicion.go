package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// maxAgo is how long ago a run that ended badly is forgotten: no call to the outside takes that long to arrive.
const maxAgo = time.Hour

// suspicion is what executions that are no more may have done without a trace. What runs next looks up its effects before it
// makes them.
type suspicion struct {
	// Suspicion says which tasks a segment that was lost may have run.
	segment.Suspicion
	// step is the superstep whose tasks may have acted in an earlier run; -1 for none.
	step int
	// since is when, at the latest, a run of the thread ended badly, or this one failed and was held open; zero for never. It is
	// of the server's clock, as is all that it is compared with.
	since time.Time
}

// suspicionOf is what a run that begins knows of the runs before.
func suspicionOf(in *protocol.GraphInput, began time.Time) *suspicion {
	s := &suspicion{Suspicion: in.Suspects, step: -1}
	switch {
	case in.Behind > 0:
		s.since = began.Add(-time.Duration(in.Behind) * time.Millisecond)
	case in.Suspect:
		s.since = began
	}
	return s
}

// ago is how long ago a run of the thread ended badly, in milliseconds; 0 for never.
func (s *suspicion) ago(ctx workflow.Context) int64 {
	if s.since.IsZero() {
		return 0
	}
	ago := workflow.Now(ctx).Sub(s.since)
	if ago > maxAgo {
		return 0
	}
	return max(ago.Milliseconds(), 1)
}

// settle ends suspicion where no lost segment can have gone past: at the end, at a question of a node, before a
// breakpoint. It can have gone past a failure, which another execution need not have, and past wherever the run was asked
// to stop: what runs next is suspect then, in the thread's next run too.
func (s *suspicion) settle(e *engine) {
	if e.loop == nil { // an update dropped the superstep: of its tasks nothing is known any more
		return
	}
	switch e.loop.Status() {
	case pregel.StatusDone, pregel.StatusWaiting, pregel.StatusBreakpoint:
		if !doubts(e) {
			s.Suspicion = segment.Suspicion{}
		}
	}
}

// doubts reports whether a question is open that comes of a lost execution alone. That one was not stopped by it, and may
// have gone on.
func doubts(e *engine) bool {
	for _, q := range e.program.OpenQuestions(e.loop.Thread()) {
		if taskrun.IsDoubt(q.Question) {
			return true
		}
	}
	return false
}

// suspects reports whether a task may have been run by an execution that was lost.
func (s *suspicion) suspects(task *pregel.Task) bool {
	return s.All || slices.Contains(s.Tasks, task.Key())
}
