package job_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"superstep.dev/job"
)

// drive is a board with the clock that its tests move by hand.
type drive struct {
	t   testing.TB
	b   *job.Board
	now time.Time
}

// planned is a board whose first plan is the draft.
func planned(t testing.TB, j job.Job, d job.Draft) *drive {
	t.Helper()
	r := &drive{t: t, b: newBoard(t, j), now: start}
	r.ready()
	r.plan(d)
	return r
}

func (r *drive) ready() job.Work { return r.b.Ready(r.now) }

func (r *drive) plan(d job.Draft) { r.b.Planned(d, nil, r.now) }

// begin is what begins now, as "subjob/attempt".
func (r *drive) begin() []string {
	var began []string
	for _, a := range r.ready().Run {
		began = append(began, attemptText(a.SubJob, a.Attempt))
	}
	return began
}

func (r *drive) report(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		a, m, err := reportOf(line)
		if err != nil {
			r.t.Fatal(err)
		}
		r.b.Reported(a, m, r.now)
	}
}

func (r *drive) begins(want ...string) {
	r.t.Helper()
	if got := r.begin(); !slices.Equal(got, want) {
		r.t.Fatalf("began %v, not %v", got, want)
	}
}

func (r *drive) is(status job.Status) {
	r.t.Helper()
	if r.b.Status != status {
		r.t.Fatalf("the job is %s (%s), not %s", r.b.Status, r.b.Reason, status)
	}
}

func (r *drive) subjob(id string) job.SubJob {
	r.t.Helper()
	v := r.b.View(r.now)
	at := slices.IndexFunc(v.SubJobs, func(s job.SubJob) bool { return s.ID == id })
	if at < 0 {
		r.t.Fatalf("there is no subjob %s", id)
	}
	return v.SubJobs[at]
}

func refusedAs(t testing.TB, err error, code string) {
	t.Helper()
	refused := new(job.RefusedError)
	if !errors.As(err, &refused) || refused.Code != code {
		t.Fatalf("%v is no refusal %s", err, code)
	}
}

var (
	chain   = draft([]string{"a", "loader"}, []string{"b", "analyst", "a"}, []string{"c", "writer", "b"})
	diamond = draft([]string{"a", "loader"}, []string{"b", "analyst", "a"}, []string{"c", "critic", "a"}, []string{"d", "writer", "b", "c"})
)
