package job

import (
	"fmt"
	"slices"
	"time"
)

// jobMoves and subJobMoves say which status may follow which. Nothing leads away from a finished job; a stopped or a
// failed one goes on when it is recovered.
var (
	jobMoves = map[Status][]Status{
		StatusCreated: {StatusRunning},
		StatusRunning: {StatusFinished, StatusFailed, StatusStopped},
		StatusStopped: {StatusRunning},
		StatusFailed:  {StatusRunning},
	}
	subJobMoves = map[Status][]Status{
		// To FAILED when it cannot be planned into smaller ones, to STOPPED when it was.
		StatusCreated: {StatusRunning, StatusFailed, StatusStopped},
		// To CREATED when it is to be done again.
		StatusRunning:  {StatusCreated, StatusFinished, StatusFailed, StatusStopped},
		StatusFinished: {StatusCreated},
		StatusFailed:   {StatusCreated},
		StatusStopped:  {StatusCreated},
	}
)

// move is the only place that changes the status of the job. A move that the table does not have is a mistake in this
// package: it panics, so that a workflow stops there and goes on once it is repaired.
func (b *Board) move(to Status, reason string) {
	if !slices.Contains(jobMoves[b.Status], to) {
		panic(fmt.Sprintf("job %s: %s cannot become %s", b.Job.ID, b.Status, to))
	}
	b.Status, b.Reason = to, reason
}

// moveSubJob is the only place that changes the status of a subjob; see [Board.move]. One that was replaced never moves.
func (b *Board) moveSubJob(s *SubJob, to Status, reason string) {
	if s.Legacy || !slices.Contains(subJobMoves[s.Status], to) {
		panic(fmt.Sprintf("job %s: subjob %s: %s cannot become %s", b.Job.ID, s.ID, s.Status, to))
	}
	s.Status, s.Reason = to, ""
	s.Reason = b.note(reason)
}

// resume and rest begin and end a time in which the job runs.
func (b *Board) resume(now time.Time) {
	if b.Started.IsZero() {
		b.Started = now
	}
	b.Resumed, b.Ended = now, time.Time{}
	b.move(StatusRunning, "")
}

func (b *Board) rest(to Status, reason string, now time.Time) {
	b.Worked, b.Resumed, b.Ended, b.Ending = b.worked(now), time.Time{}, now, ""
	b.move(to, reason)
}

// worked is how long the job has run, without the times in which it was stopped.
func (b *Board) worked(now time.Time) time.Duration {
	if b.Resumed.IsZero() {
		return b.Worked
	}
	return b.Worked + max(0, now.Sub(b.Resumed))
}
