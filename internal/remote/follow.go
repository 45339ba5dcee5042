package remote

import (
	"context"
	"errors"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/follow"
	"superstep.dev/internal/history"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Follow reports what a thread does from the moment of a view on, task by task, and returns when its run waits for answers,
// stands at a breakpoint, or has ended.
func (c *Threads) Follow(ctx context.Context, since thread.View, on func(thread.Progress)) (thread.View, error) {
	threadID := since.Thread
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return thread.View{}, err
	}
	from, behind := last.first, int64(0)
	if since.RunID == last.runID || since.RunID != "" && c.continues(ctx, last, since.RunID) {
		from, behind = since.RunID, since.Events
	}
	report := follow.New(progressOf, on)
	stop := report.Watch(ctx, tasksUnderWay(c.reader, threadID))
	defer stop()
	return c.follow(ctx, last, from, behind, report.Step)
}

// tasksUnderWay asks the server about the tasks under way of a thread, and a worker about the nodes of a segment.
func tasksUnderWay(c *reader, threadID string) follow.Server {
	return follow.Server{
		UnderWay: func(ctx context.Context) ([]history.Attempt, error) {
			now, err := c.theLastRun(ctx, threadID)
			if err != nil || !now.open {
				return nil, err
			}
			return history.Attempts(c.cfg.DataConverter, now.described.GetPendingActivities()), nil
		},
		Named: func(ctx context.Context, p thread.Progress) (all []thread.Progress) {
			now, err := c.theLastRun(ctx, threadID)
			if err != nil {
				return nil
			}
			state, err := c.stateAsked(ctx, now)
			if err != nil {
				return nil
			}
			for _, node := range state.Running {
				p.Step, p.Node = state.Snapshot.Step+1, node
				all = append(all, p)
			}
			return all
		},
	}
}

// continues reports whether a thread's last run is one that an earlier one was continued as.
func (c *Threads) continues(ctx context.Context, last *lastRun, run string) bool {
	described, err := c.temporal.DescribeWorkflowExecution(ctx, last.thread, run)
	return err == nil && described.GetWorkflowExecutionInfo().GetFirstRunId() == last.first
}

// follow reports what happens from a run on, behind one of its events, and in the runs that it is continued as. A run that
// the server has no more is left out.
func (c *Threads) follow(ctx context.Context, last *lastRun, run string, behind int64, on func(history.Step)) (thread.View, error) {
	for run != "" {
		var still thread.View
		closed, err := c.tail.Run(ctx, last.thread, run, behind, on, func() (stands bool, err error) {
			now, err := c.theLastRun(ctx, last.thread) // before the run is asked: what happens from then on is behind the view
			if err == nil && now.runID == run && now.open {
				still, stands, err = c.standsStill(ctx, now)
			}
			return stands, err
		})
		var gone *serviceerror.NotFound
		switch {
		case ctx.Err() != nil:
			return thread.View{}, ctx.Err()
		case errors.As(err, &gone) && run != last.runID:
			run, behind = last.runID, 0
			continue
		case err != nil:
			return thread.View{}, c.explain(err, last.graph, last.thread)
		case closed == nil:
			return still, nil
		}
		next := closed.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if next == "" {
			return c.showEnded(ctx, last.thread, run, closed)
		}
		run, behind = next, 0
	}
	return c.Show(ctx, last.thread)
}

// showEnded is Show of a thread of which a run has just ended, with the event that says so.
func (c *reader) showEnded(ctx context.Context, threadID, run string, closed *historypb.HistoryEvent) (thread.View, error) {
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return thread.View{}, err
	}
	if last.runID == run {
		last.closing = closed
	}
	return c.show(ctx, last)
}

// standsStill asks the run itself: between two of its steps its history looks the same as when it waits. The view is that
// of the thread while it stands; a wait that is over by then was none.
func (c *reader) standsStill(ctx context.Context, now *lastRun) (view thread.View, stands bool, err error) {
	if !now.open {
		return view, false, nil
	}
	var s protocol.State
	err = c.query(ctx, now, protocol.QueryState, &s)
	switch {
	case errors.Is(err, errTooLarge):
		view, err = c.show(ctx, now)
		return view, err == nil && view.Status != thread.StatusRunning, err
	case unanswered(err):
		return view, false, nil // a worker was lost just now; the next one has more to tell
	case err != nil || s.Status == protocol.StatusRunning:
		return view, false, err
	}
	view = c.viewOf(now)
	view.Problem, err = c.problem(ctx, now)
	c.addTo(&view, now, s)
	return view, err == nil && (view.Held || !view.Status.Unfinished()), err // else the run is about to end
}

// progressOf turns one step of a history into lines for people: a task that asked several questions gives several.
func progressOf(s history.Step) []thread.Progress {
	p := thread.Progress{Step: s.Request.Task.Step, Node: s.Request.Task.Node, State: thread.ProgressStarted, Attempt: int(s.Attempt),
		Duration: time.Duration(s.Took), Task: s.Task}
	if s.Started {
		return []thread.Progress{p}
	}
	if s.Outcome == nil {
		p.State, p.Error = thread.ProgressFailed, s.Failure
		return []thread.Progress{p}
	}
	if s.Outcome.Error != nil {
		p.State, p.Error = thread.ProgressFailed, s.Outcome.Error.Error()
		return []thread.Progress{p}
	}
	p.State, p.Next = thread.ProgressOK, chosen(s.Outcome)
	for _, e := range s.Outcome.Emitted {
		if e.Kind == pregel.EmissionCustom {
			p.Notes = append(p.Notes, e.Value)
		}
	}
	if len(s.Outcome.Questions) == 0 {
		return []thread.Progress{p}
	}
	var out []thread.Progress
	for _, q := range s.Outcome.Questions {
		asks := p
		asks.State = thread.ProgressWaiting
		if q.Event != "" {
			asks.Event = q.Event
			out = append(out, asks)
			continue
		}
		view := runtime.QuestionView(q, p.Node, p.Step)
		asks.Question = &view
		out = append(out, asks)
	}
	return out
}

// chosen are the nodes that branches or a command picked; those of plain edges go without saying.
func chosen(o *pregel.Outcome) []string {
	var out []string
	for _, t := range append(o.Goto, o.Routes...) {
		out = append(out, t.Node)
	}
	return out
}
