package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"superstep.dev"
	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/clip"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// Expert does subjobs of one kind for a [Leader]: a graph with a description by which planners choose it. It is read-only
// and safe for concurrent use; several leaders may have the same one.
type Expert struct {
	profile job.Profile
	graph   *superstep.Graph[job.WorkflowMessage]
}

// NewExpert makes an expert of a function. It is called with the [job.Assignment] of one attempt, with the outputs of the
// subjob's predecessors and the lessons of earlier attempts, and says how the attempt ended: with [job.Success] and an
// output, or with another status and a lesson. An error is for what went wrong around the work; it fails the attempt as
// [job.ExecutionError] does, with the error as the lesson.
//
// The function is that of a [superstep.NewEntrypoint]: it runs again from its start after a crash or an answer, and [superstep.Task], [superstep.Go],
// [superstep.Effect], [superstep.Interrupt], [superstep.Approve] and the Invoke of other graphs work in it. Each attempt is a thread of its own, of the
// graph with the expert's name, so everything that shows or answers threads works on it. Its output has at most
// [job.MaxOutput] bytes.
//
// [superstep.Spend] asks the attempt's allowance first: more than it leaves is an *[OverBudgetError], which the function
// returns, and the subjob waits until somebody raises the job's budget. What was noted is the attempt's usage, unless the
// function returns a [job.Usage] itself. An expert that does neither counts as one that cannot tell: what was set aside for
// the attempt is charged. Spend of nothing says that it can.
//
// The name is a graph's name, and unique within a leader. The description says what the expert can do, what it needs, what
// it does not do and what it returns; it has at most [job.MaxNote] bytes. NewExpert panics when Compile would return an
// error.
func NewExpert(name, description string, do func(context.Context, job.Assignment) (job.WorkflowMessage, error), opts ...ExpertOption) Expert {
	var o expertOptions
	for _, opt := range opts {
		opt.applyExpert(&o)
	}
	var work func(context.Context, job.Assignment) (job.WorkflowMessage, error)
	if do != nil {
		work = attemptFunc(do, o.evaluate)
	}
	return Expert{
		profile: job.Profile{Name: name, Description: description, Version: o.version, Graph: name, Timeout: o.timeout},
		graph:   superstep.NewEntrypoint(name, work, o.entrypoint...),
	}
}

// Profile is what planners know of the expert.
func (e Expert) Profile() job.Profile { return e.profile }

// Graph is the graph that an attempt runs: its input is a [job.Assignment], its output the [job.WorkflowMessage]. Tests run
// it without a leader.
func (e Expert) Graph() *superstep.Graph[job.WorkflowMessage] { return e.graph }

// ExpertOption shapes a [NewExpert].
type ExpertOption interface{ applyExpert(*expertOptions) }

type expertOptions struct {
	entrypoint []superstep.EntrypointOption
	evaluate   Evaluator
	version    string
	timeout    time.Duration
}

type expertOption func(*expertOptions)

func (o expertOption) applyExpert(e *expertOptions) { o(e) }

// WithEntrypoint gives the expert's entrypoint options: effects, retries, timeouts, a durability and others.
func WithEntrypoint(opts ...superstep.EntrypointOption) ExpertOption {
	return expertOption(func(o *expertOptions) { o.entrypoint = append(o.entrypoint, opts...) })
}

// Evaluator judges what an expert made of an assignment, and returns what the attempt ends with: usually the message that
// it was given, with another Status, Evaluation and Lesson. A message without an Output keeps the expert's.
type Evaluator func(ctx context.Context, a job.Assignment, made job.WorkflowMessage) (job.WorkflowMessage, error)

// WithEvaluator has every attempt that the expert ends with [job.Success] judged before it counts. The judgement is
// remembered. One that fails is tried twice more, without doing the expert's work again; then the attempt fails with
// [job.ExecutionError].
func WithEvaluator(judge Evaluator) ExpertOption {
	return expertOption(func(o *expertOptions) { o.evaluate = judge })
}

// WithAttemptTimeout bounds the wall clock of each of the expert's attempts, waits for people included; it is stronger than
// the job's [job.Policy]. An attempt out of time is told to end, and counts as [job.ExecutionError].
func WithAttemptTimeout(d time.Duration) ExpertOption {
	return expertOption(func(o *expertOptions) { o.timeout = d })
}

// WithVersion names the version of the expert for those who look at a job.
func WithVersion(version string) ExpertOption {
	return expertOption(func(o *expertOptions) { o.version = version })
}

// problem says why a leader cannot have the expert, "" when it can.
func (e Expert) problem() string {
	switch {
	case e.graph == nil:
		return "an expert is made by NewExpert"
	case strings.TrimSpace(e.profile.Description) == "":
		return fmt.Sprintf("expert %q has no description: planners choose experts by it", e.profile.Name)
	case len(e.profile.Description) > job.MaxNote:
		return fmt.Sprintf("the description of expert %q has %d bytes, the most is %d", e.profile.Name,
			len(e.profile.Description), job.MaxNote)
	case e.profile.Timeout < 0:
		return fmt.Sprintf("the attempt timeout of expert %q is negative", e.profile.Name)
	}
	return ""
}

// attemptFunc is an expert's work on one attempt: its inputs are fetched, what it spends is counted, and what it made is
// judged.
func attemptFunc(do func(context.Context, job.Assignment) (job.WorkflowMessage, error), judge Evaluator) func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
	return func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		a, err := withStored(ctx, a)
		if err != nil {
			return job.WorkflowMessage{}, err
		}
		t, ok := taskrun.TaskFrom(ctx)
		if !ok {
			return job.WorkflowMessage{}, superstep.ErrOutsideNode
		}
		p := purseOf(t, a)
		ctx = taskrun.WithAllowance(ctx, p.take)
		m, err := do(ctx, a)
		if err == nil && judge != nil && m.Status == job.Success {
			m, err = judged(ctx, a, m, judge)
		}
		return p.settle(m, err)
	}
}

// withStored is an assignment with its inputs whole: long ones are stored with the attempts that made them, and read there.
func withStored(ctx context.Context, a job.Assignment) (job.Assignment, error) {
	missing := func(in job.Input) bool { return in.Stored != nil && in.Text == "" }
	if !slices.ContainsFunc(a.Inputs, missing) {
		return a, nil
	}
	outputs := activities.OutputsFrom(ctx)
	if outputs == nil {
		return a, fmt.Errorf("job %s: subjob %s: its inputs are stored on a server, and this is no worker: give them whole: %w",
			a.Job, a.SubJob, thread.ErrBadInput)
	}
	a.Inputs = slices.Clone(a.Inputs)
	if err := outputs.Fill(ctx, a.Inputs); err != nil {
		return a, fmt.Errorf("job %s: subjob %s: %w", a.Job, a.SubJob, err)
	}
	return a, nil
}

const (
	// judgeTask is the [superstep.Task] in which an evaluator is called.
	judgeTask = "superstep.evaluate"
	// judgeTries is how often an evaluator is called for one attempt while it fails.
	judgeTries = 3
)

// judged is what an attempt ends with once its evaluator has said so. An evaluator that fails again and again fails the
// attempt, which says why: the expert's own next attempt cannot know better.
func judged(ctx context.Context, a job.Assignment, made job.WorkflowMessage, judge Evaluator) (job.WorkflowMessage, error) {
	var failed error
	for range judgeTries {
		m, err := superstep.Task(ctx, judgeTask, func(ctx context.Context) (job.WorkflowMessage, error) { return judge(ctx, a, made) })
		switch {
		case err == nil:
			m.Output = cmp.Or(m.Output, made.Output)
			if m.Artifacts == nil {
				m.Artifacts = made.Artifacts
			}
			if m.Usage == (job.Usage{}) {
				m.Usage = made.Usage
			}
			return m, nil
		case givenBack(ctx, err):
			return made, err
		}
		if failed = err; graphadapter.IsPermanent(err) {
			break
		}
	}
	reason := fmt.Sprintf("the evaluator of expert %q failed: %v", a.Expert, failed)
	return job.WorkflowMessage{Status: job.ExecutionError, Output: made.Output, Usage: made.Usage,
		Evaluation: clip.Text(reason, job.MaxNote)}, nil
}

// givenBack reports whether an error is no failure of the call: the task waits, begins again, is over, or its allowance is
// spent.
func givenBack(ctx context.Context, err error) bool {
	var spent *OverBudgetError
	return ctx.Err() != nil || errors.Is(err, superstep.ErrInterrupted) || errors.Is(err, superstep.ErrYielded) ||
		errors.Is(err, graphadapter.ErrFenced) || errors.As(err, &spent)
}

// OverBudgetError is the error of [superstep.Spend] in an expert whose attempt may not spend what it is about to: its
// allowance does not have that much left.
type OverBudgetError struct {
	Job, SubJob, Expert string
	// Wanted was to be spent on top of Spent.
	Wanted, Spent job.Usage
	Allowance     job.Budget
}

// Error implements error in one line.
func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("job %s: subjob %s: expert %s may spend %s in this attempt, has spent %s and wants %s more: raise the job's budget",
		e.Job, e.SubJob, e.Expert, amounts(e.Allowance.Tokens, e.Allowance.MicroUSD, e.Allowance.Writes),
		amounts(e.Spent.Tokens, e.Spent.MicroUSD, e.Spent.Writes), amounts(e.Wanted.Tokens, e.Wanted.MicroUSD, e.Wanted.Writes))
}

// Permanent says that no retry within the attempt helps.
func (e *OverBudgetError) Permanent() bool { return true }

func amounts(tokens, microUSD, writes int64) string {
	return fmt.Sprintf("%d tokens, %d.%06d USD, %d writes", tokens, microUSD/1e6, microUSD%1e6, writes)
}

// purse counts what one attempt spends.
type purse struct {
	attempt job.Assignment

	mu    sync.Mutex
	spent job.Usage
	told  bool // the expert has said what it spends
	// refused is the last amount that was too much, which the error of a nested graph's node does not carry.
	refused *OverBudgetError
}

// purseOf is the purse of an attempt as earlier executions of its task have left it.
func purseOf(t *taskrun.TaskRun, a job.Assignment) *purse {
	p := &purse{attempt: a}
	spent, told := taskrun.Noted(t.Journal().Entries())
	p.told, p.spent = told, usageOf(spent)
	return p
}

func usageOf(s taskrun.Spending) job.Usage {
	return job.Usage{Tokens: s.Tokens, MicroUSD: s.MicroUSD, Writes: s.Writes}
}

func added(a, b job.Usage) job.Usage {
	return job.Usage{Tokens: a.Tokens + b.Tokens, MicroUSD: a.MicroUSD + b.MicroUSD, Writes: a.Writes + b.Writes,
		Unknown: a.Unknown || b.Unknown}
}

// take counts what is spent, unless the allowance has no room for it.
func (p *purse) take(s taskrun.Spending) error {
	u := usageOf(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	after, may := added(p.spent, u), p.attempt.Allowance
	over := func(spent, most int64) bool { return most > 0 && spent > most }
	if over(after.Tokens, may.Tokens) || over(after.MicroUSD, may.MicroUSD) || over(after.Writes, may.Writes) {
		p.refused = &OverBudgetError{Job: p.attempt.Job, SubJob: p.attempt.SubJob, Expert: p.attempt.Expert,
			Wanted: u, Spent: p.spent, Allowance: may}
		return p.refused
	}
	p.told, p.spent = true, after
	return nil
}

// settle is what an attempt ends with, its usage filled in. One whose allowance is spent ends with a message that says so.
func (p *purse) settle(m job.WorkflowMessage, err error) (job.WorkflowMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && p.refused != nil:
		return job.WorkflowMessage{Status: job.ExecutionError, OverBudget: true, Usage: p.spent,
			Evaluation: clip.Text(p.refused.Error(), job.MaxNote)}, nil
	case err != nil:
		return m, err
	case m.Usage != (job.Usage{}):
	case p.told:
		m.Usage = p.spent
	default:
		m.Usage.Unknown = true
	}
	if len(m.Output) > job.MaxOutput {
		return job.WorkflowMessage{Status: job.ExecutionError, Usage: m.Usage,
			Lesson:     "Return a shorter output, or keep it elsewhere and return an artifact that refers to it.",
			Evaluation: fmt.Sprintf("the output has %d bytes, the most is %d", len(m.Output), job.MaxOutput)}, nil
	}
	return m, nil
}
