package workflows

import (
	"slices"

	"superstep.dev/graphadapter/pregel"
)

// maxLines bounds the checkpoints that the history query shows, newest kept. Older ones are in the event history.
const maxLines = 1000

// moreLines is how many more are kept before the oldest are dropped: to drop one at a time would copy all that stay.
const moreLines = 250

// lines are the thread's latest checkpoints, oldest first.
type lines struct {
	run  string // the run's id
	kept []Line
}

func (l *lines) add(p *pregel.Program, r *pregel.Record) {
	ran, wrote := p.Made(r)
	l.kept = append(l.kept, Line{
		Step: r.Checkpoint.Step, Checkpoint: r.Checkpoint.ID, Parent: r.Checkpoint.Parent, Source: r.Checkpoint.Source,
		Ran: ran, Wrote: wrote, Next: p.Next(r), Run: l.run,
	})
	if len(l.kept) >= maxLines+moreLines {
		l.kept = slices.Clone(l.latest(maxLines))
	}
}

// latest are the newest of them, at most that many.
func (l *lines) latest(most int) []Line { return l.kept[max(0, len(l.kept)-most):] }
