package job

import (
	"fmt"
	"slices"
	"time"
)

// Ready says what is to be done now, and notes that it was handed out.
func (b *Board) Ready(now time.Time) Work {
	now = stamp(now)
	var w Work
	if b.Status == StatusCreated {
		b.resume(now)
	}
	if b.Status == StatusRunning {
		b.cancel(&w)
		if b.Ending == "" {
			b.dispatch(&w, now)
		}
		b.settle(now)
	}
	w.Done = b.Status.Final()
	return w
}

// cancel hands out what is to be asked to end.
func (b *Board) cancel(w *Work) {
	for _, s := range b.SubJobs {
		if s.Open && !s.Cancelled && (s.Stale || b.Ending != "") {
			s.Cancelled = true
			w.Cancel = append(w.Cancel, Attempt{SubJob: s.ID, Attempt: s.Attempts})
		}
	}
	if p := b.planning(); p != nil && p.Open && !p.Cancelled && (p.Void || b.Ending != "") {
		p.Cancelled, w.CancelPlan = true, true
	}
}

// dispatch hands out what may begin, while the budget lasts.
func (b *Board) dispatch(w *Work, now time.Time) {
	p := b.purse(now)
	short := b.ask(w, p, now)
	if b.Ending == "" {
		var starved string
		w.Run, starved = b.begin(w, p, now)
		if starved != "" {
			short = starved
		}
		if p.seconds > 0 {
			wakeAt(w, now.Add(time.Duration(p.seconds)*time.Second))
		}
	}
	b.runShort(short, now)
}

// ask hands out a call of the planner; short says what the budget lacks for it.
func (b *Board) ask(w *Work, p purse, now time.Time) (short string) {
	plan := b.planning()
	if plan == nil || plan.Open || plan.Proposed != nil {
		return ""
	}
	if p.spent != "" {
		return p.spent
	}
	may := b.mayPlan(plan)
	if may == 0 && len(b.SubJobs) < MaxSubJobs-1 {
		return "subjobs"
	}
	if may == 0 {
		b.planFailed(plan, fmt.Sprintf("the job has all of the %d subjobs that it may have", MaxSubJobs), now)
		return ""
	}
	if plan.Needs > may {
		return fmt.Sprintf("subjobs: a plan has %d, and %d may be", plan.Needs, may)
	}
	plan.Needs = 0
	plan.Attempt++
	plan.Open = true
	w.Plan = b.planRequest(plan, may)
	b.log(now, Event{Kind: "planning", SubJob: plan.SubJob, Text: reasoned(fmt.Sprintf("attempt %d", plan.Attempt), plan.Lesson)})
	return ""
}

func (b *Board) planRequest(p *Planning, may int) *PlanRequest {
	r := &PlanRequest{
		Job: b.Job, Experts: b.assignable(), Attempt: p.Attempt, Lesson: p.Lesson, MaxSubJobs: may,
	}
	if s := b.find(p.SubJob); s != nil {
		r.Job.Expert = "" // it is preset for the job; this is about a part that was too complicated for one expert
		subjob, report := *s, *p.Report
		r.SubJob, r.Report, r.Inputs = &subjob, &report, b.inputs(s)
	}
	return r
}

// begin hands out the attempts that begin now; short says what the budget lacks for more.
func (b *Board) begin(w *Work, p purse, now time.Time) (run []Assignment, short string) {
	free, waiting := b.waiting(w, now)
	if len(waiting) == 0 || free < 1 {
		return nil, ""
	}
	if p.spent != "" {
		return nil, p.spent
	}
	if p.attempts >= 0 {
		free = min(free, int(min(p.attempts, MaxSubJobs)))
	}
	open := b.open()
	for n := min(free, len(waiting)); n > 0 && len(run) == 0; n /= 2 {
		each, ok := p.share(n)
		if !ok {
			continue
		}
		for _, s := range waiting {
			if len(run) < n && (s.Allowance == Budget{} || each.more(s.Allowance)) {
				run = append(run, b.start(s, each, now))
			}
		}
	}
	// What others have set aside comes back; when there are no others, nothing does.
	if len(run) == 0 && len(waiting) > 0 && open == 0 {
		short = "what the next attempt needs"
	}
	return run, short
}

// waiting are the subjobs that can begin, in the order in which they were planned, and how many may.
func (b *Board) waiting(w *Work, now time.Time) (free int, waiting []*SubJob) {
	free = b.Job.Policy.MaxParallel
	for _, s := range b.SubJobs {
		switch {
		case s.Open:
			free--
		case s.Legacy || s.Status != StatusCreated || b.isPlanned(s) || !b.fed(s):
		case now.Before(s.RetryAt):
			wakeAt(w, s.RetryAt)
		default:
			waiting = append(waiting, s)
		}
	}
	return free, waiting
}

// isPlanned reports whether a subjob is being planned into smaller ones.
func (b *Board) isPlanned(s *SubJob) bool {
	return slices.ContainsFunc(b.Plans, func(p *Planning) bool { return p.SubJob == s.ID && !p.Void })
}

// fed reports whether everything that a subjob depends on has finished.
func (b *Board) fed(s *SubJob) bool {
	return !slices.ContainsFunc(s.Dependencies, func(on string) bool { return b.find(on).Status != StatusFinished })
}

func wakeAt(w *Work, at time.Time) {
	if w.Wake.IsZero() || at.Before(w.Wake) {
		w.Wake = at
	}
}

// start begins an attempt.
func (b *Board) start(s *SubJob, may Budget, now time.Time) Assignment {
	b.moveSubJob(s, StatusRunning, "")
	s.Attempts++
	s.Open, s.Allowance, s.RetryAt = true, may, time.Time{}
	if s.Started.IsZero() {
		s.Started = now
	}
	b.logSubJob(now, "started", s, "")
	return Assignment{
		Job: b.Job.ID, SubJob: s.ID, Attempt: s.Attempts, Expert: s.Expert, Goal: s.Goal, Context: s.Context,
		CompletionCriteria: s.CompletionCriteria, OutputSchema: s.OutputSchema, JobGoal: b.Job.Goal, Inputs: b.inputs(s),
		Artifacts: b.Job.Artifacts, Lessons: slices.Clone(s.Lessons), Allowance: may,
	}
}

// inputs are the outputs of what a subjob depends on, in the order of its dependencies.
func (b *Board) inputs(s *SubJob) []Input {
	inputs := make([]Input, 0, len(s.Dependencies))
	for _, on := range s.Dependencies {
		inputs = append(inputs, b.outputOf(b.find(on)))
	}
	return inputs
}

// outputOf is a finished subjob's output as others read it.
func (b *Board) outputOf(s *SubJob) Input {
	r := s.Result
	in := Input{SubJob: s.ID, Expert: s.Expert, Goal: s.Goal, Text: r.Text, Artifacts: r.Artifacts}
	if r.Stored != nil && in.Text == "" {
		in.Stored = b.whole(s.ID, r)
	}
	return in
}

// whole is the reference to an output. The board keeps of it what does not follow from the rest.
func (b *Board) whole(subjob string, o *Output) *Reference {
	return &Reference{Thread: AttemptThread(b.Job.ID, subjob, o.Attempt), RunID: o.Stored.RunID, Bytes: o.Bytes, SHA256: o.SHA256}
}

// runShort notes whether the budget keeps something from beginning.
func (b *Board) runShort(of string, now time.Time) {
	switch {
	case of == "" && b.Phase == PhaseOverBudget:
		b.Phase, b.Reason = PhaseWorking, ""
	case of != "" && b.Phase != PhaseOverBudget && b.Ending == "":
		b.Phase, b.Reason = PhaseOverBudget, "the job's budget is spent: "+of
		b.log(now, Event{Kind: "over_budget", Text: of})
	}
}
