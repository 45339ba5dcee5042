package workflows_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// numbers are the experts of the five-node example: each makes a line of numbers out of those that it is given.
func numbers() map[string]expertFunc {
	each := func(a job.Assignment, do func(int) int) string {
		var out []string
		for _, word := range strings.Fields(a.Inputs[0].Text) {
			n, _ := strconv.Atoi(word)
			out = append(out, strconv.Itoa(do(n)))
		}
		return strings.Join(out, " ")
	}
	return map[string]expertFunc{"numbers": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		switch {
		case strings.HasSuffix(a.SubJob, "-generate"):
			return success("1 2 3 4 5")
		case strings.HasSuffix(a.SubJob, "-double"):
			return success(each(a, func(n int) int { return 2 * n }))
		case strings.HasSuffix(a.SubJob, "-shift"):
			return success(each(a, func(n int) int { return n + 10 }))
		case strings.HasSuffix(a.SubJob, "-sum"):
			sum := 0
			each(a, func(n int) int { sum += n; return n })
			return success(strconv.Itoa(sum))
		}
		text := "Results:"
		for _, in := range a.Inputs {
			text += "\n" + in.Text
		}
		return success(text)
	}}
}

var fiveNodes = []string{"generate numbers", "double numbers generate", "shift numbers generate", "sum numbers shift", "report numbers double shift"}

// TestTheFiveNodeExample is Chat2Graph's own: two tails, whose outputs need those of all before them.
func TestTheFiveNodeExample(t *testing.T) {
	t.Parallel()
	c := newCrew(t, planOf(fiveNodes...), numbers())
	c.lead()
	b := c.ends(c.begin(protocol.LeaderInput{}), job.StatusFinished)
	want := []string{"65", "Results:\n2 4 6 8 10\n11 12 13 14 15"}
	if got := made(b); !slices.Equal(got, want) {
		t.Errorf("the answer is %q, want %q", got, want)
	}
	if n := len(c.attempts()); n != 5 {
		t.Errorf("there were %d attempts: %v", n, c.attempts())
	}
	if b.Started.IsZero() || b.Ended.IsZero() || b.View(b.Ended).Duration <= 0 {
		t.Errorf("it took from %v to %v", b.Started, b.Ended)
	}
}

// TestAnExpertTriesAgainWithItsLessons, and after its last attempt the job fails without any successor having begun (B5).
func TestAnExpertTriesAgainWithItsLessons(t *testing.T) {
	t.Parallel()
	for _, fails := range []int{2, 4} {
		t.Run(fmt.Sprint(fails, " failures"), func(t *testing.T) {
			t.Parallel()
			c := newCrew(t, planOf("first worker", "second worker first"), map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
				if strings.HasSuffix(a.SubJob, "-first") && a.Attempt <= fails {
					return job.WorkflowMessage{Status: job.ExecutionError, Lesson: fmt.Sprint("lesson ", a.Attempt)}, nil
				}
				return success("done")
			}})
			c.lead()
			run := c.begin(protocol.LeaderInput{})
			if fails == 4 {
				b := c.ends(run, job.StatusFailed)
				if !strings.Contains(b.Reason, "lesson 4") || len(c.told("second")) != 0 {
					t.Errorf("it failed because %q, after %v", b.Reason, c.attempts())
				}
			} else {
				c.ends(run, job.StatusFinished)
			}
			tries := c.told("first")
			if last := tries[len(tries)-1]; len(tries) != min(fails, 3)+1 || strings.Join(last.Lessons, ",") != strings.Join([]string{"lesson 1", "lesson 2", "lesson 3"}[:len(tries)-1], ",") {
				t.Errorf("the last of %d attempts was told %q", len(tries), last.Lessons)
			}
		})
	}
}

// TestProducersAreReopened: what a subjob cannot use is made again with its lesson, and everything behind it anew (B4).
func TestProducersAreReopened(t *testing.T) {
	t.Parallel()
	c := newCrew(t, planOf("produce worker", "other worker produce", "consume worker produce", "end worker consume other"),
		map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			if strings.HasSuffix(a.SubJob, "-consume") && a.Inputs[0].Text == "v1" {
				return job.WorkflowMessage{Status: job.InputDataError, Lesson: "not v1"}, nil
			}
			if strings.HasSuffix(a.SubJob, "-produce") {
				return success(fmt.Sprint("v", a.Attempt))
			}
			return success(a.SubJob + " of " + a.Inputs[0].Text)
		}})
	c.lead()
	b := c.ends(c.begin(protocol.LeaderInput{}), job.StatusFinished)
	producers, others := c.told("produce"), c.told("other")
	if len(producers) != 2 || strings.Join(producers[1].Lessons, "") != "not v1" {
		t.Errorf("the producer was told %+v", producers)
	}
	if last := others[len(others)-1]; last.Inputs[0].Text != "v2" {
		t.Errorf("the sibling ended with %q: %v", last.Inputs[0].Text, c.attempts())
	}
	if got := strings.Join(made(b), "|"); !strings.Contains(got, "-consume of v2") {
		t.Errorf("the answer is %q", got)
	}
}

// TestWhatIsTooComplicatedIsPlannedAgain and takes the subjob's place (B2, B3, B15).
func TestWhatIsTooComplicatedIsPlannedAgain(t *testing.T) {
	t.Parallel()
	c := newCrew(t, nil, map[string]expertFunc{"worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		if strings.HasSuffix(a.SubJob, "-hard") {
			return job.WorkflowMessage{Status: job.TooComplicated, Output: strings.Repeat("so far ", 1000), Lesson: "halve it"}, nil
		}
		var in []string
		for _, i := range a.Inputs {
			in = append(in, i.Text)
		}
		return success(a.SubJob[strings.LastIndex(a.SubJob, "-")+1:] + "(" + strings.Join(in, " ") + ")")
	}})
	c.planner = func(_ context.Context, req job.PlanRequest) (job.Draft, error) {
		if req.SubJob == nil {
			return draftOf("a worker", "hard worker a", "z worker hard"), nil
		}
		if req.Report == nil || req.Report.Lesson != "halve it" || len(req.Report.Output) != 7000 || req.Inputs[0].Text != "a()" {
			return job.Draft{}, &job.BadPlanError{Problem: "the planner was not told what happened: " + asJSON(t, req)}
		}
		return draftOf("left worker", "right worker"), nil
	}
	c.lead()
	b := c.ends(c.begin(protocol.LeaderInput{}), job.StatusFinished)
	if got := strings.Join(made(b), "|"); got != "z(left(a()) right(a()))" {
		t.Errorf("the answer is %q", got)
	}
}

// TestAPresetExpertNeedsNoPlan, and one that is not there is refused before anything runs.
func TestAPresetExpertNeedsNoPlan(t *testing.T) {
	t.Parallel()
	c := newCrew(t, nil, numbers())
	c.lead()
	b := c.ends(c.begin(protocol.LeaderInput{Job: job.Job{Expert: "numbers"}}), job.StatusFinished)
	if got := made(b); !slices.Equal(got, []string{"Results:"}) || len(c.asked) != 0 {
		t.Errorf("the answer is %q", got)
	}
	other := newCrew(t, nil, numbers())
	other.lead()
	err := other.begin(protocol.LeaderInput{Job: job.Job{Expert: "nobody"}}).Get(other.ctx, nil)
	if errorKind(err) != protocol.ErrTypeJobRefused {
		t.Errorf("an expert that is not there: %v", err)
	}
}

// TestAJobOfEveryEnding: one that failed, one that sent its producer back to work, and one that was too complicated.
func TestAJobOfEveryEnding(t *testing.T) {
	t.Parallel()
	c := everything(t)
	c.lead()
	c.ends(c.begin(protocol.LeaderInput{}), job.StatusFinished)
	want := []string{"p1-load/1", "p1-load/2", "p1-check/1", "p1-load/3", "p1-check/2", "p1-hard/1"}
	got := c.attempts()
	if len(got) != 9 || !slices.Equal(got[:6], want) || got[8] != "p1-end/1" {
		t.Errorf("it did %v", got)
	}
}

// TestJobsWithoutCache runs jobs in a process that keeps no workflow between tasks: every task replays the leader.
func TestJobsWithoutCache(t *testing.T) {
	t.Parallel()
	if os.Getenv(uncachedEnv) != "" {
		t.Skip("this is that process")
	}
	uncached(t, "^(TestTheFiveNodeExample|TestAJobOfEveryEnding|TestB6|TestALongJobIsContinuedAsANewRun)")
}
