package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"superstep.dev/cli/screen"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// jobFollow shows what happens to a job. Its events come from the leader; what experts ask comes from the attempts
// themselves, each of which is waited for.
type jobFollow struct {
	jobs

	svc  service
	id   string
	asks chan thread.View   // attempts that wait for people
	open map[string]bool    // attempts under way, by thread: whether they wait for people
	told map[[2]string]bool // questions that were shown, by thread and id
	last int64              // the event behind which the job waits, 0 when it is not known to
	// looking counts the goroutines that read events and follow attempts: all have ended when the command does.
	looking sync.WaitGroup
}

// follow shows what happens to a job until it waits or ends, and ends the command with the code of that.
func (a jobs) follow(ctx context.Context, svc service, id string) error {
	inner, stop := context.WithCancel(ctx)
	f := &jobFollow{jobs: a, svc: svc, id: id, asks: make(chan thread.View), open: map[string]bool{}, told: map[[2]string]bool{}}
	err := f.run(inner)
	stop()
	f.looking.Wait()
	if err == nil {
		err = f.end(ctx)
	}
	return interrupted(ctx, err, "no longer following; job "+id+" goes on. Look: "+a.commandLine("job", "show", id))
}

// happened is an event, or why there are no more.
type happened struct {
	event job.Event
	err   error
}

// tell sends what was read, and reports false when ctx ends before somebody takes it.
func tell[T any](ctx context.Context, to chan<- T, what T) bool {
	select {
	case to <- what:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *jobFollow) run(ctx context.Context) error {
	events := make(chan happened)
	f.looking.Go(func() {
		defer close(events)
		for e, err := range f.svc.FollowJob(ctx, f.id, 0) {
			if !tell(ctx, events, happened{e, err}) {
				return
			}
		}
	})
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case h, more := <-events:
			if !more || h.err != nil {
				return cmp.Or(h.err, ctx.Err())
			}
			if rests, err := f.event(ctx, h.event); rests || err != nil {
				return err
			}
			f.lookAgain(ctx)
		case v := <-f.asks:
			f.asked(v)
			if rests, err := f.onlyAsks(ctx); rests || err != nil {
				return err
			}
		}
		if err := f.Err(); err != nil {
			return err
		}
	}
}

// event shows an event, and begins or ends the watch over an attempt. It reports whether the job waits for somebody and all that
// happened before was shown, which is asked anew: an event that says so may be an old one.
func (f *jobFollow) event(ctx context.Context, e job.Event) (rests bool, err error) {
	thread := job.AttemptThread(f.id, e.SubJob, e.Attempt)
	switch {
	case e.Kind == "started":
		f.open[thread] = false
		f.watch(ctx, thread)
	case e.Attempt > 0:
		delete(f.open, thread)
	}
	f.ShowLine(e, func() {
		of := e.SubJob
		if e.Attempt > 1 {
			of += fmt.Sprintf(" (attempt %d)", e.Attempt)
		}
		if e.Expert != "" && e.Expert != e.SubJob {
			of += " by " + e.Expert
		}
		f.line(e.Time, strings.ReplaceAll(e.Kind, "_", " "), of, e.Text)
	})
	if e.Kind != "approving" && e.Kind != "over_budget" && (f.last == 0 || e.Seq < f.last) {
		return false, nil
	}
	v, err := f.svc.Job(ctx, f.id)
	if f.last = 0; err == nil && v.Rests() {
		f.last = v.LastEvent
	}
	return err == nil && v.Rests() && e.Seq >= v.LastEvent, err
}

// line shows one line of what happens.
func (f *jobFollow) line(at time.Time, what, of, text string) {
	line := fmt.Sprintf("%s  %-12s %s", at.In(f.Now().Location()).Format("15:04:05"), what, screen.Clean(of))
	if text != "" {
		line = strings.TrimRight(line, " ") + "  " + screen.Brief(text)
	}
	f.Printf("%s\n", strings.TrimRight(line, " "))
}

// watch waits until an attempt asks people, or ends: the leader tells how it ended. An attempt that cannot be looked at is
// looked at again later: the leader tells that it starts just before the server has its run, and a server can be away.
func (f *jobFollow) watch(ctx context.Context, threadID string) {
	f.looking.Go(func() {
		for pause := lookAgainFirst; ; pause = min(2*pause, lookAgainLast) {
			v, err := f.svc.Follow(ctx, thread.View{Thread: threadID}, func(thread.Progress) {})
			if err == nil {
				if v.Status == thread.StatusWaiting && len(v.Questions) > 0 {
					tell(ctx, f.asks, v)
				}
				return
			}
			if !waited(ctx, pause) {
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
func (f *jobFollow) asked(v thread.View) {
	if waits, open := f.open[v.Thread]; !open || waits {
		return
	}
	f.open[v.Thread] = true
	for _, q := range v.Questions {
		if f.told[[2]string{v.Thread, q.ID}] {
			continue
		}
		f.told[[2]string{v.Thread, q.ID}] = true
		f.ShowLine(map[string]any{"kind": "asks", "thread": v.Thread, "question": q}, func() {
			f.line(f.Now(), "asks", q.ID, q.Text())
			f.next(nextOf(v.Thread, v.Status, []thread.Question{q})...)
		})
	}
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
	return len(f.open) > 0 && !slices.Contains(slices.Collect(maps.Values(f.open)), false)
}

// end shows where the job stands.
func (f *jobFollow) end(ctx context.Context) error {
	v, err := f.svc.Job(ctx, f.id)
	if err != nil {
		return err
	}
	f.ShowLine(v, func() { err = f.showEnd(ctx, v) })
	if err != nil {
		return err
	}
	return exitWith(exitOfJob(v.View))
}

func (f *jobFollow) showEnd(ctx context.Context, v thread.JobView) error {
	f.Printf("%s\n", jobLine(v.View))
	if v.Status == job.StatusFinished {
		answer, err := f.svc.JobAnswer(ctx, f.id)
		if err == nil {
			f.Printf("\n%s\n", screen.Lines(answer.Text))
		}
		return err
	}
	if v.Reason != "" {
		f.Printf("%s\n", screen.Clean(v.Reason))
	}
	if next := nextOfJob(v.View); next[1] != "show" {
		f.next(next...)
	}
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
