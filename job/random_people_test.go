package job_test

import (
	"fmt"

	"pgregory.net/rapid"

	"superstep.dev/job"
)

// people does what people do. What is refused changes nothing.
func (c *chaos) people(twin *job.Board) string {
	what := rapid.SampledFrom([]string{"stop", "fail", "recover", "recover", "retry", "retry", "approve", "approve", "approve", "edit", "replan", "add", "remove", "raise"}).Draw(c.t, "people")
	subjob, plan := "none", c.draft()
	if len(c.b.SubJobs) > 0 {
		subjob = c.b.SubJobs[rapid.IntRange(0, len(c.b.SubJobs)-1).Draw(c.t, "subjob")].ID
	}
	tokens := rapid.Int64Range(0, 200).Draw(c.t, "raise")
	act := func(b *job.Board) error {
		switch what {
		case "stop":
			return b.Stop(job.Halt{Reason: "enough", By: "ann"}, c.now)
		case "fail":
			return b.Fail(job.Halt{SubJob: subjob, Reason: "useless", By: "ann"}, c.now)
		case "recover":
			return b.Recover(job.Recover{Again: []string{subjob}, Lesson: "better", By: "ann"}, c.now)
		case "retry":
			return b.Retry(subjob, "again", "ann", c.now)
		case "add":
			return b.AddExpert(experts("critic")[0], "ann", c.now)
		case "remove":
			return b.RemoveExpert("critic", "ann", c.now)
		case "raise":
			return b.Raise(job.Budget{Tokens: tokens}, "ann", c.now)
		}
		return b.Decide(job.Decision{PlanVersion: b.PlanVersion, Verdict: what, Plan: &plan, Reason: "so", By: "ann"}, c.now)
	}
	before := encoded(c.t, c.b)
	err, other := act(c.b), act(twin)
	if fmt.Sprint(err) != fmt.Sprint(other) {
		c.t.Fatalf("%v and %v", err, other)
	}
	if err != nil && encoded(c.t, c.b) != before {
		c.t.Fatalf("%s was refused, and changed the board: %v", what, err)
	}
	return what
}
