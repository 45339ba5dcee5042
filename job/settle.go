package job

import (
	"fmt"
	"time"
)

// settle draws what follows from a change: whether the job has ended, and what it is doing.
func (b *Board) settle(now time.Time) {
	switch {
	case b.Status != StatusRunning:
	case b.Ending != "":
		if b.open() == 0 {
			b.end(now)
		}
	case b.finished():
		b.rest(StatusFinished, "", now)
		b.tell(now, Event{Kind: "job_finished"})
	}
	b.Phase = b.phase()
}

// end is the end of a job that was stopped, or has failed, once nothing is under way.
func (b *Board) end(now time.Time) {
	kind := "stopped"
	if b.Ending == StatusFailed {
		kind = "job_failed"
	}
	reason := b.Reason
	b.rest(b.Ending, reason, now)
	b.tell(now, Event{Kind: kind, Text: reason})
}

// open counts what is under way: attempts, and the planner's call.
func (b *Board) open() int {
	n := 0
	for _, s := range b.SubJobs {
		if s.Open {
			n++
		}
	}
	if p := b.planning(); p != nil && p.Open {
		n++
	}
	return n
}

// finished reports whether everything that counts has finished.
func (b *Board) finished() bool {
	if len(b.Plans) > 0 {
		return false
	}
	for _, s := range b.SubJobs {
		if !s.Legacy && s.Status != StatusFinished {
			return false
		}
	}
	return true
}

func (b *Board) phase() Phase {
	p := b.planning()
	switch {
	case b.Status != StatusRunning:
		return ""
	case b.Ending == StatusStopped:
		return PhaseStopping
	case b.Ending == StatusFailed:
		return PhaseFailing
	case p != nil && p.Proposed != nil:
		return PhaseApproving
	case b.Phase == PhaseOverBudget:
		return PhaseOverBudget
	case p != nil && p.SubJob == "":
		return PhasePlanning
	}
	return PhaseWorking
}

// fail ends the job because of one of its subjobs.
func (b *Board) fail(s *SubJob, reason string, now time.Time) {
	b.moveSubJob(s, StatusFailed, reason)
	b.tellOf(now, "failed", s, reason)
	b.failing(fmt.Sprintf("subjob %s failed: %s", s.ID, reason))
}

// failing makes the job end as failed once nothing is under way any more. The first reason is the job's.
func (b *Board) failing(reason string) {
	if b.Ending == "" {
		b.Ending, b.Reason = StatusFailed, clip(reason, MaxNote)
	}
}

// stopping makes the job end as stopped once nothing is under way any more.
func (b *Board) stopping(reason string, now time.Time) {
	if b.Status == StatusCreated {
		b.resume(now)
	}
	b.Ending, b.Reason = StatusStopped, clip(reason, MaxNote)
	b.tell(now, Event{Kind: "stopping", Text: reason})
}

// Stop ends the job: nothing begins any more, what is under way is told to end, and once it has the job is STOPPED. What
// has finished is kept, also when it finishes while the job stops. A second stop changes nothing.
func (b *Board) Stop(reason, by string, now time.Time) error {
	now = stamp(now)
	if b.Ending == StatusStopped && b.Status == StatusRunning {
		return nil
	}
	if err := b.goesOn(); err != nil {
		return err
	}
	if problem := tooLong(text{"reason", reason, MaxNote}, text{"by", by, 256}); problem != "" {
		return b.refuse("bad_text", "it cannot be stopped: "+problem, "")
	}
	b.stopping(reasoned(byWhom("stopped", by), reason), now)
	b.settle(now)
	return nil
}

// reasoned adds the reason to what was done, when one is given.
func reasoned(done, reason string) string {
	if done == "" || reason == "" {
		return done + reason
	}
	return done + ": " + reason
}
