package job

import (
	"fmt"
	"strings"
)

// CheckPlan says as a *[BadPlanError] why a draft cannot be a plan: it has no subjobs or more than max, two share an id, a
// dependency is unknown or leads in a circle, an expert is not there, a text is missing or too long. An expert's name may
// differ in case, spaces and punctuation: the board puts the real one in its place.
func CheckPlan(d Draft, experts []Profile, max int) error {
	switch {
	case len(d.SubJobs) == 0:
		return &BadPlanError{Problem: "it has no subjobs"}
	case len(d.SubJobs) > max:
		return &BadPlanError{Problem: fmt.Sprintf("it has %d subjobs; %d may be", len(d.SubJobs), max)}
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
	n := ownSize + idPrefix + kept("id", s.ID) + kept("goal", s.Goal) + kept("context", s.Context) +
		kept("completion_criteria", s.CompletionCriteria) + kept("thinking", s.Thinking) + kept("output_schema", s.OutputSchema)
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
