package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"superstep.dev"
	"superstep.dev/job"
)

// jobFollow shows what happens to a job. Its events come from the leader; what experts ask comes from the attempts
// themselves, each of which is waited for.
type jobFollow struct {
	app  *app
	svc  service
	id   string
	asks chan superstep.ThreadView // attempts that wait for people
	open map[string]bool           // attempts under way, by thread: whether they wait for people
	told map[[2]string]bool        // questions that were shown, by thread and id
	// looking are those who read beside the one that shows: all have ended when the command does.
	looking sync.WaitGroup
}

// followJob shows what happens to a job behind an event until it waits or ends, and ends the command with the code of that.
func (a *app) followJob(ctx context.Context, svc service, id string, after int64) error {
	inner, stop := context.WithCancel(ctx)
	f := &jobFollow{app: a, svc: svc, id: id, asks: make(chan superstep.ThreadView), open: map[string]bool{}, told: map[[2]string]bool{}}
	err := f.run(inner, after)
	stop()
	f.looking.Wait()
	if err == nil {
		err = f.end(ctx)
	}
	return interrupted(ctx, err, "no longer following; job "+id+" goes on. Look: "+a.commandLine("job", "show", id))
}

// happened is an event, or why there are no more: nil when the job's run has ended.
type happened struct {
	event job.Event
	err   error
}

func (f *jobFollow) run(ctx context.Context, after int64) error {
	events := make(chan happened)
	f.looking.Go(func() {
		for e, err := range f.svc.FollowJob(ctx, f.id, after) {
			select {
			case events <- happened{e, err}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case events <- happened{err: io.EOF}:
		case <-ctx.Done():
		}
	})
	for {
		select {
		case h := <-events:
			if errors.Is(h.err, io.EOF) {
				return nil
			}
			if h.err != nil {
				return h.err
			}
			if err := f.event(ctx, h.event); err != nil {
				return err
			}
			if h.event.Kind == "approving" || h.event.Kind == "over_budget" {
				if rests, err := f.rests(ctx); rests || err != nil {
					return err
				}
			}
			f.lookAgain(ctx)
		case v := <-f.asks:
			if err := f.asked(ctx, v); err != nil {
				return err
			}
			if rests, err := f.onlyAsks(ctx); rests || err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rests reports whether the job waits for somebody: the event that says so may be an old one.
func (f *jobFollow) rests(ctx context.Context) (bool, error) {
	v, err := f.svc.Job(ctx, f.id)
	return err == nil && v.Rests(), err
}

// event shows an event, and begins or ends the watch over an attempt.
func (f *jobFollow) event(ctx context.Context, e job.Event) error {
	thread := job.AttemptThread(f.id, e.SubJob, e.Attempt)
	switch {
	case e.Kind == "started":
		f.open[thread] = false
		f.watch(ctx, thread)
	case e.Attempt > 0:
		delete(f.open, thread)
	}
	if f.app.json() {
		return f.app.writeJSONLine(e)
	}
	f.app.printf("%s\n", f.line(e.Time.In(f.app.now().Location()).Format("15:04:05"), e.Kind, e.SubJob, e.Attempt, e.Expert, e.Text))
	return nil
}

// line is one line of what happens.
func (f *jobFollow) line(at, what, subjob string, attempt int, expert, text string) string {
	of := subjob
	if attempt > 1 {
		of += fmt.Sprintf(" (attempt %d)", attempt)
	}
	if expert != "" && expert != subjob {
		of += " by " + expert
	}
	line := fmt.Sprintf("%s  %-12s %s", at, strings.ReplaceAll(what, "_", " "), clean(of))
	if text != "" {
		line = strings.TrimRight(line, " ") + "  " + shorten(clean(text), cellWidth)
	}
	return strings.TrimRight(line, " ")
}

// watch waits until an attempt asks people, or ends: the leader tells how it ended. An attempt that cannot be looked at is
// looked at again later: the leader tells that it starts just before the server has its run, and a server can be away.
func (f *jobFollow) watch(ctx context.Context, thread string) {
	f.looking.Go(func() {
		for pause := lookAgainFirst; ; pause = min(2*pause, lookAgainLast) {
			v, err := f.svc.Follow(ctx, superstep.ThreadView{Thread: thread}, func(superstep.Progress) {})
			switch {
			case err == nil && v.Status == superstep.StatusWaiting && len(v.Questions) > 0:
				select {
				case f.asks <- v:
				case <-ctx.Done():
				}
				return
			case err == nil:
				return
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	})
}

// Pauses before an attempt that could not be looked at is looked at again.
const (
	lookAgainFirst = 100 * time.Millisecond
	lookAgainLast  = 5 * time.Second
)

// asked shows what an attempt asks.
func (f *jobFollow) asked(ctx context.Context, v superstep.ThreadView) error {
	if waits, open := f.open[v.Thread]; !open || waits {
		return nil
	}
	f.open[v.Thread] = true
	for _, q := range v.Questions {
		if f.told[[2]string{v.Thread, q.ID}] {
			continue
		}
		f.told[[2]string{v.Thread, q.ID}] = true
		if f.app.json() {
			if err := f.app.writeJSONLine(map[string]any{"kind": "asks", "thread": v.Thread, "question": q}); err != nil {
				return err
			}
			continue
		}
		f.app.printf("%s\n", f.line(f.app.now().Format("15:04:05"), "asks", q.ID, 0, "", q.Text()))
		f.app.next(nextOf(v.Thread, v.Status, []superstep.Question{q}))
	}
	return nil
}

// lookAgain looks once more at the attempts when all that are left have asked: some may have had their answers meanwhile,
// and have gone on or asked something else.
func (f *jobFollow) lookAgain(ctx context.Context) {
	if !f.allAsk() {
		return
	}
	for thread := range f.open {
		f.open[thread] = false
		f.watch(ctx, thread)
	}
}

// onlyAsks reports whether nothing is left of the job to do but to answer. The leader is asked: attempts may have begun
// that its events have not told of yet.
func (f *jobFollow) onlyAsks(ctx context.Context) (bool, error) {
	if !f.allAsk() {
		return false, nil
	}
	v, err := f.svc.Job(ctx, f.id)
	if err != nil || v.Phase == job.PhasePlanning {
		return false, err
	}
	for _, s := range v.SubJobs {
		if s.Open && !f.open[job.AttemptThread(f.id, s.ID, s.Attempts)] {
			return false, nil
		}
	}
	return true, nil
}

// allAsk reports whether every attempt that is known to be under way waits for people.
func (f *jobFollow) allAsk() bool {
	for _, waits := range f.open {
		if !waits {
			return false
		}
	}
	return len(f.open) > 0
}

// end shows where the job stands.
func (f *jobFollow) end(ctx context.Context) error {
	v, err := f.svc.Job(ctx, f.id)
	if err != nil {
		return err
	}
	if f.app.json() {
		err = f.app.writeJSONLine(v)
	} else {
		err = f.showEnd(ctx, v)
	}
	if err != nil {
		return err
	}
	return exitWith(exitOfJob(v.View))
}

func (f *jobFollow) showEnd(ctx context.Context, v superstep.JobView) error {
	f.app.printf("%s\n", f.app.jobLine(v.View))
	if v.Status != job.StatusFinished {
		if v.Reason != "" {
			f.app.printf("%s\n", clean(v.Reason))
		}
		if next := nextOfJob(v.View); next[1] != "show" {
			f.app.next(next)
		}
		return nil
	}
	answer, err := f.svc.JobAnswer(ctx, f.id)
	if err != nil {
		return err
	}
	f.app.printf("\n%s\n", lines(answer.Text))
	return nil
}

// exitOfJob is the exit code of a followed job that stands so.
func exitOfJob(v job.View) int {
	switch v.Status {
	case job.StatusFinished:
		return ExitOK
	case job.StatusFailed:
		return ExitFailed
	case job.StatusStopped:
		return ExitCancelled
	}
	return ExitWaiting
}
