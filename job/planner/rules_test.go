package planner

import (
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/job"
)

var penguinRules = Rules{
	Jobs: []Rule{
		{
			Goal: regexp.MustCompile(`^describe the (?P<what>\w+)( in detail)?$`),
			SubJobs: []job.DraftSubJob{
				{ID: "load", Goal: "load the {{.Groups.what}}", Context: "{{.Context}}{{index .Groups `2`}}", Expert: "loader"},
				{ID: "write", Goal: "{{.Goal}}", Context: "for {{.Job.Requester}}", Expert: "writer", Dependencies: []string{"load"}},
			},
		},
		{
			When:    func(req job.PlanRequest) bool { return req.Lesson != "" },
			SubJobs: []job.DraftSubJob{{ID: "1", Goal: "{{.Goal}}, but: {{.Lesson}}", Expert: "{{(index .Experts 0).Name}}"}},
		},
		{
			Goal:    regexp.MustCompile("broken"),
			SubJobs: []job.DraftSubJob{{ID: "1", Goal: "{{.Groups.nothing}}", Expert: "loader"}},
		},
	},
	TooComplicated: []Rule{
		{
			Expert: "writer",
			Plan: func(req job.PlanRequest) ([]job.DraftSubJob, error) {
				if req.Report.Output == "" {
					return nil, &job.BadPlanError{Problem: "nothing to go on"}
				}
				return []job.DraftSubJob{{ID: "rest", Goal: req.SubJob.Goal + " without " + req.Report.Output, Expert: "writer"}}, nil
			},
		},
		{SubJobs: []job.DraftSubJob{{ID: "1", Goal: "{{.Goal}} after {{.Report.Lesson}}", Expert: "{{.SubJob.Expert}}"}}},
	},
}

func TestRules(t *testing.T) {
	plan := func(change func(*job.PlanRequest)) []job.DraftSubJob {
		req := request()
		change(&req)
		draft, err := penguinRules.Plan(t.Context(), req)
		require.NoError(t, err)
		require.Zero(t, draft.Usage)
		again, err := penguinRules.Plan(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, draft, again)
		return draft.SubJobs
	}
	for range 2 { // templates are not changed by being filled
		require.Equal(t, []job.DraftSubJob{
			{ID: "load", Goal: "load the penguins", Context: "use {penguins}.csv in detail", Expert: "loader"},
			{ID: "write", Goal: "describe the penguins in detail", Context: "for rita", Expert: "writer", Dependencies: []string{"load"}},
		}, plan(func(req *job.PlanRequest) { req.Job.Goal += " in detail"; req.Job.Requester = "rita" }))
	}
	require.Equal(t, []job.DraftSubJob{{ID: "1", Goal: "sing, but: louder", Expert: "loader"}},
		plan(func(req *job.PlanRequest) { req.Job.Goal, req.Lesson = "sing", "louder" }))
	require.Equal(t, []job.DraftSubJob{{ID: "rest", Goal: "analyse all species without Adelie is done", Expert: "writer"}},
		plan(func(req *job.PlanRequest) { *req = complicated() }))
	require.Equal(t, []job.DraftSubJob{{ID: "1", Goal: "analyse all species after one species each", Expert: "loader"}},
		plan(func(req *job.PlanRequest) { *req = complicated(); req.SubJob.Expert = "loader" }))
}

func TestRulesThatDoNotPlan(t *testing.T) {
	req := request()
	req.Job.Goal = "sing"
	_, err := penguinRules.Plan(t.Context(), req)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Permanent())
	require.EqualError(t, err, `job j-1: the rules: no rule fits the goal "sing": add one to the planner's Rules`)

	req.Job.Goal = "broken"
	_, err = penguinRules.Plan(t.Context(), req)
	require.ErrorAs(t, err, &e)
	require.True(t, e.Permanent())
	require.ErrorContains(t, err, `subjob "1" of its rule`)
	require.ErrorContains(t, err, `no entry for key "nothing"`)

	req = complicated()
	req.Report.Output = ""
	_, err = penguinRules.Plan(t.Context(), req)
	require.Equal(t, &job.BadPlanError{Problem: "nothing to go on"}, err)

	why := errors.New("no such table")
	_, err = Rules{TooComplicated: []Rule{{Plan: func(job.PlanRequest) ([]job.DraftSubJob, error) { return nil, why }}}}.Plan(t.Context(), req)
	require.ErrorIs(t, err, why)
	require.EqualError(t, err, "job j-1: subjob 2: the rules: no such table")
}
