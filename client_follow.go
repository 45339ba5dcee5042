package superstep

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/history"
	"superstep.dev/workflows/protocol"
)

// Follow reports what a thread does from the moment of a view on, task by task, and returns when its run waits for
// answers, stands at a breakpoint, or has ended. The moment of the view that Start or Fork returned is the one before;
// a view with nothing but the thread's id stands for the beginning of its newest run, as does one of an earlier run.
// Branches that an update evaluates are no tasks. The end of ctx ends only the following. Errors: ErrNotFound, ErrNoServer.
func (c *Client) Follow(ctx context.Context, since ThreadView, on func(Progress)) (ThreadView, error) {
	thread := since.Thread
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return ThreadView{}, err
	}
	from, behind := last.first, int64(0)
	if since.RunID == last.runID || since.RunID != "" && c.continues(ctx, last, since.RunID) {
		from, behind = since.RunID, since.Events
	}
	return c.follow(ctx, last, from, behind, func(s history.Step) {
		for _, p := range progressOf(s) {
			on(p)
		}
	})
}

// Wait is Follow of a thread without the reports.
func (c *Client) Wait(ctx context.Context, thread string) (ThreadView, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return ThreadView{}, err
	}
	return c.follow(ctx, last, last.runID, 0, func(history.Step) {})
}

// continues reports whether a thread's last run is one that an earlier one was continued as.
func (c *Client) continues(ctx context.Context, last *lastRun, run string) bool {
	described, err := c.temporal.DescribeWorkflowExecution(ctx, last.thread, run)
	return err == nil && described.GetWorkflowExecutionInfo().GetFirstRunId() == last.first
}

// follow reports what happens from a run on, behind one of its events, and in the runs that it is continued as. A run that
// the server has no more is left out.
func (c *Client) follow(ctx context.Context, last *lastRun, run string, behind int64, on func(history.Step)) (ThreadView, error) {
	for run != "" {
		var still ThreadView
		closed, err := c.tail.Run(ctx, last.thread, run, behind, on, func() (stands bool, err error) {
			still, stands, err = c.standsStill(ctx, last, run)
			return stands, err
		})
		var gone *serviceerror.NotFound
		switch {
		case ctx.Err() != nil:
			return ThreadView{}, ctx.Err()
		case errors.As(err, &gone) && run != last.runID:
			run, behind = last.runID, 0
			continue
		case err != nil:
			return ThreadView{}, c.explain(err, last.graph, last.thread)
		case closed == nil:
			return still, nil
		}
		run, behind = closed.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(), 0
	}
	return c.Show(ctx, last.thread)
}

// standsStill asks the run itself: between two of its steps its history looks the same as when it waits. The view is that
// of the thread while it stands; a wait that is over by then was none.
func (c *Client) standsStill(ctx context.Context, last *lastRun, run string) (view ThreadView, stands bool, err error) {
	asked := *last
	asked.runID = run
	var s protocol.State
	if err := c.query(ctx, &asked, protocol.QueryOutline, &s); errors.Is(err, ErrNoWorker) {
		return view, false, nil // a worker was lost just now; the next one has more to tell
	} else if err != nil || s.Status == protocol.StatusRunning {
		return view, false, err
	}
	view, err = c.Show(ctx, last.thread)
	return view, err == nil && view.Status != StatusRunning, err
}

// progressOf turns one step of a history into lines for people: a task that asked several questions gives several.
func progressOf(s history.Step) []Progress {
	p := Progress{Step: s.Request.Task.Step, Node: s.Request.Task.Node, State: ProgressStarted, Attempt: int(s.Attempt),
		Duration: time.Duration(s.Took)}
	if s.Started {
		return []Progress{p}
	}
	if s.Outcome == nil {
		p.State, p.Error = ProgressFailed, s.Failure
		return []Progress{p}
	}
	if s.Outcome.Error != nil {
		p.State, p.Error = ProgressFailed, s.Outcome.Error.Error()
		return []Progress{p}
	}
	p.State, p.Next = ProgressOK, chosen(s.Outcome)
	for _, e := range s.Outcome.Emitted {
		if e.Kind == pregel.EmissionCustom {
			p.Notes = append(p.Notes, e.Value)
		}
	}
	if len(s.Outcome.Questions) == 0 {
		return []Progress{p}
	}
	var out []Progress
	for _, q := range s.Outcome.Questions {
		asks := p
		asks.State = ProgressWaiting
		if q.Event != "" {
			asks.Event = q.Event
			out = append(out, asks)
			continue
		}
		view := questionView(q, p.Node, p.Step)
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
