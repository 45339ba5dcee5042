package job

import (
	"fmt"
	"slices"
	"time"
)

// Recover goes on with a job that was stopped, or has failed: what had not finished is done, and what r names is done
// again with everything behind it. Retries and complaints are counted anew. A board in any other status refuses it with
// the code not_recoverable, and one without room for the lesson with no_room.
func (b *Board) Recover(r Recover, now time.Time) error {
	now = stamp(now)
	if err := b.mayRecover(r); err != nil {
		return err
	}
	if r.Lesson != "" && !b.Copy().recovered(r, now) {
		return b.refuse("no_room", "it has no room for the lesson beside what it keeps of its subjobs", "shorten the lesson")
	}
	b.recovered(r, now)
	return nil
}

// recovered goes on with the job; told says that somebody is told the lesson.
func (b *Board) recovered(r Recover, now time.Time) (told bool) {
	learners := b.learners(r)
	b.resume(now)
	b.Complaints = 0
	b.tell(now, Event{Kind: "recovered", Text: byWhom("", r.By)})
	for _, s := range b.SubJobs {
		if s.Legacy {
			continue
		}
		s.Failures, s.Reopens, s.Allowance, s.RetryAt = 0, nil, Budget{}, time.Time{}
		if s.Status == StatusFailed || s.Status == StatusStopped {
			b.moveSubJob(s, StatusCreated, "")
		}
	}
	if p := b.planning(); p != nil && p.Proposed == nil && r.Lesson != "" {
		p.Lesson = ""
		p.Lesson = b.note(r.Lesson)
		told = p.Lesson != ""
	}
	for _, id := range r.Again {
		if s := b.find(id); s.Status == StatusFinished {
			b.again(s, byWhom("to be done again", r.By), now)
			b.staleBehind(now, s)
		}
	}
	for _, s := range learners {
		told = b.learn(s, r.Lesson) || told
	}
	b.settle(now)
	return told
}

// learners are the subjobs that a recovery's lesson is for: those that had failed, those that were stopped under way and
// those to do again; without any all that are left to do, because the lesson is for one of them.
func (b *Board) learners(r Recover) []*SubJob {
	var ended, left []*SubJob
	for _, s := range b.SubJobs {
		switch {
		case s.Legacy:
		case s.Status == StatusFailed, s.Status == StatusStopped && s.Attempts > 0, slices.Contains(r.Again, s.ID):
			ended = append(ended, s)
		case s.Status != StatusFinished:
			left = append(left, s)
		}
	}
	if len(ended) > 0 || b.planning() != nil {
		return ended
	}
	return left
}

func (b *Board) mayRecover(r Recover) error {
	if b.Status != StatusStopped && b.Status != StatusFailed {
		return b.refuse("not_recoverable", fmt.Sprintf("it is %s; a job that is STOPPED or FAILED can be recovered", b.Status), "")
	}
	if problem := tooLong(text{"lesson", r.Lesson, MaxNote}, text{"by", r.By, 256}); problem != "" {
		return b.refuse("bad_text", "it cannot be recovered: "+problem, "")
	}
	for _, id := range r.Again {
		if s := b.find(id); s == nil || s.Legacy {
			return b.refuse("unknown_subjob", fmt.Sprintf("it has no subjob %q", clip(id, 2*MaxID)), "")
		}
	}
	return nil
}
