package job_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"superstep.dev/job"
)

func encoded(t interface{ Fatal(...any) }, b *job.Board) string {
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// chaos drives a board as at random as can be, and holds it to what must be so in every job.
type chaos struct {
	t    *rapid.T
	b    *job.Board
	now  time.Time
	plan *job.PlanRequest
	// open are the attempts under way, began all that ever began.
	open  []job.Assignment
	began map[string]bool
	// told says which attempts were asked to end, output what each finished one has made.
	told   map[job.Attempt]bool
	output map[string]string
}

// TestRandomJobs: whatever planners, experts and people do, no subjob begins before everything that it depends on has
// finished, on anything but its newest output; no attempt begins twice; bounds hold; the board goes on the same from where
// it was stored; and a job ends once everybody does what is asked.
func TestRandomJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := begun(t)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			c.step()
		}
		c.finish()
	})
}

func begun(t *rapid.T) *chaos {
	policy := job.Policy{
		MaxParallel: rapid.IntRange(0, 4).Draw(t, "parallel"), MaxRetries: rapid.IntRange(-1, 2).Draw(t, "retries"),
		MaxReopensTotal: rapid.IntRange(0, 3).Draw(t, "complaints"), LifeCycle: rapid.IntRange(-1, 3).Draw(t, "life"),
		Approve: rapid.SampledFrom([]string{"", "", "first", "all"}).Draw(t, "approve"), Synthesis: rapid.SampledFrom([]string{"", "writer"}).Draw(t, "synthesis"),
	}
	j := job.Job{ID: "j", Goal: "g", Policy: policy, Expert: rapid.SampledFrom([]string{"", "", "", "loader"}).Draw(t, "expert")}
	if rapid.Bool().Draw(t, "budget") {
		j.Budget = job.Budget{Tokens: rapid.Int64Range(0, 50).Draw(t, "tokens"), Attempts: rapid.Int64Range(0, 20).Draw(t, "attempts"), SubJobs: rapid.Int64Range(0, 8).Draw(t, "subjobs")}
	}
	b, err := job.New(j, experts("loader", "analyst", "critic", "writer"), start)
	if err != nil {
		t.Fatal(err)
	}
	return &chaos{t: t, b: b, now: start, began: map[string]bool{}, told: map[job.Attempt]bool{}, output: map[string]string{}}
}

// step does one thing at random, to the board and to one that was stored and read back: both are the same afterwards.
func (c *chaos) step() {
	twin := c.b.Copy()
	did := c.do(twin)
	if one, other := encoded(c.t, c.b), encoded(c.t, twin); one != other {
		c.t.Fatalf("after %s the board that was stored is another one:\n%s\n%s", did, one, other)
	}
	c.check(did)
}

func (c *chaos) do(twin *job.Board) string {
	w := c.ready(twin)
	what := rapid.SampledFrom([]string{"report", "report", "report", "report", "report", "plan", "wait", "late", "people"}).Draw(c.t, "what")
	if w.Done && what != "people" {
		what = "late"
	}
	switch what {
	case "report":
		c.report(twin)
	case "plan":
		if c.plan != nil {
			c.answer(twin, c.draft())
		}
	case "wait":
		c.now = c.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(c.t, "seconds")) * time.Second)
	case "late":
		c.late(twin)
	case "people":
		return c.people(twin)
	}
	return what
}

// ready takes what is to be done, and holds it to the rules.
func (c *chaos) ready(twin *job.Board) job.Work {
	w := c.b.Ready(c.now)
	if other := twin.Ready(c.now); fmt.Sprintf("%+v", jsonOf(c.t, other)) != fmt.Sprintf("%+v", jsonOf(c.t, w)) {
		c.t.Fatalf("the board that was stored asks for something else:\n%+v\n%+v", w, other)
	}
	if w.Plan != nil {
		if c.plan != nil {
			c.t.Fatal("the planner is asked while it is under way")
		}
		c.plan = w.Plan
	}
	for _, a := range w.Cancel {
		if c.told[a] || !slices.ContainsFunc(c.open, func(o job.Assignment) bool { return o.SubJob == a.SubJob && o.Attempt == a.Attempt }) {
			c.t.Fatalf("%v is told to end twice, or is not under way", a)
		}
		c.told[a] = true
	}
	for _, a := range w.Run {
		c.start(a)
	}
	if aside := c.aside(); len(w.Run) > 0 && c.b.Job.Budget.Tokens > 0 && aside > c.b.Job.Budget.Tokens-c.b.Spent.Tokens {
		c.t.Fatalf("%d tokens are set aside, of %d with %d spent", aside, c.b.Job.Budget.Tokens, c.b.Spent.Tokens)
	}
	if w.Done && (len(c.open) > 0 || c.plan != nil) {
		c.t.Fatal("it is done, and something is under way")
	}
	return w
}

// aside are the tokens that attempts under way may spend.
func (c *chaos) aside() (tokens int64) {
	for _, a := range c.open {
		tokens += a.Allowance.Tokens
	}
	return tokens
}

func jsonOf(t *rapid.T, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (c *chaos) start(a job.Assignment) {
	if c.began[a.Thread()] {
		c.t.Fatalf("%s begins twice", a.Thread())
	}
	c.began[a.Thread()] = true
	at := slices.IndexFunc(c.b.SubJobs, func(s *job.SubJob) bool { return s.ID == a.SubJob })
	s := c.b.SubJobs[at]
	if len(a.Inputs) != len(s.Dependencies) || s.Legacy || slices.ContainsFunc(c.open, func(o job.Assignment) bool { return o.SubJob == a.SubJob }) {
		c.t.Fatalf("%s begins with %d inputs for %d dependencies, or twice at once", s.ID, len(a.Inputs), len(s.Dependencies))
	}
	for i, in := range a.Inputs {
		before := c.find(in.SubJob)
		if in.SubJob != s.Dependencies[i] || before.Status != job.StatusFinished || before.Legacy || in.Text != c.output[in.SubJob] {
			c.t.Fatalf("%s begins behind %s, which is %s, on %q instead of %q", s.ID, in.SubJob, before.Status, in.Text, c.output[in.SubJob])
		}
	}
	c.open = append(c.open, a)
	if len(c.open) > c.b.Job.Policy.MaxParallel {
		c.t.Fatalf("%d attempts are under way", len(c.open))
	}
}

func (c *chaos) find(id string) *job.SubJob {
	at := slices.IndexFunc(c.b.SubJobs, func(s *job.SubJob) bool { return s.ID == id })
	if at < 0 {
		c.t.Fatalf("there is no subjob %q", id)
	}
	return c.b.SubJobs[at]
}

// report ends an attempt under way, somehow.
func (c *chaos) report(twin *job.Board) {
	if len(c.open) == 0 {
		return
	}
	a := c.open[rapid.IntRange(0, len(c.open)-1).Draw(c.t, "which")]
	m := job.WorkflowMessage{
		Status: rapid.SampledFrom([]job.WorkflowStatus{job.Success, job.Success, job.Success, job.Success, job.Success, job.Success, job.ExecutionError,
			job.InputDataError, job.InputDataError, job.TooComplicated, "NONSENSE"}).Draw(c.t, "status"),
		Lesson: rapid.SampledFrom([]string{"", "one", "two"}).Draw(c.t, "lesson"), Output: rapid.SampledFrom([]string{"x", a.Thread(), a.Thread()}).Draw(c.t, "output"),
		Usage: job.Usage{Tokens: rapid.Int64Range(-1, 9).Draw(c.t, "tokens"), Unknown: rapid.Bool().Draw(c.t, "unknown")}, OverBudget: rapid.IntRange(0, 9).Draw(c.t, "over") == 0,
	}
	if s := c.find(a.SubJob); len(s.Dependencies) > 0 && rapid.Bool().Draw(c.t, "blame") {
		m.Blames = []string{rapid.SampledFrom(s.Dependencies).Draw(c.t, "blamed")}
	}
	c.end(twin, a, m)
}

func (c *chaos) end(twin *job.Board, a job.Assignment, m job.WorkflowMessage) {
	at := job.Attempt{SubJob: a.SubJob, Attempt: a.Attempt}
	c.open = slices.DeleteFunc(c.open, func(o job.Assignment) bool { return o.Thread() == a.Thread() })
	before, events, stale := c.b.Spent.Tokens, c.b.View(c.now).LastEvent, c.find(a.SubJob).Stale
	c.b.Reported(at, m, c.now)
	if !stale && !slices.ContainsFunc(c.b.EventsAfter(events), func(e job.Event) bool { return e.SubJob == a.SubJob && e.Attempt == a.Attempt }) {
		c.t.Fatalf("%s has ended as %s, and nobody is told", a.Thread(), m.Status)
	}
	twin.Reported(at, m, c.now)
	if m.Usage.Tokens > 0 && c.b.Spent.Tokens < before+m.Usage.Tokens {
		c.t.Fatal("what an attempt spent is not counted")
	}
	if c.find(a.SubJob).Status == job.StatusFinished {
		c.output[a.SubJob] = m.Output
	}
}

// late reports attempts that are not under way: nothing may come of it.
func (c *chaos) late(twin *job.Board) {
	before := encoded(c.t, c.b)
	for _, s := range c.b.SubJobs {
		for attempt := range s.Attempts + 2 {
			if !s.Open || attempt != s.Attempts {
				c.b.Reported(job.Attempt{SubJob: s.ID, Attempt: attempt}, job.WorkflowMessage{Status: job.Success, Usage: job.Usage{Tokens: 5}}, c.now)
			}
		}
	}
	if c.plan == nil {
		c.b.Planned(c.draft(), nil, c.now)
	}
	if encoded(c.t, c.b) != before {
		c.t.Fatal("a late report changed the board")
	}
}

// draft is a plan, now and then one that cannot be used.
func (c *chaos) draft() job.Draft {
	d := job.Draft{Usage: job.Usage{Tokens: rapid.Int64Range(0, 2).Draw(c.t, "planning")}}
	n := rapid.IntRange(0, 6).Draw(c.t, "subjobs")
	for i := range n {
		s := job.DraftSubJob{ID: fmt.Sprint("s", i), Goal: fmt.Sprint("goal ", i), Expert: rapid.SampledFrom([]string{"loader", "Analyst", "critic", "WRITER "}).Draw(c.t, "expert")}
		for j := range i {
			if rapid.Bool().Draw(c.t, "edge") {
				s.Dependencies = append(s.Dependencies, fmt.Sprint("s", j))
			}
		}
		d.SubJobs = append(d.SubJobs, s)
	}
	if n > 1 && rapid.IntRange(0, 9).Draw(c.t, "bad") == 0 {
		d.SubJobs[0].Dependencies = []string{fmt.Sprint("s", n-1)} // a cycle, or none
	}
	return d
}

func (c *chaos) answer(twin *job.Board, d job.Draft) {
	c.plan = nil
	var err error
	if rapid.IntRange(0, 9).Draw(c.t, "bad answer") == 0 {
		err = &job.BadPlanError{Problem: "no JSON"}
	}
	c.b.Planned(d, err, c.now)
	twin.Planned(d, err, c.now)
}
