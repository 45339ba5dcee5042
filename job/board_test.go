package job_test

import (
	"testing"
	"time"

	"superstep.dev/job"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func experts(names ...string) []job.Profile {
	out := make([]job.Profile, len(names))
	for i, name := range names {
		out[i] = job.Profile{Name: name, Description: "does what a " + name + " does", Graph: name}
	}
	return out
}

func newBoard(t testing.TB, j job.Job, names ...string) *job.Board {
	t.Helper()
	if j.ID == "" {
		j.ID = "j"
	}
	if j.Goal == "" {
		j.Goal = "a goal"
	}
	if len(names) == 0 {
		names = []string{"loader", "analyst", "critic", "writer"}
	}
	b, err := job.New(j, experts(names...), start)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// draft reads subjobs: "id expert dependency…".
func draft(subjobs ...[]string) job.Draft {
	var d job.Draft
	for _, s := range subjobs {
		d.SubJobs = append(d.SubJobs, job.DraftSubJob{ID: s[0], Expert: s[1], Goal: "do " + s[0], Dependencies: s[2:]})
	}
	return d
}

func TestAJobIsPlannedRunAndFinished(t *testing.T) {
	b := newBoard(t, job.Job{})
	w := b.Ready(start)
	if w.Plan == nil || w.Plan.Attempt != 1 || len(w.Plan.Experts) != 4 || b.Status != job.StatusRunning || b.Phase != job.PhasePlanning {
		t.Fatalf("%+v %s %s", w, b.Status, b.Phase)
	}
	if again := b.Ready(start); again.Plan != nil {
		t.Fatal("the planner is asked twice")
	}
	b.Planned(draft([]string{"load", "Loader"}, []string{"x", "analyst", "load"}, []string{"y", "ANALYST", "load"}, []string{"w", "writer", "y", "x"}), nil, start)
	report := func(id string, attempt int, output string) {
		b.Reported(job.Attempt{SubJob: id, Attempt: attempt}, job.WorkflowMessage{Status: job.Success, Output: output}, start)
	}
	w = b.Ready(start)
	if len(w.Run) != 1 || w.Run[0].Expert != "loader" || w.Run[0].Thread() != "job/j/s/p1-load/a1" {
		t.Fatalf("%+v", w)
	}
	report("p1-load", 1, "data")
	if w = b.Ready(start); len(w.Run) != 2 || w.Run[1].Inputs[0].Text != "data" {
		t.Fatalf("%+v", w)
	}
	b.Reported(job.Attempt{SubJob: "p1-x", Attempt: 1}, job.WorkflowMessage{Status: job.ExecutionError, Lesson: "look closer"}, start)
	report("p1-y", 1, "from y")
	w = b.Ready(start)
	if len(w.Run) != 0 || w.Wake != start.Add(time.Second) {
		t.Fatalf("%+v", w)
	}
	w = b.Ready(w.Wake)
	if len(w.Run) != 1 || w.Run[0].Attempt != 2 || w.Run[0].Lessons[0] != "look closer" {
		t.Fatalf("%+v", w)
	}
	report("p1-x", 2, "from x")
	w = b.Ready(start)
	if in := w.Run[0].Inputs; in[0].Text != "from y" || in[1].Text != "from x" {
		t.Fatalf("inputs are in the order of the dependencies: %+v", in)
	}
	report("p1-w", 1, "the answer")
	if w = b.Ready(start); !w.Done || b.Status != job.StatusFinished || b.Answer()[0].Text != "the answer" {
		t.Fatalf("%+v", b)
	}
	if err := b.Stop(job.Halt{Reason: "", By: ""}, start); err == nil {
		t.Fatal("a finished job was stopped")
	}
}

func TestAStoppedJobKeepsWhatFinished(t *testing.T) {
	b := newBoard(t, job.Job{})
	b.Ready(start)
	b.Planned(draft([]string{"a", "loader"}, []string{"b", "loader"}, []string{"c", "writer", "a", "b"}), nil, start)
	b.Ready(start)
	if err := b.Stop(job.Halt{Reason: "enough", By: "ann"}, start); err != nil {
		t.Fatal(err)
	}
	w := b.Ready(start)
	if len(w.Cancel) != 2 || w.Done || b.Phase != job.PhaseStopping {
		t.Fatalf("%+v", w)
	}
	b.Reported(job.Attempt{SubJob: "p1-a", Attempt: 1}, job.WorkflowMessage{Status: job.Success, Output: "kept"}, start)
	b.Reported(job.Attempt{SubJob: "p1-b", Attempt: 1}, job.WorkflowMessage{Status: job.ExecutionError}, start)
	if w = b.Ready(start); !w.Done || b.Status != job.StatusStopped {
		t.Fatalf("%+v", b)
	}
	if err := b.Recover(job.Recover{By: "ann"}, start); err != nil {
		t.Fatal(err)
	}
	if w = b.Ready(start); len(w.Run) != 1 || w.Run[0].SubJob != "p1-b" || w.Run[0].Attempt != 2 {
		t.Fatalf("%+v", w)
	}
}
