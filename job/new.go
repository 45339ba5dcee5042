package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// New is the board of a job that begins, with the experts that may be assigned. What is zero in the job's policy gets its
// default. A job that cannot be carried out as it is, e.g. one with texts that are too long or an expert that is not
// there, is a *[RefusedError] with the code bad_job.
func New(j Job, experts []Profile, now time.Time) (*Board, error) {
	now = stamp(now)
	b := &Board{Job: j, Status: StatusCreated}
	for _, p := range experts {
		if slices.ContainsFunc(b.Experts, func(other Profile) bool { return other.Name == p.Name }) {
			return nil, b.refuse("bad_job", fmt.Sprintf("two experts are called %q", p.Name), "")
		}
		if err := b.putExpert(p); err != nil {
			return nil, b.refuse("bad_job", err.Problem, err.Do)
		}
	}
	if problem := b.setUp(); problem != "" {
		return nil, b.refuse("bad_job", problem, "")
	}
	b.log(now, Event{Kind: "submitted", Text: j.Goal})
	if b.Job.Expert == "" {
		b.Plans = []*Planning{{}}
		return b, nil
	}
	// A preset expert does the whole job: there is nothing to plan.
	whole := DraftSubJob{ID: "job", Goal: j.Goal, Context: j.Context, Expert: b.Job.Expert}
	b.PlanVersion++
	b.plant(Draft{SubJobs: []DraftSubJob{whole}}, now)
	return b, nil
}

// stamp is a time as the board keeps it: what JSON gives back is the same.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// setUp checks the job and fills in the defaults of its policy.
func (b *Board) setUp() (problem string) {
	j := &b.Job
	if !validID(j.ID) {
		return fmt.Sprintf("a job's id is 1 to %d letters, digits, %q, %q and %q, not %q", MaxID, ".", "_", "-", clip(j.ID, 2*MaxID))
	}
	if j.Goal == "" {
		return "it has no goal"
	}
	if problem := tooLong(text{"goal", j.Goal, MaxGoal}, text{"context", j.Context, MaxContext}, text{"requester", j.Requester, 256}); problem != "" {
		return problem
	}
	if size := quoted(j.Goal) + quoted(j.Context); size > 2*(MaxGoal+MaxContext) {
		return fmt.Sprintf("its goal and context take %d bytes as JSON; %d may be", size, 2*(MaxGoal+MaxContext))
	}
	if problem := artifactsProblem(j.Artifacts); problem != "" {
		return problem
	}
	if len(b.Experts) == 0 {
		return "it has no experts"
	}
	for _, name := range []*string{&j.Expert, &j.Policy.Synthesis} {
		if *name == "" {
			continue
		}
		p := b.expert(*name)
		if p == nil {
			return unknownExpert(*name, b.Experts)
		}
		*name = p.Name
	}
	if problem := j.Policy.fill(); problem != "" {
		return problem
	}
	return j.Budget.problem()
}

// fill gives every zero field its default, and says which field is out of bounds.
func (p *Policy) fill() (problem string) {
	for _, f := range []struct {
		name                string
		value               *int
		unset, lowest, most int
	}{
		{"max_parallel", &p.MaxParallel, 10, 1, 100},
		{"max_retries", &p.MaxRetries, 3, -1, 100},
		{"max_reopens", &p.MaxReopens, 2, 1, 100},
		{"max_reopens_total", &p.MaxReopensTotal, 10, 1, 1000},
		{"max_plan_attempts", &p.MaxPlanAttempts, 2, 1, 100},
		{"life_cycle", &p.LifeCycle, 3, -1, 20},
	} {
		if *f.value == 0 {
			*f.value = f.unset
		}
		if *f.value < f.lowest || *f.value > f.most {
			return fmt.Sprintf("the policy's %s is %d; it is from %d to %d", f.name, *f.value, f.lowest, f.most)
		}
	}
	if p.RetryWait == 0 {
		p.RetryWait = time.Second
	}
	if p.AttemptTimeout == 0 {
		p.AttemptTimeout = 24 * time.Hour
	}
	if p.RetryWait < 0 || p.AttemptTimeout < 0 {
		return "the policy's retry_wait or attempt_timeout is negative"
	}
	if p.Approve != "" && p.Approve != "first" && p.Approve != "all" {
		return fmt.Sprintf("the policy's approve is %q; it is empty, %q or %q", clip(p.Approve, MaxID), "first", "all")
	}
	return ""
}

// refuse is the answer to what the board cannot do.
func (b *Board) refuse(code, problem, do string) *RefusedError {
	return &RefusedError{Job: clip(b.Job.ID, 2*MaxID), Code: code, Problem: problem, Do: do}
}

// find is a subjob by its id, nil when there is none.
func (b *Board) find(id string) *SubJob {
	if len(b.byID) != len(b.SubJobs) {
		b.byID = make(map[string]*SubJob, len(b.SubJobs))
		for _, s := range b.SubJobs {
			b.byID[s.ID] = s
		}
	}
	return b.byID[id]
}

// named is find of an id that somebody gave.
func (b *Board) named(id string) (*SubJob, error) {
	if s := b.find(id); s != nil {
		return s, nil
	}
	return nil, b.unknown(id)
}

func (b *Board) unknown(id string) error {
	return b.refuse("unknown_subjob", fmt.Sprintf("it has no subjob %q", clip(id, 2*MaxID)), "")
}

// Copy is a board of its own in the same state: what is tried on it changes nothing here.
func (b *Board) Copy() *Board {
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // a board is plain data
	}
	c := new(Board)
	if err := json.Unmarshal(data, c); err != nil {
		panic(err)
	}
	return c
}

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
