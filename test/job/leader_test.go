package job_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// plannedAs is a planner that always gives the same plan.
type plannedAs job.Draft

func (p plannedAs) Plan(context.Context, job.PlanRequest) (job.Draft, error) {
	return job.Draft(p), nil
}

func success(output string) (job.WorkflowMessage, error) {
	return job.WorkflowMessage{Status: job.Success, Output: output}, nil
}

// numbersOf are the numbers in the inputs of an assignment, in their order.
func numbersOf(a job.Assignment) (numbers []int) {
	for _, in := range a.Inputs {
		for _, word := range strings.Fields(in.Text) {
			if n, err := strconv.Atoi(word); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}

func words(numbers []int) string { return strings.Trim(fmt.Sprint(numbers), "[]") }

// TestFiveNodes is the example of Chat2Graph's own test of its leader, with the same answers.
func TestFiveNodes(t *testing.T) {
	each := func(name string, f func(int) int) leader.Expert {
		return leader.NewExpert(name, "Changes each number of its input.", func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			numbers := numbersOf(a)
			for i, n := range numbers {
				numbers[i] = f(n)
			}
			return success(words(numbers))
		})
	}
	generate := leader.NewExpert("generate", "Generates numbers.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
		return success("1 2 3 4 5")
	})
	sum := leader.NewExpert("sum", "Adds the numbers of its input.", func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		total := 0
		for _, n := range numbersOf(a) {
			total += n
		}
		return success(strconv.Itoa(total))
	})
	format := leader.NewExpert("format", "Shows its inputs.", func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		text := "Final Results:"
		for _, in := range a.Inputs {
			text += "\n" + in.Text
		}
		return success(text)
	})
	plan := plannedAs{SubJobs: []job.DraftSubJob{
		{ID: "1", Goal: "generate numbers", Expert: "generate"},
		{ID: "2", Goal: "multiply by 2", Expert: "double", Dependencies: []string{"1"}},
		{ID: "3", Goal: "add 10", Expert: "add10", Dependencies: []string{"1"}},
		{ID: "4", Goal: "sum", Expert: "sum", Dependencies: []string{"3"}},
		{ID: "5", Goal: "format", Expert: "format", Dependencies: []string{"2", "3"}},
	}}
	l := rig.LeaderOf(t, plan, generate, each("double", func(n int) int { return 2 * n }), each("add10", func(n int) int { return n + 10 }), sum, format)

	answer, err := l.Invoke(t.Context(), job.Job{Goal: "five nodes"})
	require.NoError(t, err)
	require.Equal(t, "65\nFinal Results:\n2 4 6 8 10\n11 12 13 14 15", answer.Text)
	require.Equal(t, []string{"p1-4", "p1-5"}, answer.View.Tails)
	require.Equal(t, job.StatusFinished, answer.View.Status)
}

// TestLeaderRetriesWithLessons: each attempt is told what went wrong before, and no successor runs before the last one.
func TestLeaderRetriesWithLessons(t *testing.T) {
	var mu sync.Mutex
	var told [][]string
	shaky := leader.NewExpert("shaky", "Works at the third time.", func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, a.Lessons)
		switch a.Attempt {
		case 1:
			return job.WorkflowMessage{Status: job.ExecutionError, Lesson: "look twice"}, nil
		case 2:
			return job.WorkflowMessage{}, errors.New("the disk is full")
		}
		return success("done")
	})
	l := rig.LeaderOf(t, plannedAs{SubJobs: []job.DraftSubJob{{ID: "a", Goal: "try", Expert: "shaky"}}}, shaky)
	answer, err := l.Invoke(t.Context(), job.Job{ID: "j", Goal: "try", Policy: job.Policy{RetryWait: time.Millisecond}})
	require.NoError(t, err)
	require.Equal(t, "done", answer.Text)
	require.Len(t, told, 3)
	require.Equal(t, []string{"look twice"}, told[1])
	require.Len(t, told[2], 2)
	require.Contains(t, told[2][1], "the disk is full")
	require.Equal(t, 3, answer.View.SubJobs[0].Attempts)
}

// TestLeaderFails: what failed for good is the job's error, and nothing ran on it.
func TestLeaderFails(t *testing.T) {
	ran := false
	bad := leader.NewExpert("bad", "Fails.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
		return job.WorkflowMessage{Status: job.ExecutionError, Evaluation: "the table is empty"}, nil
	})
	next := leader.NewExpert("next", "Runs behind it.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
		ran = true
		return success("")
	})
	plan := plannedAs{SubJobs: []job.DraftSubJob{{ID: "a", Goal: "fail", Expert: "bad"}, {ID: "b", Goal: "use it", Expert: "next", Dependencies: []string{"a"}}}}
	_, err := rig.LeaderOf(t, plan, bad, next).Invoke(t.Context(), job.Job{ID: "j", Goal: "g", Policy: job.Policy{MaxRetries: -1}})
	var failed *thread.JobError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, job.StatusFailed, failed.View.Status)
	require.ErrorContains(t, err, "the table is empty")
	require.False(t, ran)
}

// TestLeaderAsks: an expert's question needs somebody who answers it.
func TestLeaderAsks(t *testing.T) {
	asks := leader.NewExpert("asks", "Asks for a name.", func(ctx context.Context, _ job.Assignment) (job.WorkflowMessage, error) {
		name, err := superstep.Interrupt[string](ctx, "Who reads it?")
		if err != nil {
			return job.WorkflowMessage{}, err
		}
		return success("for " + name)
	})
	l := rig.LeaderOf(t, plannedAs{SubJobs: []job.DraftSubJob{{ID: "a", Goal: "ask", Expert: "asks"}}}, asks)
	_, err := l.Invoke(t.Context(), job.Job{ID: "j", Goal: "g"})
	require.ErrorContains(t, err, `expert "asks", at subjob "p1-a", asks "Who reads it?", and nobody answers it: answer with leader.WithExpertAnswers`)

	answer, err := l.Invoke(t.Context(), job.Job{ID: "j", Goal: "g"}, leader.WithExpertAnswers(
		func(_ context.Context, a job.Assignment, q thread.Question) (any, error) { return "ann", nil }))
	require.NoError(t, err)
	require.Equal(t, "for ann", answer.Text)
}

// TestLeaderAsksForItsPlan: nothing of a plan runs before it is decided on.
func TestLeaderAsksForItsPlan(t *testing.T) {
	var ran []string
	work := leader.NewExpert("work", "Works.", func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		ran = append(ran, a.Goal)
		return success(a.Goal)
	})
	l := rig.LeaderOf(t, plannedAs{SubJobs: []job.DraftSubJob{{ID: "a", Goal: "planned", Expert: "work"}}}, work)
	asked := job.Job{ID: "j", Goal: "g", Policy: job.Policy{Approve: "first"}}
	_, err := l.Invoke(t.Context(), asked)
	require.ErrorContains(t, err, "WithPlanDecisions")
	require.Empty(t, ran)

	decide := func(d job.Decision) leader.Option {
		return leader.WithPlanDecisions(func(_ context.Context, v job.View) (job.Decision, error) {
			require.Len(t, v.Proposed.SubJobs, 1)
			d.PlanVersion = v.PlanVersion
			return d, nil
		})
	}
	answer, err := l.Invoke(t.Context(), asked, decide(job.Decision{Verdict: "edit",
		Plan: &job.Draft{SubJobs: []job.DraftSubJob{{ID: "x", Goal: "edited", Expert: "work"}}}}))
	require.NoError(t, err)
	require.Equal(t, "edited", answer.Text)

	_, err = l.Invoke(t.Context(), asked, decide(job.Decision{Verdict: "reject", Reason: "too dear"}))
	var stopped *thread.JobError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, job.StatusStopped, stopped.View.Status)
	require.Equal(t, []string{"edited"}, ran)
}

// TestLeaderIsTold: the end of the caller's context stops the job and its attempts.
func TestLeaderIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	slow := leader.NewExpert("slow", "Waits.", func(ctx context.Context, _ job.Assignment) (job.WorkflowMessage, error) {
		cancel()
		<-ctx.Done()
		close(ended)
		return job.WorkflowMessage{}, ctx.Err()
	})
	_, err := rig.LeaderOf(t, plannedAs{SubJobs: []job.DraftSubJob{{ID: "a", Goal: "wait", Expert: "slow"}}}, slow).Invoke(ctx, job.Job{ID: "j", Goal: "g"})
	require.ErrorIs(t, err, context.Canceled)
	<-ended
}

// TestSpend: what would be more than the allowance is not spent, and is remembered otherwise.
func TestSpend(t *testing.T) {
	model := func(want int64) leader.Expert {
		return leader.NewExpert("model", "Asks a model.", func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			_, err := superstep.Task(ctx, "ask", func(ctx context.Context) (string, error) {
				return "", superstep.Spend(ctx, superstep.Usage{Tokens: want})
			})
			if err != nil {
				return job.WorkflowMessage{}, err
			}
			if _, err := superstep.Interrupt[bool](ctx, "go on?"); err != nil { // it runs again from its start
				return job.WorkflowMessage{}, err
			}
			return success("ok")
		})
	}
	yes := leader.WithExpertAnswers(func(context.Context, job.Assignment, thread.Question) (any, error) { return true, nil })
	plan := plannedAs{SubJobs: []job.DraftSubJob{{ID: "a", Goal: "ask", Expert: "model"}}}
	j := job.Job{ID: "j", Goal: "g", Budget: job.Budget{Tokens: 100}}

	answer, err := rig.LeaderOf(t, plan, model(60)).Invoke(t.Context(), j, yes)
	require.NoError(t, err)
	require.Equal(t, job.Usage{Tokens: 60}, answer.View.Spent)

	_, err = rig.LeaderOf(t, plan, model(101)).Invoke(t.Context(), j, yes)
	var spent *thread.JobError
	require.ErrorAs(t, err, &spent)
	require.ErrorContains(t, err, "its budget is spent")
	require.Zero(t, spent.View.Spent.Tokens)

	require.ErrorIs(t, superstep.Spend(t.Context(), superstep.Usage{}), superstep.ErrOutsideNode)
}

// TestB20EvaluatorIsAskedAgain: a judgement that cannot be had does not do the expert's work again.
func TestB20EvaluatorIsAskedAgain(t *testing.T) {
	var works, judges int
	judged := leader.NewExpert("judged", "Works.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
		works++
		return success("made")
	}, leader.WithEvaluator(func(_ context.Context, a job.Assignment, made job.WorkflowMessage) (job.WorkflowMessage, error) {
		if judges++; judges < 3 {
			return made, errors.New("no verdict in the reply")
		}
		return job.WorkflowMessage{Status: job.Success, Evaluation: "fine"}, nil
	}))
	l := rig.LeaderOf(t, plannedAs{SubJobs: []job.DraftSubJob{{ID: "a", Goal: "work", Expert: "judged"}}}, judged)
	answer, err := l.Invoke(t.Context(), job.Job{ID: "j", Goal: "g"})
	require.NoError(t, err)
	require.Equal(t, "made", answer.Text)
	require.Equal(t, []int{1, 3}, []int{works, judges})
}

// TestLeaderPlansAgain: what is too complicated is planned into smaller subjobs.
func TestLeaderPlansAgain(t *testing.T) {
	work := leader.NewExpert("work", "Works.", func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		if a.Goal == "all" {
			return job.WorkflowMessage{Status: job.TooComplicated, Lesson: "one at a time"}, nil
		}
		return success(a.Goal)
	})
	p := rig.Planner(func(_ context.Context, req job.PlanRequest) (job.Draft, error) {
		if req.SubJob == nil {
			return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: "all", Expert: "work"}}}, nil
		}
		require.Equal(t, "one at a time", req.Report.Lesson)
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: "left", Expert: "work"}, {ID: "2", Goal: "right", Expert: "work"}}}, nil
	})
	answer, err := rig.LeaderOf(t, p, work).Invoke(t.Context(), job.Job{ID: "j", Goal: "g"})
	require.NoError(t, err)
	require.Equal(t, "left\nright", answer.Text)
	require.True(t, slices.ContainsFunc(answer.View.SubJobs, func(s job.SubJob) bool { return s.Legacy }))
}

func TestNewLeaderRefuses(t *testing.T) {
	fine := leader.NewExpert("fine", "Works.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) { return success("") })
	silent := leader.NewExpert("silent", " ", func(context.Context, job.Assignment) (job.WorkflowMessage, error) { return success("") })
	_, err := leader.New("a leader", nil, fine, fine, silent, leader.Expert{})
	require.ErrorIs(t, err, thread.ErrBadInput)
	for _, problem := range []string{`its name has ' '`, "it has no planner", `the expert "fine" is there twice`, `expert "silent" has no description`,
		"an expert is made by NewExpert"} {
		require.ErrorContains(t, err, problem)
	}
	_, err = leader.New("lead", plannedAs{})
	require.ErrorContains(t, err, "it has no expert")
	l := rig.LeaderOf(t, plannedAs{}, fine)
	_, err = l.Invoke(t.Context(), job.Job{Goal: "g", Expert: "nobody"})
	require.ErrorIs(t, err, thread.ErrBadInput)
	require.ErrorContains(t, err, "nobody")
	_, err = l.Invoke(t.Context(), job.Job{})
	require.ErrorContains(t, err, "it has no goal")
}

// TestInvokeFails: the cause of the context's end fails the job and the subjob that it names.
func TestInvokeFails(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	work := leader.NewExpert("work", "Waits.", func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		end(&leader.Failure{SubJob: "p1-1", Reason: "nobody needs it"})
		<-ctx.Done()
		return success("too late")
	})
	lead := rig.LeaderOf(t, rig.Planner(func(context.Context, job.PlanRequest) (job.Draft, error) {
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: "go", Expert: "work"}}}, nil
	}), work)
	answer, err := lead.Invoke(ctx, job.Job{Goal: "go"})
	var failed *thread.JobError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, job.StatusFailed, failed.View.Status)
	require.Equal(t, job.StatusFailed, answer.View.SubJobs[0].Status)
	require.Contains(t, failed.View.Reason, "nobody needs it")
}
