package leading

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/internal/clip"
	"superstep.dev/job"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// holdBytes is how much history a leader's run has when it starts nothing any more until it can be continued as a new one.
const holdBytes = 20 << 20

// due reports whether the run is long enough to be continued as a new one.
func (l *lead) due(ctx workflow.Context) bool {
	info, at := workflow.GetInfo(ctx), l.in.ContinueAt.Filled()
	long := info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= at.Events || info.GetCurrentHistorySize() >= at.Bytes
	return long && ctx.Err() == nil && l.now().Sub(info.WorkflowStartTime).Milliseconds() >= at.Life
}

// idle reports whether nothing is under way that a new run would not hear of: the server ends the children of a run that
// is continued as a new one.
func (l *lead) idle() bool {
	return len(l.children) == 0 && l.plan == nil && l.board.Ending == "" && !l.board.Status.Final()
}

// quiet waits until everybody who asked for something has an answer; false means that somebody wants something else first.
func (l *lead) quiet(ctx workflow.Context) bool {
	more := func() bool { return len(l.orders) > 0 || ctx.Err() != nil }
	_ = workflow.Await(l.life, func() bool { return more() || l.ending == 0 && workflow.AllHandlersFinished(l.life) })
	return !more()
}

// heldBack reports whether the run is so long that it starts nothing before it is continued as a new one. A job that ends is
// not held: it starts nothing, and tells what is under way to end.
func (l *lead) heldBack() bool {
	info, at := workflow.GetInfo(l.life), l.in.ContinueAt.Filled()
	long := info.GetCurrentHistoryLength() >= at.HoldEvents || info.GetCurrentHistorySize() >= holdBytes
	return long && (len(l.children) > 0 || l.plan != nil) && l.board.Ending == ""
}

// continueAsNew ends the run with one that goes on with the board.
func (l *lead) continueAsNew() error {
	in := l.in
	in.Board, in.Recover, in.Taken = l.board, nil, l.taken
	in.Job = job.Job{ID: l.board.Job.ID} // the board has it
	return workflow.NewContinueAsNewError(l.life, protocol.LeaderWorkflow, in)
}

// alarm wakes the run at a time. It keeps one timer that rings no later than the time it was set to: that attempts have
// time limits is one timer for all of them, not an event for each.
type alarm struct {
	at   time.Time // when the timer rings, zero when there is none
	rang bool
	stop workflow.CancelFunc
}

// set makes the alarm ring at that time or earlier; zero is never, and leaves what was set.
func (a *alarm) set(ctx workflow.Context, at time.Time) {
	if at.IsZero() || !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	if a.stop != nil {
		a.stop()
	}
	timing, stop := workflow.WithCancel(ctx)
	a.at, a.stop = at, stop
	timer := workflow.NewTimerWithOptions(timing, max(at.Sub(workflow.Now(ctx)), time.Millisecond), workflow.TimerOptions{Summary: "look again"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) == nil {
			a.at, a.stop, a.rang = time.Time{}, nil, true
		}
	})
}

// show brings what lists show up to date: a leader waits for people when a plan needs approval, or its budget is spent.
func (l *lead) show(ctx workflow.Context) {
	now := listing.Shown{Status: l.status()}
	if q := l.asks(); q != nil {
		now.Open, now.Nodes = 1, []string{q.Node}
		now.Note.Questions = []protocol.QuestionNote{*q}
	}
	l.listed.Upsert(ctx, now)
}

func (l *lead) status() string {
	switch l.board.Status {
	case job.StatusFinished:
		return protocol.StatusFinished
	case job.StatusFailed:
		return protocol.StatusFailed
	case job.StatusStopped:
		if l.cancelled {
			return protocol.StatusCancelled
		}
		return protocol.StatusStopped
	}
	if l.asks() != nil {
		return protocol.StatusWaiting
	}
	return protocol.StatusRunning
}

// asks is what the leader itself asks people, nil for nothing. It is answered by [protocol.UpdateJobPlan] or [protocol.UpdateJobBudget].
func (l *lead) asks() *protocol.QuestionNote {
	b := l.board
	switch b.Phase {
	case job.PhaseApproving:
		plan := fmt.Sprintf("plan-%d", b.PlanVersion)
		return &protocol.QuestionNote{ID: plan, Node: "plan", Asks: clip.Line(fmt.Sprintf("Run %s of job %s? Its goal: %s", plan, b.Job.ID, b.Job.Goal))}
	case job.PhaseOverBudget:
		return &protocol.QuestionNote{ID: "budget", Node: "budget", Asks: clip.Line(fmt.Sprintf("Raise the budget of job %s, or stop it? %s", b.Job.ID,
			cmp.Or(b.Reason, "it is spent")))}
	}
	return nil
}
