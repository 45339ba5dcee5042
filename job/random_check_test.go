package job_test

import (
	"slices"
	"strings"

	"superstep.dev/job"
)

// check holds the board to what is always so.
func (c *chaos) check(did string) {
	b := c.b
	var g job.Graph
	for _, s := range b.SubJobs {
		if !s.Legacy && !g.Add(s.ID, s.Dependencies) {
			c.t.Fatalf("two subjobs are called %s", s.ID)
		}
	}
	for _, s := range b.SubJobs {
		if s.Legacy {
			if s.Open || s.Result != nil {
				c.t.Fatalf("after %s %s was replaced, and is under way or has a result", did, s.ID)
			}
			continue
		}
		if len(g.Predecessors(s.ID)) != len(s.Dependencies) {
			c.t.Fatalf("after %s %s depends on what does not count: %v", did, s.ID, s.Dependencies)
		}
		c.checkSubJob(s, did)
	}
	if cycle := g.Cycle(); cycle != nil {
		c.t.Fatalf("after %s subjobs depend on each other in a circle: %v", did, cycle)
	}
	if b.Complaints > b.Job.Policy.MaxReopensTotal {
		c.t.Fatalf("%d complaints", b.Complaints)
	}
	if b.Status.Final() && (len(c.open) > 0 || c.plan != nil || b.Phase != "") {
		c.t.Fatalf("after %s it has ended, and something is under way", did)
	}
}

func (c *chaos) checkSubJob(s *job.SubJob, did string) {
	if (s.Status == job.StatusFinished) != (s.Result != nil) || s.Open != (s.Status == job.StatusRunning) {
		c.t.Fatalf("after %s %s is %s, open %v, with result %v", did, s.ID, s.Status, s.Open, s.Result)
	}
	if s.Failures > max(c.b.Job.Policy.MaxRetries, 0)+1 || s.LifeCycle < 0 || len(s.Lessons) > 8 {
		c.t.Fatalf("after %s %s is out of bounds: %+v", did, s.ID, s)
	}
	for id, n := range s.Reopens {
		if n > c.b.Job.Policy.MaxReopens || !slices.Contains(s.Dependencies, id) {
			c.t.Fatalf("after %s %s sent %s back %d times", did, s.ID, id, n)
		}
	}
	if s.Status != job.StatusFinished && !s.Stale {
		return
	}
	for _, on := range s.Dependencies {
		if before := c.find(on); s.Status == job.StatusFinished && before.Status != job.StatusFinished {
			c.t.Fatalf("after %s %s has finished on what %s does again", did, s.ID, on)
		}
	}
}

// finish has everybody do what is asked, until the job ends.
func (c *chaos) finish() {
	for range 2000 {
		w := c.ready(c.b.Copy())
		switch {
		case w.Done:
			c.checkEnd()
			return
		case c.b.Phase == job.PhaseApproving:
			c.approve()
		case c.plan != nil:
			c.plan = nil
			d := draft([]string{"one", "loader"}, []string{"two", c.anybody(), "one"})
			c.b.Planned(d, nil, c.now)
		case len(c.open) > 0:
			c.end(c.b.Copy(), c.open[0], job.WorkflowMessage{Status: job.Success, Output: c.open[0].Thread()})
		case c.b.Phase == job.PhaseOverBudget:
			c.raise()
		case !w.Wake.IsZero():
			c.now = w.Wake
		default:
			c.t.Fatalf("nothing is to be done, and the job is %s %s: %s", c.b.Status, c.b.Phase, encoded(c.t, c.b))
		}
		c.check("going on")
	}
	c.t.Fatalf("the job does not end: %s", encoded(c.t, c.b))
}

func (c *chaos) anybody() string { return c.b.View(c.now).Experts[0].Name }

// approve accepts the plan that waits, or has another one made when an expert is not there any more.
func (c *chaos) approve() {
	d := job.Decision{PlanVersion: c.b.PlanVersion, Verdict: "approve"}
	if err := c.b.Decide(d, c.now); err != nil {
		d.Verdict = "replan"
		if err := c.b.Decide(d, c.now); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *chaos) raise() {
	to := c.b.Job.Budget
	for _, limit := range []*int64{&to.Tokens, &to.Attempts, &to.SubJobs} {
		if *limit > 0 {
			*limit += 100
		}
	}
	if err := c.b.Raise(to, "ann", c.now); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chaos) checkEnd() {
	v := c.b.View(c.now)
	if c.b.Status == job.StatusFinished && (v.Finished != v.Total || len(c.b.Answer()) != len(v.Tails)) {
		c.t.Fatalf("it has finished, and %d of %d have", v.Finished, v.Total)
	}
	if c.b.Status != job.StatusFinished && strings.TrimSpace(c.b.Reason) == "" {
		c.t.Fatalf("it is %s for no reason", c.b.Status)
	}
	if len(v.SubJobs) != len(c.b.SubJobs) {
		c.t.Fatalf("%d of %d subjobs are seen", len(v.SubJobs), len(c.b.SubJobs))
	}
}
