package workflows

import (
	"slices"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// maxLines bounds the checkpoints that the history query shows: the newest. Older ones are in the event history.
const maxLines = 1000

// moreLines is how many more are kept before the oldest are dropped: to drop one at a time would copy all that stay.
const moreLines = 250

// checkpointLog are the thread's latest checkpoints, oldest first.
type checkpointLog struct {
	run   string // the run's id
	lines []protocol.Line
	gaps  []gap // oldest first
}

// gap are checkpoints that the run passed over. They come before lines[at].
type gap struct {
	at   int
	made func() []protocol.Line
}

func (l *checkpointLog) add(p *pregel.Program, r *pregel.Record, at time.Time) {
	ran, wrote := p.Made(r)
	l.lines = append(l.lines, protocol.Line{
		Step: r.Checkpoint.Step, Checkpoint: r.Checkpoint.ID, Parent: r.Checkpoint.Parent, Source: r.Checkpoint.Source,
		Ran: ran, Wrote: wrote, Next: p.Next(r), Run: l.run, At: at.UnixMilli(),
	})
	if len(l.lines) >= maxLines+moreLines {
		l.drop(len(l.lines) - maxLines)
	}
}

// when is when a checkpoint was made, in milliseconds since 1970; 0 when that is not known any more.
func (l *checkpointLog) when(checkpoint string) int64 {
	for _, line := range slices.Backward(l.lines) {
		if line.Checkpoint == checkpoint {
			return line.At
		}
	}
	return 0
}

// passOver leaves out the checkpoints that come next; made makes them for whoever asks for so many.
func (l *checkpointLog) passOver(made func() []protocol.Line) {
	l.gaps = append(l.gaps, gap{at: len(l.lines), made: made})
}

// drop forgets the oldest.
func (l *checkpointLog) drop(oldest int) {
	l.lines = slices.Clone(l.lines[oldest:])
	l.gaps = slices.DeleteFunc(l.gaps, func(g gap) bool { return g.at <= oldest })
	for i := range l.gaps {
		l.gaps[i].at -= oldest
	}
}

// latest are the newest of them, at most that many.
func (l *checkpointLog) latest(most int) []protocol.Line {
	for last := len(l.gaps) - 1; last >= 0 && len(l.lines)-l.gaps[last].at < most; last-- {
		l.lines = slices.Insert(slices.Clone(l.lines), l.gaps[last].at, l.gaps[last].made()...)
		l.gaps = l.gaps[:last]
	}
	return l.lines[max(0, len(l.lines)-most):]
}
