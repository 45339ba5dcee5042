package job

import (
	"context"
	"fmt"
	"strings"
)

// Planner turns a job, or a subjob that is too complicated, into smaller ones. It is called in an activity: it may be
// slow, and may be called again when a worker is lost.
//
// A *[BadPlanError] says that an answer came, and is of no use: it costs one of the job's plan attempts, and the next one
// gets what was wrong. Every other error means that no answer came and costs none; Temporal retries it.
type Planner interface {
	Plan(ctx context.Context, req PlanRequest) (Draft, error)
}

// PlanRequest is what a planner gets.
type PlanRequest struct {
	Job     Job       `json:"job"`
	Experts []Profile `json:"experts"`
	// SubJob is what to plan when it is not the whole job, with the Report of the attempt that found it too complicated
	// and the Inputs that it had.
	SubJob *SubJob          `json:"subjob,omitempty"`
	Report *WorkflowMessage `json:"report,omitempty"`
	Inputs []Input          `json:"inputs,omitempty"`
	// Attempt counts from 1. Lesson is what was wrong with the last one's answer, or what a person wants changed.
	Attempt int    `json:"attempt"`
	Lesson  string `json:"lesson,omitempty"`
	// MaxSubJobs is how many subjobs the plan may have.
	MaxSubJobs int `json:"max_subjobs"`
}

// Draft is a plan as a planner or a person writes it.
type Draft struct {
	SubJobs []DraftSubJob `json:"subjobs"`
	// Usage is what planning has cost.
	Usage Usage `json:"usage,omitzero"`
}

// DraftSubJob is a subjob of a [Draft]. Its id is the planner's own, and means something within the draft only.
type DraftSubJob struct {
	ID                 string   `json:"id"`
	Goal               string   `json:"goal"`
	Context            string   `json:"context,omitempty"`
	CompletionCriteria string   `json:"completion_criteria,omitempty"`
	Dependencies       []string `json:"dependencies,omitempty"`
	Expert             string   `json:"assigned_expert"`
	Thinking           string   `json:"thinking,omitempty"`
	OutputSchema       string   `json:"output_schema,omitempty"`
}

// BadPlanError says why a plan cannot be used, so that whoever made it can make a better one.
type BadPlanError struct {
	// SubJob is the draft's id of the subjob that is wrong, "" for the plan as a whole.
	SubJob  string
	Problem string
	// TooMany is how many subjobs it has when these are more than it may have, 0 otherwise.
	TooMany int `json:",omitempty"`
}

func (e *BadPlanError) Error() string {
	if e.SubJob == "" {
		return "the plan cannot be used: " + e.Problem
	}
	return fmt.Sprintf("the plan cannot be used: subjob %q: %s", e.SubJob, e.Problem)
}

// Decision is what a person says to a plan that waits for approval.
type Decision struct {
	// PlanVersion is the plan that was looked at; another one waits by now is a refusal.
	PlanVersion int `json:"plan_version"`
	// Verdict is "approve", "edit" (Plan takes the place of what was proposed), "replan" (the planner makes another one
	// with Reason as its lesson) or "reject" (the job stops).
	Verdict string `json:"verdict"`
	Plan    *Draft `json:"plan,omitempty"`
	Reason  string `json:"reason,omitempty"`
	By      string `json:"by,omitempty"`
}

const (
	// PlanActivity is the type of the activity that asks a leader's planner: a [PlanCall] gives a [PlanReply].
	PlanActivity = "superstep.plan"
	// EndActivity is the type of the activity that ends an attempt which does not end when it is asked to: an [EndCall] gives
	// nothing. One that has ended stays as it is.
	EndActivity = "superstep.end"
)

// PlanCall asks a leader's planner.
type PlanCall struct {
	Leader  string      `json:"leader"`
	Request PlanRequest `json:"request"`
	// Trace is the job's place in a trace, "" for none.
	Trace string `json:"trace,omitempty"`
}

// PlanReply is a plan, or why what the planner said is none.
type PlanReply struct {
	Draft *Draft        `json:"draft,omitempty"`
	Bad   *BadPlanError `json:"bad,omitempty"`
	Usage Usage         `json:"usage,omitzero"`
}

// EndCall says which run of a thread is to end, and why.
type EndCall struct {
	Thread string `json:"thread"`
	Reason string `json:"reason"`
}

// CheckPlan says as a *[BadPlanError] why a draft cannot be a plan: it has no subjobs or more than max, two share an id, a
// dependency is unknown or leads in a circle, an expert is not there, a text is missing or too long. An expert's name may
// differ in case, spaces and punctuation: the board puts the real one in its place.
func CheckPlan(d Draft, experts []Profile, max int) error {
	switch {
	case len(d.SubJobs) == 0:
		return &BadPlanError{Problem: "it has no subjobs"}
	case len(d.SubJobs) > max:
		return &BadPlanError{Problem: fmt.Sprintf("it has %d subjobs; %d may be", len(d.SubJobs), max), TooMany: len(d.SubJobs)}
	}
	var g Graph
	size := 0
	for i, s := range d.SubJobs {
		if s.ID == "" {
			return &BadPlanError{Problem: fmt.Sprintf("subjob %d has no id", i+1)}
		}
		if !g.Add(s.ID, s.Dependencies) {
			return badSubJob(s, "two subjobs have this id")
		}
		if problem := s.problem(experts); problem != "" {
			return badSubJob(s, problem)
		}
		size += s.size()
	}
	if size > MaxPlanText {
		return &BadPlanError{Problem: fmt.Sprintf("it takes %d bytes; %d may be: make fewer subjobs, or shorter texts", size, MaxPlanText)}
	}
	return checkDependencies(d, &g)
}

func badSubJob(s DraftSubJob, problem string) error {
	return &BadPlanError{SubJob: clip(s.ID, 2*MaxID), Problem: problem}
}

// problem says what is wrong with a subjob for itself, "" when nothing is.
func (s DraftSubJob) problem(experts []Profile) string {
	if problem := tooLong(text{"id", s.ID, MaxID}, text{"goal", s.Goal, MaxGoal}, text{"context", s.Context, MaxContext},
		text{"completion_criteria", s.CompletionCriteria, MaxNote}, text{"thinking", s.Thinking, MaxNote},
		text{"output_schema", s.OutputSchema, MaxNote}); problem != "" {
		return problem
	}
	switch {
	case strings.TrimSpace(s.Goal) == "":
		return "it has no goal"
	case s.Expert == "":
		return "it has no assigned_expert"
	case expertOf(s.Expert, experts) == nil:
		return unknownExpert(s.Expert, experts)
	case len(s.Dependencies) > MaxDependencies:
		return fmt.Sprintf("it depends on %d subjobs; %d may be", len(s.Dependencies), MaxDependencies)
	}
	return ""
}

// size is what a subjob of a draft takes as one of the job's, its ids prefixed.
func (s DraftSubJob) size() int {
	n := idPrefix + s.textSize()
	for _, d := range s.Dependencies {
		n += dependencySize(d)
	}
	return n
}

// dependencySize is what a dependency takes, its draft's id prefixed.
func dependencySize(id string) int { return idPrefix + quoted(id) + 1 }

func checkDependencies(d Draft, g *Graph) error {
	for _, s := range d.SubJobs {
		for _, on := range s.Dependencies {
			switch {
			case on == s.ID:
				return badSubJob(s, "it depends on itself")
			case !g.Has(on):
				return badSubJob(s, fmt.Sprintf("it depends on %q, which is no subjob of the plan", clip(on, 2*MaxID)))
			}
		}
	}
	if cycle := g.Cycle(); cycle != nil {
		return &BadPlanError{Problem: "subjobs depend on each other in a circle: " + clip(strings.Join(append(cycle, cycle[0]), " → "), 1024)}
	}
	return nil
}

// idPrefix is how many bytes a subjob's id has more than its draft's, at most.
const idPrefix = 8
