package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"superstep.dev"
	"superstep.dev/job"
	"superstep.dev/job/leader"
)

// leaders are what this binary leads as a program.
func leaders() []superstep.Leader {
	worker := leader.NewExpert("worker", "Does what its goal names, in the directory that is its context.", worked)
	clerk := leader.NewExpert("clerk", "Asks a person.", func(ctx context.Context, _ job.Assignment) (job.WorkflowMessage, error) {
		said, err := superstep.Interrupt[string](ctx, "which one?")
		return job.WorkflowMessage{Status: job.Success, Output: said}, err
	})
	l, err := leader.New("foreman", foreman{}, worker, clerk)
	if err != nil {
		panic(err)
	}
	return []superstep.Leader{l}
}

// foreman plans by the goal of the job, which names one of its plans.
type foreman struct{}

// plansOf are plans, a subjob a word: what it does, and what it waits for.
var plansOf = map[string]string{
	// Twelve subjobs: check finds that what join-1 made is of no use, and big is too complicated.
	"twelve": "load a:load b:load c:load d:load join-1:a,b join-2:c,d check:join-1,join-2 big:check left:big right:big end:left,right",
	"two":    "first then:first",
	"parts":  "part-1 part-2",
	"asks":   "first ask:first",
}

func (foreman) Plan(_ context.Context, req job.PlanRequest) (job.Draft, error) {
	plan, dir := plansOf[req.Job.Goal], req.Job.Context
	if req.SubJob != nil {
		plan = plansOf["parts"]
	}
	var d job.Draft
	for word := range strings.FieldsSeq(plan) {
		id, after, _ := strings.Cut(word, ":")
		s := job.DraftSubJob{ID: id, Goal: id, Context: dir, Expert: "worker"}
		if id == "ask" {
			s.Expert = "clerk"
		}
		if after != "" {
			s.Dependencies = strings.Split(after, ",")
		}
		d.SubJobs = append(d.SubJobs, s)
	}
	return d, nil
}

// worked does a subjob, and notes when it began.
func worked(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
	if err := notes(a.Context, fmt.Sprintf("%s %d", a.Thread(), time.Now().UnixMilli())); err != nil {
		return job.WorkflowMessage{}, err
	}
	var from []string
	for _, in := range a.Inputs {
		from = append(from, in.Text)
	}
	made := fmt.Sprintf("%s(%s)", a.Goal, strings.Join(from, " "))
	switch {
	case a.Goal == "big":
		return job.WorkflowMessage{Status: job.TooComplicated, Lesson: "in two parts"}, nil
	case a.Goal == "check" && !strings.Contains(made, "mended"):
		return job.WorkflowMessage{Status: job.InputDataError, Blames: []string{a.Inputs[0].SubJob}, Lesson: "mended"}, nil
	case a.Goal == "join-1" && len(a.Lessons) > 0:
		made = a.Lessons[0] + " " + made
	case a.Goal == "then":
		return job.WorkflowMessage{Status: job.Success, Output: made}, awaitFile(ctx, filepath.Join(a.Context, "go"))
	}
	return job.WorkflowMessage{Status: job.Success, Output: made}, nil
}

// notes adds a line to what was begun.
func notes(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "begun"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// awaitFile waits until there is a file.
func awaitFile(ctx context.Context, path string) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
