package history_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/history"
	"superstep.dev/thread"
)

// steps notes what a tail reports, one line a step.
type steps []string

func (s *steps) add(step history.Step) {
	line := fmt.Sprintf("%d %s", step.Request.Task.Step, cmp.Or(step.Request.Task.Path, step.Request.Task.Node))
	switch {
	case step.Started:
		line += " started"
	case step.Outcome == nil:
		line += " failed: " + step.Failure
	case len(step.Outcome.Questions) > 0:
		line += " asked"
	default:
		line += fmt.Sprintf(" finished in attempt %d", step.Attempt)
	}
	*s = append(*s, line)
}

// steady sorts the steps that run side by side.
func (s steps) steady() string {
	out := slices.Clone(s)
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (r *rig) standsStill() (bool, error) {
	s, err := r.State(r.ctx, thread.StateRequest{Thread: r.thread})
	return s.Status != thread.StatusRunning, err
}

// TestFollowingARun: it is reported task by task until it waits; from its beginning again, it is reported to its end.
func TestFollowingARun(t *testing.T) {
	t.Parallel()
	r := newRig(t, approvals())
	runID := r.begin(`{}`)
	var seen steps
	closing, err := r.tail.Run(r.ctx, r.thread, runID, 0, seen.add, r.standsStill)
	if err != nil || closing != nil {
		t.Fatalf("a run that waits was followed to %v, %v", closing, err)
	}
	want := "1 draft finished in attempt 1\n2 boss asked\n2 boss started\n2 legal asked\n2 legal started"
	if seen.steady() != want {
		t.Errorf("reported:\n%s\nwant:\n%s", seen.steady(), want)
	}
	if seen[0] != "1 draft finished in attempt 1" { // within the first workflow task, which says nothing of its beginning
		t.Errorf("the order is %v", seen)
	}
	type end struct {
		event *historypb.HistoryEvent
		err   error
	}
	ended := make(chan end)
	var whole steps
	go func() { // nobody confirms that it stands still: it is followed across its waits
		event, err := r.tail.Run(r.ctx, r.thread, runID, 0, whole.add, func() (bool, error) { return false, nil })
		ended <- end{event, err}
	}()
	for _, q := range r.rest().Questions {
		if _, err := r.Resume(r.ctx, thread.ResumeRequest{Thread: r.thread, Question: q.ID, Value: []byte(`"yes"`)}); err != nil {
			t.Fatal(err)
		}
	}
	last := <-ended
	if last.err != nil || last.event.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED {
		t.Fatalf("it was followed to %v, %v", last.event, last.err)
	}
	for _, line := range []string{"2 boss finished in attempt 1", "2 legal finished in attempt 1", "3 file finished in attempt 1"} {
		if !slices.Contains(whole, line) {
			t.Errorf("%q was not reported:\n%s", line, whole.steady())
		}
	}
}

// TestFollowingARunThatFails: its failures are reported, and repeated attempts are counted.
func TestFollowingARunThatFails(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	flaky := graphadapter.Node{
		Retry: []graphadapter.RetryPolicy{{InitialInterval: -1, NoJitter: true, MaxAttempts: 3}},
		Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
			if tries.Add(1) < 3 {
				return pregel.Command{}, errors.New("not yet")
			}
			return logs("flaky"), nil
		},
	}
	bad := graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return pregel.Command{}, errors.New("never")
	}}
	r := newRig(t, graph(map[string]graphadapter.Node{"flaky": flaky, "bad": bad}, []string{"flaky", "bad"},
		[2]string{pregel.Start, "flaky"}, [2]string{"flaky", "bad"}))
	runID := r.begin(`{}`)
	var seen steps
	closing, err := r.tail.Run(r.ctx, r.thread, runID, 0, seen.add, r.standsStill)
	if err != nil || closing.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED {
		t.Fatalf("it was followed to %v, %v", closing, err)
	}
	if len(seen) != 3 || !strings.HasPrefix(seen[0], "1 flaky finished") || !strings.HasPrefix(seen[2], "2 bad failed: ") || !strings.Contains(seen[2], "never") {
		t.Errorf("reported:\n%s", strings.Join(seen, "\n"))
	}
}

// TestFollowingEnds with its context, whatever the run does.
func TestFollowingEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, approvals())
	runID := r.begin(`{}`)
	r.rest()
	ctx, cancel := context.WithCancel(r.ctx)
	_, err := r.tail.Run(ctx, r.thread, runID, 0, func(history.Step) {}, func() (bool, error) {
		cancel()
		return false, nil
	})
	if err == nil || ctx.Err() == nil {
		t.Errorf("it was followed to %v", err)
	}
	refused := errors.New("no answer")
	_, err = r.tail.Run(r.ctx, r.thread, runID, 0, func(history.Step) {}, func() (bool, error) { return false, refused })
	if !errors.Is(err, refused) {
		t.Errorf("when nobody knows whether it waits, the error is %v", err)
	}
}
