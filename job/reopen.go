package job

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
)

// complained takes a report that predecessors' outputs are of no use: they do their work again, with the lesson, then the
// subjob does, and all other work that depends on them and has begun is stale. One without predecessors has nobody to blame: its
// report counts as an execution error.
func (b *Board) complained(s *SubJob, m WorkflowMessage, now time.Time) {
	blamed, problem := blamedOf(s, m)
	if problem != "" {
		m.Evaluation = reasoned(problem, m.Evaluation)
		b.retry(s, m, now)
		return
	}
	lesson := because(m)
	if lesson == "" {
		lesson = fmt.Sprintf("subjob %s could not use the output, and gave no reason", s.ID)
	}
	if problem := b.tooOften(s, blamed); problem != "" {
		b.fail(s, problem+": "+lesson, now)
		return
	}
	b.Complaints++
	b.moveSubJob(s, StatusCreated, "waits for better input: "+lesson)
	b.logSubJob(now, "complained", s, lesson)
	var producers []*SubJob
	for _, id := range blamed {
		if s.Reopens == nil {
			s.Reopens = map[string]int{}
		}
		s.Reopens[id]++
		p := b.find(id)
		producers = append(producers, p)
		p.Refused = p.Result.SHA256
		b.again(p, fmt.Sprintf("subjob %s could not use its output", s.ID), now)
		b.learn(p, lesson)
	}
	b.staleAfter(now, producers...)
}

// blamedOf are the direct predecessors that a report blames, in the order of the dependencies.
func blamedOf(s *SubJob, m WorkflowMessage) (blamed []string, problem string) {
	if len(s.Dependencies) == 0 {
		return nil, "it depends on nothing whose output could be wrong"
	}
	if len(m.Blames) == 0 {
		return s.Dependencies, ""
	}
	for _, id := range s.Dependencies {
		if slices.Contains(m.Blames, id) {
			blamed = append(blamed, id)
		}
	}
	if len(blamed) == 0 {
		return nil, "none of the subjobs that it blames is one that it depends on, which are " + clip(strings.Join(s.Dependencies, ", "), 1024)
	}
	return blamed, ""
}

// tooOften says which bound on complaints one more would break.
func (b *Board) tooOften(s *SubJob, blamed []string) string {
	if b.Complaints >= b.Job.Policy.MaxReopensTotal {
		return fmt.Sprintf("predecessors were sent back to work as often as the job allows (%d), and their output is still of no use", b.Complaints)
	}
	for _, id := range blamed {
		if n := s.Reopens[id]; n >= b.Job.Policy.MaxReopens {
			return fmt.Sprintf("%s was sent back to work as often as the job allows (%d), and its output is still of no use", id, n)
		}
	}
	more := len(blamed) * (2*sha256.Size + 32) // each is counted, and its output's digest kept
	for _, id := range blamed {
		more += quoted(id)
	}
	if b.blame()+more > maxBlame {
		return "the job has had more such reports than it can count"
	}
	return ""
}

// again has a subjob done again. An attempt under way is stale: it is asked to end first.
func (b *Board) again(s *SubJob, why string, now time.Time) {
	b.stopPlanning(s)
	switch s.Status {
	case StatusRunning:
		s.Stale = true
	case StatusFinished, StatusFailed, StatusStopped:
		b.moveSubJob(s, StatusCreated, why)
	}
	s.Result, s.Failures, s.RetryAt = nil, 0, time.Time{}
	b.logSubJob(now, "reopened", s, why)
}

// staleAfter has everything done again that depends on some subjobs and has begun, these themselves left out.
func (b *Board) staleAfter(now time.Time, of ...*SubJob) {
	ids := make([]string, len(of))
	for i, s := range of {
		ids[i] = s.ID
	}
	for _, id := range b.graph().Descendants(ids...) {
		if !slices.Contains(ids, id) {
			b.stale(b.find(id), now)
		}
	}
}

func (b *Board) stale(s *SubJob, now time.Time) {
	planned := b.stopPlanning(s)
	switch {
	case s.Open && !s.Stale:
		s.Stale = true
	case s.Status == StatusFinished:
		b.moveSubJob(s, StatusCreated, "what it depends on is done again")
		s.Result = nil
	case !planned:
		return
	}
	b.logSubJob(now, "stale", s, "what it depends on is done again")
}

// stopPlanning ends that a subjob is planned into smaller ones: its inputs are other ones soon, and it may not be too
// complicated with them.
func (b *Board) stopPlanning(s *SubJob) (planned bool) {
	b.Plans = slices.DeleteFunc(b.Plans, func(p *Planning) bool {
		if p.SubJob != s.ID {
			return false
		}
		planned = true
		p.Void = p.Open
		return !p.Open
	})
	return planned
}

// Recover goes on with a job that was stopped, or has failed: what had not finished is done, and what r names is done
// again with everything that depends on it. Retries and complaints are counted anew. A board in any other status refuses it with
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

// recovered goes on with the job; learned says that somebody got the lesson.
func (b *Board) recovered(r Recover, now time.Time) (learned bool) {
	learners := b.learners(r)
	b.resume(now)
	b.Complaints = 0
	b.log(now, Event{Kind: "recovered", Text: byWhom("", r.By)})
	for _, s := range b.SubJobs {
		if s.Legacy {
			continue
		}
		s.Failures, s.Reopens, s.Allowance, s.RetryAt = 0, nil, Budget{}, time.Time{}
		if s.Status == StatusFailed || s.Status == StatusStopped {
			b.moveSubJob(s, StatusCreated, "")
		}
	}
	for _, p := range b.Plans { // the planner may make do with fewer subjobs now
		p.Needs = 0
	}
	if p := b.planning(); p != nil && p.Proposed == nil && r.Lesson != "" {
		p.Lesson = ""
		p.Lesson = b.note(r.Lesson)
		learned = p.Lesson != ""
	}
	for _, id := range r.Again {
		if s := b.find(id); s.Status == StatusFinished {
			b.again(s, byWhom("to be done again", r.By), now)
			b.staleAfter(now, s)
		}
	}
	for _, s := range learners {
		learned = b.learn(s, r.Lesson) || learned
	}
	b.settle(now)
	return learned
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
		if s, err := b.named(id); err != nil || s.Legacy {
			return b.unknown(id)
		}
	}
	return nil
}
