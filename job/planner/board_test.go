package planner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/job"
)

// carryOut does what a worker does for a board whose job is to be planned: it calls the planner as often as the board asks.
func carryOut(t *testing.T, p job.Planner, b *job.Board, now time.Time) job.Work {
	for {
		w := b.Ready(now)
		if w.Plan == nil {
			return w
		}
		draft, err := p.Plan(t.Context(), *w.Plan)
		b.Planned(draft, err, now)
	}
}

// TestOneLesson: an answer that is no plan costs one request more, which says what was wrong.
func TestOneLesson(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct{ first, lesson string }{
		"no JSON":            {"First load, then write.", "the plan cannot be used: the answer is no JSON: answer with one JSON object, and nothing else"},
		"unknown expert":     {`{"subjobs": [{"id": "1", "goal": "sing", "assigned_expert": "poet"}]}`, `subjob "1": `},
		"unknown dependency": {`{"subjobs": [{"id": "1", "goal": "sing", "assigned_expert": "writer", "dependencies": ["7"]}]}`, `"7"`},
		"a circle":           {`{"subjobs": [{"id": "1", "goal": "sing", "assigned_expert": "writer", "dependencies": ["1"]}]}`, `subjob "1": `},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, answers(c.first), answers(goodPlan))
			b, err := job.New(request().Job, testExperts, now)
			require.NoError(t, err)
			w := carryOut(t, s.planner(t), b, now)
			require.Len(t, w.Run, 1)
			require.Equal(t, "load", w.Run[0].Goal)
			require.Equal(t, int64(240), b.Spent.Tokens, "both answers count")

			require.Len(t, s.seen().asked, 2)
			message := func(i int) string {
				return s.seen().asked[i]["messages"].([]any)[1].(map[string]any)["content"].(string)
			}
			require.NotContains(t, message(0), "BEGIN correction")
			require.Contains(t, message(1), "BEGIN correction")
			require.Contains(t, message(1), c.lesson)
		})
	}
}

// TestNoSecondLesson: the second bad answer fails the job, with what was wrong with it.
func TestNoSecondLesson(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newStub(t, answers("no"), answers("{no}"))
	b, err := job.New(request().Job, testExperts, now)
	require.NoError(t, err)
	require.True(t, carryOut(t, s.planner(t), b, now).Done)
	require.Len(t, s.seen().asked, 2)
	require.Equal(t, job.StatusFailed, b.Status)
	require.Contains(t, b.Reason, "no plan of 2 could be used: ")
}

// TestRulesPlanAgain: the rules plan a job, and a subjob of it that was too complicated.
func TestRulesPlanAgain(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b, err := job.New(request().Job, testExperts, now)
	require.NoError(t, err)
	w := carryOut(t, penguinRules, b, now)
	require.Equal(t, "load the penguins", w.Run[0].Goal)
	first := job.Attempt{SubJob: w.Run[0].SubJob, Attempt: w.Run[0].Attempt}
	b.Reported(first, job.WorkflowMessage{Status: job.TooComplicated, Lesson: "unpacking"}, now)
	w = carryOut(t, penguinRules, b, now)
	require.Len(t, w.Run, 1)
	require.Equal(t, "load the penguins after unpacking", w.Run[0].Goal)
	require.NotEqual(t, first.SubJob, w.Run[0].SubJob)
}
