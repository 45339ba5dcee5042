package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"superstep.dev"
	"superstep.dev/internal/clip"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// maxLeaderName bounds a leader's name, in bytes, so that the ids of its jobs have room for more.
const maxLeaderName = 40

// Leader carries out jobs: its planner divides a [job.Job] into subjobs, its experts do them, in parallel where they do not
// depend on each other, and it sees to what follows from how each attempt ends. It is read-only and safe for concurrent
// use. A worker serves it ([superstep.WorkerConfig]), a [superstep.Client] submits jobs to it and steers them, and [Leader.Invoke] carries one
// out in this process, for tests.
type Leader struct {
	name    string
	planner job.Planner
	experts []Expert
}

// New makes a leader of a planner and at least one expert. Its name has at most 40 bytes of letters, digits, "_" and
// "-". The experts' names differ. Errors: all that is wrong, joined; each is [thread.ErrBadInput].
func New(name string, p job.Planner, experts ...Expert) (*Leader, error) {
	var problems []error
	refuse := func(format string, args ...any) {
		problems = append(problems, &thread.Error{Kind: thread.ErrBadInput, Graph: name, Message: fmt.Sprintf("leader %q: ", name) + fmt.Sprintf(format, args...)})
	}
	if problem := leaderNameProblem(name); problem != "" {
		refuse("%s", problem)
	}
	if p == nil {
		refuse("it has no planner: give it one, such as planner.Rules")
	}
	if len(experts) == 0 {
		refuse("it has no expert: nobody could do its jobs")
	}
	seen := map[string]bool{}
	for _, e := range experts {
		if problem := e.problem(); problem != "" {
			refuse("%s", problem)
		}
		if seen[e.profile.Name] {
			refuse("the expert %q is there twice", e.profile.Name)
		}
		seen[e.profile.Name] = true
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &Leader{name: name, planner: p, experts: slices.Clone(experts)}, nil
}

// Name returns the leader's name.
func (l *Leader) Name() string { return l.name }

// Planner returns the leader's planner.
func (l *Leader) Planner() job.Planner { return l.planner }

// Graphs returns the graphs of the leader's experts.
func (l *Leader) Graphs() []superstep.Runnable {
	out := make([]superstep.Runnable, len(l.experts))
	for i, e := range l.experts {
		out[i] = e.graph
	}
	return out
}

// Experts returns what planners know of the leader's experts.
func (l *Leader) Experts() []job.Profile {
	out := make([]job.Profile, len(l.experts))
	for i, e := range l.experts {
		out[i] = e.profile
	}
	return out
}

// expert returns the expert of that name.
func (l *Leader) expert(name string) (Expert, bool) {
	i := slices.IndexFunc(l.experts, func(e Expert) bool { return e.profile.Name == name })
	if i < 0 {
		return Expert{}, false
	}
	return l.experts[i], true
}

func leaderNameProblem(name string) string {
	if name == "" || len(name) > maxLeaderName {
		return fmt.Sprintf("its name has %d bytes, not 1 to %d", len(name), maxLeaderName)
	}
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if digit := r >= '0' && r <= '9'; !letter && !digit && r != '_' && r != '-' {
			return fmt.Sprintf("its name has %q: letters, digits, \"_\" and \"-\" are allowed", r)
		}
	}
	return ""
}

// begin begins and ends what the board wants begun and ended.
func (r *jobRunner) begin(ctx context.Context, w job.Work) {
	for _, a := range w.Cancel {
		if cancel, ok := r.attempts[a]; ok {
			cancel()
		}
	}
	if w.CancelPlan && r.stopPlan != nil {
		r.stopPlan()
	}
	if w.Plan != nil {
		r.plan(ctx, *w.Plan)
	}
	for _, a := range w.Run {
		r.attempt(ctx, a)
	}
}

// plan calls the planner.
func (r *jobRunner) plan(ctx context.Context, req job.PlanRequest) {
	ctx, r.stopPlan = context.WithCancel(ctx)
	go func() {
		draft, err := r.leader.planner.Plan(ctx, req)
		r.happened <- func(now time.Time) {
			r.stopPlan()
			r.stopPlan = nil
			r.board.Planned(draft, err, now)
		}
	}()
}

// attempt has an expert make an attempt, on a thread of its own.
func (r *jobRunner) attempt(ctx context.Context, a job.Assignment) {
	id := job.Attempt{SubJob: a.SubJob, Attempt: a.Attempt}
	ctx, r.attempts[id] = context.WithCancel(ctx)
	e, ok := r.leader.expert(a.Expert)
	limit := cmp.Or(e.profile.Timeout, r.board.Job.Policy.AttemptTimeout)
	go func() {
		m, fatal := job.WorkflowMessage{Status: job.ExecutionError, Evaluation: fmt.Sprintf("the leader has no expert %q", a.Expert)}, error(nil)
		if ok {
			m, fatal = r.work(ctx, e, a, limit)
		}
		r.happened <- func(now time.Time) {
			r.attempts[id]()
			delete(r.attempts, id)
			if fatal != nil {
				r.stop(fatal)
			}
			r.board.Reported(id, m, now)
		}
	}()
}

// work runs the expert's graph to its end, or for as long as it may take. An error ends the whole job.
func (r *jobRunner) work(ctx context.Context, e Expert, a job.Assignment, limit time.Duration) (job.WorkflowMessage, error) {
	th := e.graph.Thread(r.memory, a.Thread())
	bounded, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out: it had not ended after %v", limit))
	defer cancel()
	result, err := th.Invoke(bounded, a)
	for err == nil && !result.Status.Failed() && result.Status != thread.StatusFinished {
		result, err = r.reply(bounded, th, a, result)
	}
	switch {
	case err == nil:
		return result.Output, nil
	case bounded.Err() == nil:
		if !errors.Is(err, errUnanswered) {
			return failedAttempt(err), nil
		}
		return failedAttempt(err), err
	case ctx.Err() == nil:
		err = context.Cause(bounded)
	}
	// Its run goes on when nobody waits for it any more.
	if ended := th.Cancel(context.WithoutCancel(ctx), "the attempt is to end"); ended != nil {
		err = ended
	}
	return failedAttempt(err), nil
}

// errUnanswered says that an expert waits for what nobody gives it.
var errUnanswered = errors.New("nobody answers it")

// reply answers an expert that asks, and waits on.
func (r *jobRunner) reply(ctx context.Context, thread *superstep.Thread[job.WorkflowMessage], a job.Assignment, at superstep.Result[job.WorkflowMessage]) (superstep.Result[job.WorkflowMessage], error) {
	who := fmt.Sprintf("expert %q, at subjob %q", a.Expert, a.SubJob)
	if len(at.Questions) == 0 {
		return at, fmt.Errorf("%s, is %s, and %w", who, at.Status, errUnanswered)
	}
	byID := map[string]any{}
	for _, q := range at.Questions {
		if r.answer == nil {
			return at, fmt.Errorf("%s, asks %q, and %w: answer with leader.WithExpertAnswers", who, q.Text(), errUnanswered)
		}
		v, err := r.answer(ctx, a, q)
		if err != nil {
			return at, fmt.Errorf("%s, asks %q: %w: %w", who, q.Text(), errUnanswered, err)
		}
		byID[q.ID] = v
	}
	return thread.ResumeByID(ctx, byID)
}

// failedAttempt is what an attempt ends with whose run failed.
func failedAttempt(err error) job.WorkflowMessage {
	why := clip.Text(err.Error(), job.MaxNote)
	return job.WorkflowMessage{Status: job.ExecutionError, Evaluation: why, Lesson: why, Usage: job.Usage{Unknown: true}}
}
