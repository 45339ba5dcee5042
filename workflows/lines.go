package workflows

import "superstep.dev/graphadapter/pregel"

// maxLines bounds the checkpoints that the history query shows, newest kept. Older ones are in the event history.
const maxLines = 1000

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
	if len(l.kept) > maxLines {
		l.kept = append(l.kept[:0:0], l.kept[len(l.kept)-maxLines:]...)
	}
}

// latest are those that are handed on to another run.
func (l *lines) latest() []Line {
	if len(l.kept) > CarriedLines {
		return l.kept[len(l.kept)-CarriedLines:]
	}
	return l.kept
}
