package job

import (
	"fmt"
	"time"
)

// Recover goes on with a job that was stopped, or has failed: what had not finished is done, and what r names is done
// again with everything behind it. Retries and complaints are counted anew. A board in any other status refuses it with
// the code not_recoverable.
func (b *Board) Recover(r Recover, now time.Time) error {
	now = stamp(now)
	if err := b.mayRecover(r); err != nil {
		return err
	}
	b.resume(now)
	b.Complaints = 0
	b.tell(now, Event{Kind: "recovered", Text: byWhom("", r.By)})
	for _, s := range b.SubJobs {
		if s.Legacy {
			continue
		}
		s.Failures, s.Reopens, s.Allowance, s.RetryAt = 0, nil, Budget{}, time.Time{}
		failed := s.Status == StatusFailed
		if failed || s.Status == StatusStopped {
			b.moveSubJob(s, StatusCreated, "")
		}
		if failed {
			b.learn(s, r.Lesson)
		}
	}
	if p := b.planning(); p != nil && p.Proposed == nil && r.Lesson != "" {
		p.Lesson = ""
		p.Lesson = b.note(r.Lesson)
	}
	for _, id := range r.Again {
		if s := b.find(id); s.Status == StatusFinished {
			b.again(s, byWhom("to be done again", r.By), now)
			b.staleBehind(now, s)
		}
	}
	b.settle(now)
	return nil
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
