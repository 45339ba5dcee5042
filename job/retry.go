package job

import (
	"fmt"
	"time"
)

// maxRetryWait bounds the wait before an attempt that follows an execution error.
const maxRetryWait = time.Minute

// retry has a subjob tried again with what is to be learned from its last attempt, until it was tried too often.
func (b *Board) retry(s *SubJob, m WorkflowMessage, now time.Time) {
	s.Failures++
	reason := because(m)
	if reason == "" {
		reason = "the expert gave no reason"
	}
	if s.Failures > max(b.Job.Policy.MaxRetries, 0) {
		b.fail(s, fmt.Sprintf("it failed %d times, the last time: %s", s.Failures, reason), now)
		return
	}
	b.moveSubJob(s, StatusCreated, reason)
	b.learn(s, reason)
	s.RetryAt = now.Add(b.retryWait(s.Failures))
	b.tellOf(now, "retrying", s, reason)
}

// retryWait is how long to wait after that many execution errors.
func (b *Board) retryWait(failures int) time.Duration {
	wait := min(b.Job.Policy.RetryWait, maxRetryWait)
	for range failures - 1 {
		wait = min(2*wait, maxRetryWait)
	}
	return wait
}

// Retry does one subjob again, with a lesson, and then everything that depends on it. One that has finished is done again,
// an attempt under way is told to end and replaced by another, one that waits after an error begins at once. One that has
// not begun is refused with the code wrong_status, as is one that was replaced.
func (b *Board) Retry(subjob, lesson, by string, now time.Time) error {
	now = stamp(now)
	if err := b.goesOn(); err != nil {
		return err
	}
	s := b.find(subjob)
	if s == nil {
		return b.refuse("unknown_subjob", fmt.Sprintf("it has no subjob %q", clip(subjob, 2*MaxID)), "")
	}
	if s.Legacy || s.Attempts == 0 {
		return b.refuse("wrong_status", fmt.Sprintf("subjob %s has not begun, or was replaced by smaller ones", s.ID), "")
	}
	if problem := tooLong(text{"lesson", lesson, MaxNote}, text{"by", by, 256}); problem != "" {
		return b.refuse("bad_text", "it cannot be tried again: "+problem, "")
	}
	b.again(s, byWhom("to be done again", by), now)
	b.learn(s, lesson)
	s.Failures, s.RetryAt = 0, time.Time{}
	b.staleBehind(now, s)
	b.settle(now)
	return nil
}
