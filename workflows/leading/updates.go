package leading

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/job"
	"superstep.dev/workflows"
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
		if err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.answer, workflow.QueryHandlerOptions{Description: q.about}); err != nil {
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
