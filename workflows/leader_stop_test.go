package workflows_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// held is an expert that works until it is let go, or told to end.
type held struct {
	began chan string // the subjobs that wait
	open  chan struct{}
	ended atomic.Int32 // attempts that were told to end
}

func newHeld() *held { return &held{began: make(chan string, 100), open: make(chan struct{})} }

func (g *held) wait(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
	g.began <- a.SubJob
	select {
	case <-g.open:
		return success("done by " + a.SubJob)
	case <-ctx.Done():
		g.ended.Add(1)
		return job.WorkflowMessage{}, context.Cause(ctx)
	}
}

// TestB6StopEndsAttemptsAndNothingFollows: the reply comes when all have ended, what had finished is kept, and a recovered
// job does the rest only.
func TestB6StopEndsAttemptsAndNothingFollows(t *testing.T) {
	t.Parallel()
	g := newHeld()
	c := newCrew(t, planOf("quick worker", "left gate quick", "right gate quick", "end worker left right"), map[string]expertFunc{
		"gate": g.wait, "worker": func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
			return success("done by " + a.SubJob)
		}})
	c.lead()
	run := c.begin(protocol.LeaderInput{})
	<-g.began
	<-g.began
	v, err := c.tells(protocol.UpdateJobStop, job.Halt{Reason: "enough", By: "ann"})
	if err != nil || v.Status != job.StatusStopped || v.Finished != 1 || g.ended.Load() != 2 {
		t.Fatalf("stopped, it is %s with %d finished and %d attempts ended: %v", v.Status, v.Finished, g.ended.Load(), err)
	}
	b := c.ends(run, job.StatusStopped)
	if len(c.told("end")) != 0 || !strings.Contains(b.Reason, "enough") {
		t.Errorf("it ended because %q, after %v", b.Reason, c.attempts())
	}
	close(g.open)
	before := len(c.attempts())
	b = c.ends(c.begin(protocol.LeaderInput{Board: b, Recover: &job.Recover{By: "ann"}}), job.StatusFinished)
	if rest := c.attempts()[before:]; len(rest) != 3 || len(c.told("quick")) != 1 || len(c.asked) != 1 {
		t.Errorf("recovered, it did %v", rest)
	}
	if got := made(b); !slices.Equal(got, []string{"done by p1-end"}) {
		t.Errorf("the answer is %q", got)
	}
}

// TestTwoStopsAreOne, and one of a job that has ended is refused without an event (B14).
func TestB14AStopNeverOverwritesAnEnd(t *testing.T) {
	t.Parallel()
	g := newHeld()
	c := newCrew(t, planOf("only gate"), map[string]expertFunc{"gate": g.wait})
	c.lead()
	run := c.begin(protocol.LeaderInput{})
	<-g.began
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if v, err := c.tells(protocol.UpdateJobStop, job.Halt{}); err != nil || v.Status != job.StatusStopped {
				t.Errorf("one of two stops: %s, %v", v.Status, err)
			}
		})
	}
	both.Wait()
	c.ends(run, job.StatusStopped)
	if _, err := c.tells(protocol.UpdateJobStop, job.Halt{}); err == nil {
		t.Error("a job that has ended was stopped")
	}
	if v, err := c.view(); err != nil || v.Status != job.StatusStopped {
		t.Errorf("asked after its end, it is %s: %v", v.Status, err)
	}
}

// TestStopWhilePlanning throws the plan away; the planner is asked anew when the job is recovered (B7).
func TestB7StopWhilePlanning(t *testing.T) {
	t.Parallel()
	asked, again := make(chan struct{}, 9), make(chan struct{})
	c := newCrew(t, nil, numbers())
	c.planner = func(ctx context.Context, _ job.PlanRequest) (job.Draft, error) {
		asked <- struct{}{}
		select {
		case <-again:
			return draftOf(fiveNodes...), nil
		case <-ctx.Done():
			return job.Draft{}, context.Cause(ctx)
		}
	}
	c.lead()
	run := c.begin(protocol.LeaderInput{})
	<-asked
	if v, err := c.tells(protocol.UpdateJobStop, job.Halt{}); err != nil || v.Status != job.StatusStopped || v.Total != 0 {
		t.Fatalf("stopped, it is %+v: %v", v, err)
	}
	b := c.ends(run, job.StatusStopped)
	close(again)
	b = c.ends(c.begin(protocol.LeaderInput{Board: b, Recover: &job.Recover{}}), job.StatusFinished)
	if len(c.attempts()) != 5 || b.PlanVersion != 1 {
		t.Errorf("recovered, it did %v by plan %d", c.attempts(), b.PlanVersion)
	}
}

// TestCancelIsAStop whose run ends as cancelled, with all attempts ended and the board left.
func TestCancelIsAStop(t *testing.T) {
	t.Parallel()
	g := newHeld()
	c := newCrew(t, planOf("left gate", "right gate"), map[string]expertFunc{"gate": g.wait})
	c.lead()
	run := c.begin(protocol.LeaderInput{})
	<-g.began
	<-g.began
	if err := c.client.CancelWorkflow(c.ctx, run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	if b := c.ends(run, job.StatusStopped); g.ended.Load() != 2 {
		t.Errorf("it ended because %q with %d attempts ended", b.Reason, g.ended.Load())
	}
}

// TestB1NoTwoRunsOfOneJob: a run that was ended from outside may have left attempts under way, so no run goes on from what it
// had: whoever recovers the job sees to them first.
func TestB1NoTwoRunsOfOneJob(t *testing.T) {
	t.Parallel()
	g := newHeld()
	c := newCrew(t, planOf("first worker", "next gate first"), map[string]expertFunc{"gate": g.wait,
		"worker": func(context.Context, job.Assignment) (job.WorkflowMessage, error) { return success("once") }})
	c.lead()
	run := c.begin(protocol.LeaderInput{})
	<-g.began
	var board *job.Board
	value, err := c.client.QueryWorkflow(c.ctx, run.GetID(), "", protocol.QueryBoard)
	if err == nil {
		err = value.Get(&board)
	}
	if err == nil {
		err = c.client.TerminateWorkflow(c.ctx, run.GetID(), "", "a test")
	}
	if err != nil {
		t.Fatal(err)
	}
	var refused *temporal.ApplicationError
	err = c.begin(protocol.LeaderInput{Board: board, Recover: &job.Recover{}}).Get(c.ctx, nil)
	if !errors.As(err, &refused) || refused.Type() != protocol.ErrTypeJobRefused {
		t.Errorf("it went on: %v", err)
	}
	close(g.open)
	if got := c.attempts(); !slices.Equal(got, []string{"p1-first/1", "p1-next/1"}) {
		t.Errorf("it did %v", got)
	}
}

// TestWhatIsKeptWhileStopping: an attempt that ends well although it was told to end has finished.
func TestAnAttemptMayFinishWhileItIsStopped(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 2)
	c := newCrew(t, planOf("stubborn worker", "end worker stubborn"), map[string]expertFunc{"worker": func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		if strings.HasSuffix(a.SubJob, "-stubborn") {
			began <- struct{}{}
			<-ctx.Done()
		}
		return success("done anyway")
	}})
	c.lead()
	run := c.begin(protocol.LeaderInput{})
	<-began
	if _, err := c.tells(protocol.UpdateJobStop, job.Halt{}); err != nil {
		t.Fatal(err)
	}
	b := c.ends(run, job.StatusStopped)
	if v := b.View(b.Ended); v.Finished != 1 || len(c.told("end")) != 0 {
		t.Errorf("%d of %d finished, %v began", v.Finished, v.Total, c.attempts())
	}
}
