package job

import (
	"fmt"
	"slices"
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
		b.log(now, Event{Kind: "job_finished"})
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
	b.log(now, Event{Kind: kind, Text: reason})
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
	return len(b.Plans) == 0 &&
		!slices.ContainsFunc(b.SubJobs, func(s *SubJob) bool { return !s.Legacy && s.Status != StatusFinished })
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
	b.logSubJob(now, "failed", s, reason)
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
	b.log(now, Event{Kind: "stopping", Text: reason})
}

// Halt asks for the end of a job before its work is done.
type Halt struct {
	// SubJob is the one on whose account the job ends; "" for no one in particular.
	SubJob string `json:"subjob,omitempty"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// Stop ends the job: nothing begins any more, what is under way is asked to end, and once it has the job is STOPPED. What
// has finished is kept, also when it finishes while the job stops. A second stop changes nothing.
func (b *Board) Stop(h Halt, now time.Time) error {
	now = stamp(now)
	if b.Ending == StatusStopped && b.Status == StatusRunning {
		return nil
	}
	if err := b.goesOn(); err != nil {
		return err
	}
	if _, err := b.halted("stopped", h); err != nil {
		return err
	}
	b.stopping(h.why("stopped"), now)
	b.settle(now)
	return nil
}

// Fail ends the job as Stop does, and as FAILED. A subjob that is named has FAILED too, whatever its attempt under way still
// says; one that has finished keeps its result. A job that is about to end, or has ended, refuses it.
func (b *Board) Fail(h Halt, now time.Time) error {
	now = stamp(now)
	if err := b.goesOn(); err != nil {
		return err
	}
	s, err := b.halted("failed", h)
	if err != nil {
		return err
	}
	if b.Status == StatusCreated {
		b.resume(now)
	}
	b.failing(h.why("failed"))
	b.log(now, Event{Kind: "failing", Text: h.why("failed")})
	if s != nil {
		b.failed(s, Halt{Reason: h.Reason, By: h.By}.why("failed"), now)
	}
	b.settle(now)
	return nil
}

// failed has a subjob fail, or as soon as its attempt under way has ended. One with a result keeps it.
func (b *Board) failed(s *SubJob, why string, now time.Time) {
	b.stopPlanning(s)
	switch {
	case s.Open:
		s.Failing, s.Reason = true, ""
		s.Reason = b.note(why)
	case s.Status != StatusFinished && s.Status != StatusFailed:
		b.moveSubJob(s, StatusFailed, why)
		b.logSubJob(now, "failed", s, why)
	}
}

// halted checks who asks for an end and why, and finds the subjob; nil for none.
func (b *Board) halted(how string, h Halt) (*SubJob, error) {
	if problem := tooLong(text{"reason", h.Reason, MaxNote}, text{"by", h.By, 256}); problem != "" {
		return nil, b.refuse("bad_text", "it cannot be "+how+": "+problem, "")
	}
	if h.SubJob == "" {
		return nil, nil
	}
	s, err := b.named(h.SubJob)
	if err == nil && s.Legacy {
		return nil, b.refuse("wrong_status", fmt.Sprintf("subjob %s was replaced by smaller ones", s.ID), "name one of those")
	}
	return s, err
}

// why says in a sentence who ended the job, and why.
func (h Halt) why(how string) string {
	if h.SubJob != "" {
		how += " for subjob " + h.SubJob
	}
	return reasoned(byWhom(how, h.By), h.Reason)
}
