package leading

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/clip"
	"superstep.dev/job"
	"superstep.dev/thread/secret"
	"superstep.dev/workflows"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// order is what somebody wants done, until it is.
type order struct {
	do   func(*job.Board, time.Time) error
	done bool
	err  error
}

// handle registers the run's handlers.
func (l *lead) handle(ctx workflow.Context) error {
	err := errors.Join(
		takes(ctx, l, protocol.UpdateJobStop, "Ends the attempts under way and then the job, which can be recovered.", (*job.Board).Stop),
		takes(ctx, l, protocol.UpdateJobFail, "Ends the attempts under way and then the job, which has failed then.", (*job.Board).Fail),
		takes(ctx, l, protocol.UpdateJobRetry, "Does a subjob again, and what depends on it.",
			func(b *job.Board, req protocol.RetrySubJob, now time.Time) error {
				return b.Retry(req.SubJob, req.Lesson, req.By, now)
			}),
		takes(ctx, l, protocol.UpdateJobPlan, "Approves, edits or rejects the plan that waits.", (*job.Board).Decide),
		takes(ctx, l, protocol.UpdateJobExperts, "Adds and removes experts.", change),
		takes(ctx, l, protocol.UpdateJobBudget, "Raises what the job may spend.",
			func(b *job.Board, req protocol.RaiseBudget, now time.Time) error {
				return b.Raise(req.Budget, req.By, now)
			}))
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name, about string
		answer      any
	}{
		{protocol.QueryJob, "The job as people see it.", func() (job.View, error) { return l.view(), nil }},
		{protocol.QueryBoard, "The whole state of the job.", func() (*job.Board, error) { return l.board, nil }},
		{protocol.QueryJobEvents, "What happened to the job behind the event of a number.", func(after int64) ([]job.Event, error) { return l.board.EventsAfter(after), nil }},
	} {
		if err := workflow.SetQueryHandlerWithOptions(secret.Asked(ctx), q.name, q.answer, workflow.QueryHandlerOptions{Description: q.about}); err != nil {
			return err
		}
	}
	return nil
}

// takes registers an update. Its validator tries it on a copy of the board, so that what the board refuses leaves no
// event; it returns once the board has done it, and a stop or a failure once nothing is under way any more.
func takes[Req any](ctx workflow.Context, l *lead, name, about string, do func(*job.Board, Req, time.Time) error) error {
	order := func(req Req) func(*job.Board, time.Time) error {
		return func(b *job.Board, now time.Time) error { return do(b, req, now) }
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, name,
		func(ctx workflow.Context, req Req) (job.View, error) { return l.obey(ctx, name, order(req)) },
		workflow.UpdateHandlerOptions{Description: about, Validator: func(ctx workflow.Context, req Req) error {
			return l.refusal(ctx, name, order(req))
		}})
}

// refusal says why the board would not do something; nil when it would, or has.
func (l *lead) refusal(ctx workflow.Context, name string, do func(*job.Board, time.Time) error) error {
	info := workflow.GetInfo(ctx)
	_, again := l.taken.Find(name, workflow.GetCurrentUpdateInfo(ctx).ID)
	switch {
	case again:
		return nil
	case len(l.orders) >= protocol.MaxQueuedUpdates:
		return protocol.Refuse(protocol.ErrTypeBusy, "%d other requests wait already: send this one again", len(l.orders))
	case info.GetCurrentHistoryLength() > workflows.MaxEvents || info.GetCurrentHistorySize() > graphadapter.HistoryRoom:
		return protocol.Refuse(protocol.ErrTypeBusy, "the run's history is full: it goes on in a new run once its attempts have ended")
	}
	return refusedJob(do(l.board.Copy(), l.now()))
}

// obey has the board do something.
func (l *lead) obey(ctx workflow.Context, name string, do func(*job.Board, time.Time) error) (job.View, error) {
	id := workflow.GetCurrentUpdateInfo(ctx).ID
	wait, _ := workflow.NewDisconnectedContext(ctx) // who asked knows the outcome also when the run is cancelled meanwhile
	if _, again := l.taken.Find(name, id); !again {
		o := &order{do: do}
		l.orders = append(l.orders, o)
		_ = workflow.Await(wait, func() bool { return o.done })
		if o.err != nil {
			return job.View{}, refusedJob(o.err)
		}
		l.taken.Took(name, id, nil)
	}
	if name == protocol.UpdateJobStop || name == protocol.UpdateJobFail {
		_ = workflow.Await(wait, func() bool { return l.board.Status.Final() })
	}
	return l.view(), nil
}

func (l *lead) view() job.View {
	v := l.board.View(l.now())
	v.Leader = l.in.Leader
	return v
}

// change adds and removes experts: all of them, or none.
func change(b *job.Board, req protocol.ChangeExperts, now time.Time) error {
	tried := b.Copy()
	for _, board := range []*job.Board{tried, b} {
		for _, p := range req.Add {
			if err := board.AddExpert(p, req.By, now); err != nil {
				return err
			}
		}
		for _, name := range req.Remove {
			if err := board.RemoveExpert(name, req.By, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// refusedJob is the error with which what a board refuses is turned away; nil for nil.
func refusedJob(err error) error {
	var refused *job.RefusedError
	if errors.As(err, &refused) {
		return temporal.NewNonRetryableApplicationError(refused.Error(), protocol.ErrTypeJobRefused, nil, refused)
	}
	return err
}

// holdBytes is how much history a leader's run has when it starts nothing any more until it can be continued as a new one.
const holdBytes = 20 << 20

// due reports whether the run is long enough to be continued as a new one.
func (l *lead) due(ctx workflow.Context) bool {
	info, at := workflow.GetInfo(ctx), l.in.ContinueAt.Filled()
	long := at.Long(info.GetCurrentHistoryLength(), info.GetCurrentHistorySize(), info.GetContinueAsNewSuggested())
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

// latest is when the latest event of a kind happened, zero when the board has none.
func (l *lead) latest(kind string) time.Time {
	for _, e := range slices.Backward(l.board.Events) {
		if e.Kind == kind {
			return e.Time
		}
	}
	return time.Time{}
}

// asks is what the leader itself asks people, nil for nothing. It is answered by [protocol.UpdateJobPlan] or [protocol.UpdateJobBudget].
func (l *lead) asks() *protocol.QuestionNote {
	b := l.board
	switch b.Phase {
	case job.PhaseApproving:
		plan := fmt.Sprintf("plan-%d", b.PlanVersion)
		return &protocol.QuestionNote{ID: plan, Node: "plan", At: l.latest("approving"), Asks: clip.Line(fmt.Sprintf("Run %s of job %s? Its goal: %s", plan, b.Job.ID, b.Job.Goal))}
	case job.PhaseOverBudget:
		return &protocol.QuestionNote{ID: "budget", Node: "budget", At: l.latest("over_budget"), Asks: clip.Line(fmt.Sprintf("Raise the budget of job %s, or stop it? %s", b.Job.ID,
			cmp.Or(b.Reason, "it is spent")))}
	}
	return nil
}
