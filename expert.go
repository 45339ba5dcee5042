package superstep

import (
	"context"
	"fmt"
	"strings"
	"time"

	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/job"
)

// Expert does subjobs of one kind for a [Leader]: a graph with a description by which planners choose it. It is read-only
// and safe for concurrent use; several leaders may have the same one.
type Expert struct {
	profile job.Profile
	graph   *Graph[job.WorkflowMessage]
}

// NewExpert makes an expert of a function. It is called with the [job.Assignment] of one attempt, with the outputs of the
// subjob's predecessors and the lessons of earlier attempts, and says how the attempt ended: with [job.Success] and an
// output, or with another status and a lesson. An error is for what went wrong around the work; it fails the attempt as
// [job.ExecutionError] does, with the error as the lesson.
//
// The function is that of a [NewEntrypoint]: it runs again from its start after a crash or an answer, and [Task], [Go],
// [Effect], [Interrupt], [Approve] and the Invoke of other graphs work in it. Each attempt is a thread of its own, of the
// graph with the expert's name, so everything that shows or answers threads works on it. Its output has at most
// [job.MaxOutput] bytes.
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
		graph:   NewEntrypoint(name, work, o.entrypoint...),
	}
}

// Profile is what planners know of the expert.
func (e Expert) Profile() job.Profile { return e.profile }

// Graph is the graph that an attempt runs: its input is a [job.Assignment], its output the [job.WorkflowMessage]. Tests run
// it without a leader.
func (e Expert) Graph() *Graph[job.WorkflowMessage] { return e.graph }

// ExpertOption shapes a [NewExpert]: every [EntrypointOption], [WithEvaluator], [WithAttemptTimeout] and [WithVersion].
type ExpertOption interface{ applyExpert(*expertOptions) }

type expertOptions struct {
	entrypoint []EntrypointOption
	evaluate   Evaluator
	version    string
	timeout    time.Duration
}

type expertOption func(*expertOptions)

func (o expertOption) applyExpert(e *expertOptions) { o(e) }

func (o nodeOption) applyExpert(e *expertOptions)       { e.entrypoint = append(e.entrypoint, o) }
func (o compileOption) applyExpert(e *expertOptions)    { e.entrypoint = append(e.entrypoint, o) }
func (o entrypointOption) applyExpert(e *expertOptions) { e.entrypoint = append(e.entrypoint, o) }
func (o durabilityOption) applyExpert(e *expertOptions) { e.entrypoint = append(e.entrypoint, o) }
func (o fusedOption) applyExpert(e *expertOptions)      { e.entrypoint = append(e.entrypoint, o) }

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
			return job.WorkflowMessage{}, ErrOutsideNode
		}
		p := purseOf(t, a)
		ctx = context.WithValue(ctx, purseKey{}, p)
		m, err := do(ctx, a)
		if err == nil && judge != nil && m.Status == job.Success {
			m, err = judged(ctx, a, m, judge)
		}
		return p.settle(m, err)
	}
}
