package superstep

import (
	"errors"
	"fmt"
	"slices"

	"superstep.dev/job"
)

// maxLeaderName bounds a leader's name, in bytes, so that the ids of its jobs have room for more.
const maxLeaderName = 40

// Leader carries out jobs: its planner divides a [job.Job] into subjobs, its experts do them, in parallel where they do not
// depend on each other, and it sees to what follows from how each attempt ends. It is read-only and safe for concurrent
// use. A worker serves it ([WorkerConfig]), a [Client] submits jobs to it and steers them, and [Leader.Invoke] carries one
// out in this process, for tests.
type Leader struct {
	name    string
	planner job.Planner
	experts []Expert
}

// NewLeader makes a leader of a planner and at least one expert. Its name has at most 40 bytes of letters, digits, "_" and
// "-". The experts' names differ. Errors: all that is wrong, joined; each is [ErrBadInput].
func NewLeader(name string, p job.Planner, experts ...Expert) (*Leader, error) {
	var problems []error
	refuse := func(format string, args ...any) {
		problems = append(problems, &Error{Kind: ErrBadInput, Graph: name, Message: fmt.Sprintf("leader %q: ", name) + fmt.Sprintf(format, args...)})
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
