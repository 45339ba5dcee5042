package job

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Reported takes how an attempt ended. One that is not under way, because it was reported before or never began, changes
// nothing.
func (b *Board) Reported(a Attempt, m WorkflowMessage, now time.Time) {
	now = stamp(now)
	s := b.find(a.SubJob)
	if s == nil || !s.Open || s.Attempts != a.Attempt {
		return
	}
	s.Usage = s.Usage.plus(b.spend(m.Usage, s.Allowance))
	s.Open, s.Cancelled, s.Ended = false, false, now
	allowed, stale, failing := s.Allowance, s.Stale, s.Failing
	s.Allowance, s.Stale, s.Failing = Budget{}, false, false
	out, problem := b.output(s, m)
	if m.OverBudget && allowed == (Budget{}) {
		problem = "it says that its allowance is spent, and nothing limits it"
	}
	if problem != "" {
		m = WorkflowMessage{Status: ExecutionError, Evaluation: problem, Lesson: m.Lesson}
	}
	switch {
	case failing:
		why := s.Reason
		b.moveSubJob(s, StatusFailed, why)
		b.logSubJob(now, "failed", s, why)
	case stale:
		b.lapsed(s, m, now)
	case b.Ending != "" && (m.Status != Success || m.OverBudget):
		b.moveSubJob(s, StatusStopped, "")
		b.logSubJob(now, "stopped", s, "")
	case m.OverBudget:
		s.Allowance = allowed // the next one needs more
		b.moveSubJob(s, StatusCreated, "what it may spend was too little")
		b.logSubJob(now, "retrying", s, s.Reason)
	default:
		b.concluded(s, m, out, now)
	}
	b.settle(now)
}

// lapsed takes the report of a stale attempt: a predecessor does its work again, so the report does not count. What the report
// says about predecessors is a lesson to them all the same.
func (b *Board) lapsed(s *SubJob, m WorkflowMessage, now time.Time) {
	if b.Ending != "" {
		b.moveSubJob(s, StatusStopped, "")
		b.logSubJob(now, "stopped", s, "")
		return
	}
	b.moveSubJob(s, StatusCreated, s.Reason)
	if m.Status != InputDataError {
		return
	}
	blamed, _ := blamedOf(s, m)
	for _, id := range blamed {
		if p := b.find(id); p.Status != StatusFinished {
			b.learn(p, because(m))
		}
	}
}

// concluded takes the report of an attempt that counts.
func (b *Board) concluded(s *SubJob, m WorkflowMessage, out *Output, now time.Time) {
	switch m.Status {
	case Success:
		b.succeeded(s, m, out, now)
	case InputDataError:
		b.complained(s, m, now)
	case TooComplicated:
		b.tooComplicated(s, m, out, now)
	case ExecutionError:
		b.retry(s, m, now)
	default:
		m.Evaluation = reasoned(fmt.Sprintf("the expert ended with status %q, which means nothing", clip(string(m.Status), MaxID)), m.Evaluation)
		b.retry(s, m, now)
	}
}

func (b *Board) succeeded(s *SubJob, m WorkflowMessage, out *Output, now time.Time) {
	if s.Refused == out.SHA256 {
		b.failOrStop(s, "it made the same output again that could not be used: "+lastLesson(s), now)
		return
	}
	b.moveSubJob(s, StatusFinished, "")
	s.Result, s.Failures, s.Refused = out, 0, ""
	b.logSubJob(now, "finished", s, m.Evaluation)
}

// failOrStop fails a subjob, or leaves it for later when the job ends already.
func (b *Board) failOrStop(s *SubJob, reason string, now time.Time) {
	if b.Ending != "" {
		b.moveSubJob(s, StatusStopped, reason)
		b.logSubJob(now, "stopped", s, reason)
		return
	}
	b.fail(s, reason, now)
}

func lastLesson(s *SubJob) string {
	if len(s.Lessons) == 0 {
		return "no reason was given"
	}
	return s.Lessons[len(s.Lessons)-1]
}

// because is the lesson of a report: its evaluation and what to do differently.
func because(m WorkflowMessage) string {
	switch {
	case m.Lesson == "":
		return m.Evaluation
	case m.Evaluation == "" || m.Evaluation == m.Lesson:
		return m.Lesson
	}
	return m.Evaluation + "\n" + m.Lesson
}

// tooComplicated has a subjob planned into smaller ones, while its life cycle lasts.
func (b *Board) tooComplicated(s *SubJob, m WorkflowMessage, out *Output, now time.Time) {
	if s.LifeCycle < 1 {
		b.fail(s, "life_cycle exhausted: it is too complicated, and may not be planned into smaller ones any more: "+because(m), now)
		return
	}
	report := &WorkflowMessage{Status: TooComplicated, Artifacts: out.Artifacts, Output: out.Text, Evaluation: b.note(m.Evaluation)}
	if out.Text == "" && out.Stored != nil {
		report.Stored = b.whole(s.ID, out)
	}
	b.Plans = append(b.Plans, &Planning{SubJob: s.ID, Report: report})
	report.Lesson = b.note(m.Lesson) // after the evaluation, which takes room as well
	b.moveSubJob(s, StatusCreated, "too complicated: it is planned into smaller ones")
	b.logSubJob(now, "too_complicated", s, because(m))
}

// output is what the board keeps of an attempt's output; problem says why it cannot be used.
func (b *Board) output(s *SubJob, m WorkflowMessage) (out *Output, problem string) {
	m.Output = valid(m.Output)
	out = &Output{Bytes: len(m.Output), Artifacts: m.Artifacts, Attempt: s.Attempts}
	if problem := artifactsProblem(m.Artifacts); problem != "" {
		return nil, problem
	}
	if m.Stored != nil && m.Output == "" {
		out.Bytes, out.SHA256 = m.Stored.Bytes, m.Stored.SHA256
	} else {
		out.SHA256 = digest(m.Output)
	}
	if out.Bytes > MaxOutput || out.Bytes < 0 {
		return nil, fmt.Sprintf("its output has %d bytes; %d may be: store it, and return a reference to it as an artifact", out.Bytes, MaxOutput)
	}
	if m.Stored != nil {
		if len(m.Stored.RunID) > MaxID || len(out.SHA256) != 2*sha256.Size {
			return nil, "where its output is stored cannot be read"
		}
		out.Stored = &Reference{RunID: m.Stored.RunID}
	}
	return out, b.keep(out, m.Output)
}

// keep puts the text of an output into the job's state when there is room for it, or nowhere else to find it.
func (b *Board) keep(out *Output, whole string) (problem string) {
	if whole == "" && len(out.Artifacts) == 0 {
		return ""
	}
	room := MaxInlineTotal - b.inline() - artifactsSize(out.Artifacts)
	fits := len(whole) <= MaxInline && quoted(whole) <= room
	switch {
	case fits:
		out.Text = whole
	case room < 0 || out.Stored == nil:
		return fmt.Sprintf("its output of %d bytes and its %d artifacts find no room in the job's state", out.Bytes, len(out.Artifacts))
	}
	return ""
}

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
	b.logSubJob(now, "retrying", s, reason)
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
// an attempt under way is asked to end and replaced by another, one that waits after an error begins at once. One that has
// not begun is refused with the code wrong_status, as is one that was replaced.
func (b *Board) Retry(subjob, lesson, by string, now time.Time) error {
	now = stamp(now)
	if err := b.goesOn(); err != nil {
		return err
	}
	s, err := b.named(subjob)
	if err != nil {
		return err
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
	b.staleAfter(now, s)
	b.settle(now)
	return nil
}
