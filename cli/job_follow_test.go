package cli

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"superstep.dev/job"
	"superstep.dev/thread"
)

// asking is a service whose job's events and attempts come when a test says so.
type asking struct {
	service
	events   chan job.Event
	attempts map[string]chan thread.View
	rest     atomic.Bool  // only attempt a is under way
	unknown  atomic.Int32 // so many times more is a followed attempt not there yet
}

func (s *asking) FollowJob(ctx context.Context, _ string, _ int64) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		for {
			select {
			case e := <-s.events:
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *asking) Follow(ctx context.Context, since thread.View, _ func(thread.Progress)) (thread.View, error) {
	if s.unknown.Add(-1) >= 0 {
		return thread.View{}, &thread.Error{Kind: thread.ErrNotFound, Thread: since.Thread, Message: "not there"}
	}
	select {
	case v := <-s.attempts[since.Thread]:
		return v, nil
	case <-ctx.Done():
		return thread.View{}, ctx.Err()
	}
}

// Job has attempts under way before their events are there.
func (s *asking) Job(context.Context, string) (thread.JobView, error) {
	return thread.JobView{View: job.View{ID: "j", Status: job.StatusRunning, SubJobs: []job.SubJob{
		{DraftSubJob: job.DraftSubJob{ID: "a"}, Open: true, Attempts: 1}, {DraftSubJob: job.DraftSubJob{ID: "b"}, Open: !s.rest.Load(), Attempts: 1}}}}, nil
}

// TestFollowedAttemptsThatAsk: a question is shown once, and the command ends when all that is left waits for people, also
// when some have asked long before the others ended, were answered, and have asked again; the leader tells of an attempt
// before its run is there.
func TestFollowedAttemptsThatAsk(t *testing.T) {
	a, b := job.AttemptThread("j", "a", 1), job.AttemptThread("j", "b", 1)
	s := &asking{events: make(chan job.Event), attempts: map[string]chan thread.View{
		a: make(chan thread.View), b: make(chan thread.View)}}
	s.unknown.Store(3)
	screen := make(lineWriter, 100)
	app := newApp(nil, screen, screen, Program{})
	app.program = "superstep"
	app.Now = func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	ended := make(chan error, 1)
	go func() { ended <- (jobs{app}).follow(t.Context(), s, "j") }()
	event := func(kind, subjob string) {
		s.events <- job.Event{Kind: kind, SubJob: subjob, Attempt: 1, Time: app.Now()}
	}
	asks := func(questions ...string) {
		v := thread.View{Thread: a, Status: thread.StatusWaiting}
		for _, q := range questions {
			v.Questions = append(v.Questions, thread.Question{ID: q, Value: []byte(`"` + q + `?"`)})
		}
		s.attempts[a] <- v
	}
	event("started", "a")
	event("started", "b")
	asks("one")
	shown := ""
	for !strings.Contains(shown, "Next:") {
		shown += <-screen
	}
	s.rest.Store(true)
	event("finished", "b") // all that is left has asked
	asks("one", "two")     // and now it asks something else too
	if err := <-ended; !errors.Is(err, statusExit(ExitWaiting)) {
		t.Errorf("it ended with %v", err)
	}
	close(screen)
	for line := range screen {
		shown += line
	}
	for _, text := range []string{"asks         one  one?", "asks         two  two?", "finished     b"} {
		if n := strings.Count(shown, text); n != 1 {
			t.Errorf("%q is there %d times in\n%s", text, n, shown)
		}
	}
}

// past is a service with a job that waits behind its last event, or has ended with it.
type past struct {
	service
	events []job.Event
	now    job.View
}

func (s *past) FollowJob(ctx context.Context, _ string, _ int64) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		for _, e := range s.events {
			if !yield(e, nil) {
				return
			}
		}
		if !s.now.Status.Final() { // then there may be more
			<-ctx.Done()
		}
	}
}

func (s *past) Job(context.Context, string) (thread.JobView, error) {
	return thread.JobView{View: s.now}, nil
}

// TestAFollowedJobThatWaitedBefore: what happened is shown up to where the job waits or has ended, not up to where it waited once.
func TestAFollowedJobThatWaitedBefore(t *testing.T) {
	events := []job.Event{{Seq: 1, Kind: "submitted"}, {Seq: 2, Kind: "approving"}, {Seq: 3, Kind: "approved"}, {Seq: 4, Kind: "over_budget"},
		{Seq: 5, Kind: "stopping"}, {Seq: 6, Kind: "stopped"}}
	for last, want := range map[int64]job.View{
		4: {ID: "j", Status: job.StatusRunning, Phase: job.PhaseOverBudget, LastEvent: 4},
		6: {ID: "j", Status: job.StatusStopped, LastEvent: 6},
	} {
		shown := &bytes.Buffer{}
		app := newApp(nil, shown, shown, Program{})
		app.program = "superstep"
		err := (jobs{app}).follow(t.Context(), &past{events: events[:last], now: want}, "j")
		if !errors.Is(err, statusExit(exitOfJob(want))) {
			t.Errorf("it ended with %v", err)
		}
		for _, e := range events[:last] {
			if !strings.Contains(shown.String(), strings.ReplaceAll(e.Kind, "_", " ")) {
				t.Errorf("%s is missing in\n%s", e.Kind, shown)
			}
		}
	}
}

// lineWriter hands on what is written.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
