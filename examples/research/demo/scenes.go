package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/api/serviceerror"

	"superstep.dev/cli"
	"superstep.dev/examples/internal/demo"
	"superstep.dev/examples/research/figures"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// submit is the first scene: a job is given to the leader.
func (d *researching) submit(ctx context.Context) error {
	planner := "rules plan it, no key is needed"
	if model() {
		planner = "a model plans it"
	}
	d.Line("\n1. A job is given to a leader with four experts; %s:", planner)
	return d.Superstep(ctx, cli.ExitOK, "job", "submit", "--leader", "research", "--id", id, "--goal", goal)
}

// crash is the second scene: what happens is shown, until an analyst is in the middle of its work. Then its worker is
// killed.
func (d *researching) crash(ctx context.Context) error {
	ctx, cancel := demo.Within(ctx, "an analyst at work")
	defer cancel()
	var recorded int
	err := d.follow(ctx, func(e job.Event) (done bool, err error) {
		if e.Kind != "started" || e.Expert != "analyst" {
			return false, nil
		}
		recorded, err = d.awaitFigures(ctx, job.AttemptThread(id, e.SubJob, e.Attempt))
		return recorded > 0, err
	})
	if err != nil {
		return err
	}
	if recorded == 0 {
		return errors.New("the job ended before an analyst was in the middle of its work")
	}
	d.Line("\n2. The worker is killed while the analysts compute (%d of %d figures of one are on record):", recorded, len(figures.Measures))
	pid := d.Worker.PID()
	if err := d.Worker.Kill(); err != nil {
		return err
	}
	d.Step("kill -9 %d", pid)
	second, err := d.Stack.Worker(ctx)
	if err != nil {
		return err
	}
	d.Step("worker #2 pid %d", second.PID())
	return nil
}

// awaitFigures returns how many figures an analyst has on record once it has some, 0 when its attempt ended with none.
func (d *researching) awaitFigures(ctx context.Context, thread string) (recorded int, err error) {
	err = demo.Until(ctx, func() (bool, error) {
		calls, err := d.Recorded(ctx, thread, "", "analyst.analyst")
		if recorded = len(named(calls, "describe")); recorded > 0 {
			return true, nil
		}
		if notFound(err) { // the leader is about to start it
			return false, nil
		}
		if err != nil {
			return false, err
		}
		v, err := d.Runs.Show(ctx, thread)
		return !v.Closed.IsZero(), err
	})
	return recorded, err
}

// notFound says that the server has no such run.
func notFound(err error) bool {
	_, is := errors.AsType[*serviceerror.NotFound](err)
	return is
}

// question is the third scene: the writer asks, and a person answers.
func (d *researching) question(ctx context.Context) error {
	ctx, cancel := demo.Within(ctx, "the writer's question")
	defer cancel()
	var writer string
	err := d.follow(ctx, func(e job.Event) (done bool, err error) {
		if e.Kind == "started" && e.Expert == "writer" {
			writer = job.AttemptThread(id, e.SubJob, e.Attempt)
		}
		return writer != "", nil
	})
	if err != nil {
		return err
	}
	var view thread.View
	err = demo.Until(ctx, func() (bool, error) {
		view, err = d.Runs.Show(ctx, writer)
		if errors.Is(err, thread.ErrNotFound) {
			return false, nil
		}
		return view.Status == thread.StatusWaiting || !view.Closed.IsZero(), err
	})
	if err != nil {
		return err
	}
	if len(view.Questions) != 1 {
		return fmt.Errorf("the writer is %s and asks %d questions, not one", view.Status, len(view.Questions))
	}
	d.Line("\n3. The writer asks a person; no process is held:")
	if err := d.Superstep(ctx, cli.ExitOK, "job", "show", id); err != nil {
		return err
	}
	return d.answer(context.WithoutCancel(ctx), view)
}

// answer asks for as long as it takes, and shows what happens then.
func (d *researching) answer(ctx context.Context, view thread.View) error {
	lead, err := d.askLead(ctx)
	if err != nil {
		return err
	}
	err = d.Superstep(ctx, cli.ExitOK, "resume", view.Thread, view.Questions[0].ID, "--value", strconv.Quote(string(lead)))
	if err != nil {
		return err
	}
	ctx, cancel := demo.Within(ctx, "the rest of the job")
	defer cancel()
	return d.follow(ctx, func(job.Event) (bool, error) { return false, nil })
}

// askLead asks with which measure the report begins.
func (d *researching) askLead(ctx context.Context) (figures.Measure, error) {
	var choices []string
	for i, m := range figures.Measures {
		choices = append(choices, fmt.Sprintf("%d %s", i+1, m.Label()))
	}
	return demo.Ask(ctx, d.Screen, "Which measure should lead the report?", strings.Join(choices, ", "), figures.BodyMass.Label(), readMeasure)
}

// readMeasure reads a measure by its number, label or name, the body mass for an empty line.
func readMeasure(line string) (figures.Measure, bool) {
	if line == "" {
		return figures.BodyMass, true
	}
	i := slices.IndexFunc(figures.Measures, func(m figures.Measure) bool {
		return strings.EqualFold(line, m.Label()) || line == string(m)
	})
	if n, err := strconv.Atoi(line); err == nil {
		i = n - 1
	}
	if i < 0 || i >= len(figures.Measures) {
		return "", false
	}
	return figures.Measures[i], true
}

// follow shows what happens to the job from where it left off, until done, or the job's end.
func (d *researching) follow(ctx context.Context, done func(job.Event) (bool, error)) error {
	for e, err := range d.Runs.FollowJob(ctx, id, d.shown) {
		if err != nil {
			return errors.Join(context.Cause(ctx), fmt.Errorf("follow the job: %w", err))
		}
		d.shown = e.Seq
		d.Step("%s", eventLine(e))
		if over, err := done(e); over || err != nil {
			return err
		}
	}
	return nil
}

// lineWidth keeps an indented line on a screen of a hundred characters.
const lineWidth = 90

// eventLine is an event in one line.
func eventLine(e job.Event) string {
	who := e.SubJob
	if e.Expert != "" {
		who += " " + e.Expert
	}
	if e.Attempt > 1 {
		who += fmt.Sprintf(" (attempt %d)", e.Attempt)
	}
	return cut(fmt.Sprintf("%-13s %-28s %s", strings.ReplaceAll(e.Kind, "_", " "), who, e.Text))
}

// cut shortens a line to what fits on the screen.
func cut(text string) string {
	line := []rune(strings.TrimRight(text, " "))
	if len(line) > lineWidth {
		line = append(line[:lineWidth-1], '…')
	}
	return string(line)
}
