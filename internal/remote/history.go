package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// HistoryOf implements runtime.Runtime.
func (c *reader) HistoryOf(ctx context.Context, g *graphadapter.Graph, r thread.HistoryRequest) ([]thread.CheckpointView, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return nil, err
	}
	g = c.graphOr(g, last)
	whole := r.Values || len(r.Subgraph) > 0
	past, earlier, err := c.pastOf(ctx, g, last, func(ch *chain) bool {
		return !whole && len(ch.runs[0].in.Lines) < protocol.CarriedLines
	})
	var unreadable *workflows.UnreadableError
	if errors.As(err, &unreadable) && !whole {
		return c.historyAsked(ctx, last, r)
	}
	if err != nil {
		return nil, err
	}
	made, err := past.HistoryAt(r.Subgraph, r.Checkpoint)
	if err != nil && len(r.Subgraph) > 0 {
		return nil, runtime.NoSubgraph(last.graph, r.Thread, r.Subgraph, err)
	}
	if err != nil {
		return nil, c.explain(err, last.graph, r.Thread)
	}
	if !whole {
		made = joinLines(made, earlier)
	}
	return runtime.HistoryView(last.graph, made, r)
}

// historyAsked lets a worker tell the history, at most the last 1,000 checkpoints.
func (c *reader) historyAsked(ctx context.Context, last *lastRun, r thread.HistoryRequest) ([]thread.CheckpointView, error) {
	var lines []protocol.Line
	if err := c.query(ctx, last, protocol.QueryHistory, &lines); err != nil {
		return nil, err
	}
	return runtime.HistoryView(last.graph, joinLines(nil, lines), r)
}

// joinLines adds the checkpoints of earlier runs, as they were noted, to those that were replayed, newest first.
func joinLines(replayed []past.Checkpoint, earlier []protocol.Line) []past.Checkpoint {
	out := notNoted(replayed, earlier)
	for _, l := range slices.Backward(earlier) {
		next := l.Next
		if next == nil {
			next = []string{}
		}
		out = append(out, past.Checkpoint{Ran: l.Ran, Wrote: l.Wrote, When: runtime.MadeAt(l.At), Snapshot: &pregel.Snapshot{
			Checkpoint: l.Checkpoint, Parent: l.Parent, Source: l.Source, Step: l.Step, Next: next}})
	}
	return out
}

// linesUntil are the latest checkpoints of a thread up to one of them, oldest first, as a copy notes them.
func linesUntil(of *past.Past, earlier []protocol.Line, checkpoint string) ([]protocol.Line, error) {
	made, err := of.Until(checkpoint).History(nil)
	if err != nil {
		return nil, err
	}
	lines := slices.Clone(earlier)
	for _, c := range slices.Backward(notNoted(made, earlier)) {
		l := protocol.Line{Step: c.Step, Checkpoint: c.Checkpoint, Parent: c.Parent, Source: c.Source, Ran: c.Ran, Wrote: c.Wrote, Next: c.Next, Run: c.Run}
		if !c.When.IsZero() {
			l.At = c.When.UnixMilli()
		}
		lines = append(lines, l)
	}
	if last := slices.IndexFunc(lines, func(l protocol.Line) bool { return l.Checkpoint == checkpoint }); last >= 0 {
		lines = lines[:last+1]
	}
	return lines[max(0, len(lines)-protocol.CarriedLines):], nil
}

// notNoted are the checkpoints that were replayed and not noted of earlier runs: a run's first is often its predecessor's last.
func notNoted(replayed []past.Checkpoint, earlier []protocol.Line) []past.Checkpoint {
	noted := map[string]bool{}
	for _, l := range earlier {
		noted[l.Checkpoint] = true
	}
	return slices.DeleteFunc(slices.Clone(replayed), func(c past.Checkpoint) bool { return noted[c.Checkpoint] })
}

// chain is a thread's runs, newest first, as far as they have been fetched.
type chain struct{ runs []chainRun }

type chainRun struct {
	// thread is the run's, which is another than the chain's for what came before the thread was copied.
	thread, id string
	in         protocol.GraphInput
	events     []*historypb.HistoryEvent
}

// pastOf replays a thread's runs from the newest back to the one at which enough says so, or to the oldest that the
// server still has. earlier are the checkpoints that were noted of the runs before.
func (c *reader) pastOf(ctx context.Context, g *graphadapter.Graph, last *lastRun, enough func(*chain) bool) (of *past.Past, earlier []protocol.Line, err error) {
	var ch chain
	for thread, id := last.thread, last.runID; id != ""; thread, id = ch.before() {
		run, err := c.fetchRun(ctx, thread, id)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) && len(ch.runs) > 0 {
			break // beyond retention
		}
		if err != nil {
			return nil, nil, c.explain(err, last.graph, last.thread)
		}
		ch.runs = append(ch.runs, run)
		if enough(&ch) {
			break
		}
	}
	of = past.NewPast()
	for _, run := range slices.Backward(ch.runs) {
		if origin := run.in.Origin; origin != nil {
			of = of.Until(origin.Checkpoint)
		}
		of.Clock, of.Run = run.when, run.id
		if err := c.tail.ReplayEvents(run.thread, run.id, run.events, workflows.NewReader(g, of)); err != nil {
			return nil, nil, c.explainReplay(err, last)
		}
	}
	return of, ch.runs[len(ch.runs)-1].in.Lines, nil
}

// before is the run before the oldest that has been fetched, of the thread or of the one that the thread was copied from; "" for none.
func (ch *chain) before() (thread, id string) {
	oldest := ch.runs[len(ch.runs)-1]
	if oldest.in.Origin != nil {
		return oldest.in.Origin.Thread, oldest.in.Origin.Run
	}
	return oldest.thread, oldest.in.Previous
}

// when is the time of an event; what the run says at a position happened when its workflow task began. It is as
// precise as what a run notes of its checkpoints: a millisecond.
func (r chainRun) when(at int64) time.Time {
	if at < 1 || at > int64(len(r.events)) {
		return time.Time{}
	}
	return runtime.MadeAt(r.events[at-1].GetEventTime().AsTime().UnixMilli())
}

func (c *reader) fetchRun(ctx context.Context, thread, id string) (chainRun, error) {
	run := chainRun{thread: thread, id: id}
	var err error
	if run.events, err = c.tail.All(ctx, thread, id); err != nil {
		return run, err
	}
	if len(run.events) == 0 {
		return run, fmt.Errorf("run %s has no events", id)
	}
	started := run.events[0].GetWorkflowExecutionStartedEventAttributes()
	return run, c.decode(started.GetInput(), &run.in)
}

// pastWith replays the runs that are needed to know a checkpoint, "" for the newest: the one that made it, and all since. Each run
// knows who made the checkpoints before it.
func (c *reader) pastWith(ctx context.Context, g *graphadapter.Graph, last *lastRun, checkpoint string) (of *past.Past, earlier []protocol.Line, err error) {
	if checkpoint == "" {
		return c.pastOf(ctx, g, last, func(*chain) bool { return true })
	}
	in, err := c.inputOf(ctx, last.thread, last.runID)
	if err != nil {
		return nil, nil, err
	}
	if len(in.Lines) >= protocol.CarriedLines { // the newest run of a long thread may be all that it takes
		of, earlier, err = c.pastOf(ctx, g, last, func(*chain) bool { return true })
		if err != nil || of.Made(checkpoint) {
			return of, earlier, err
		}
	}
	made, noted := "", false
	of, earlier, err = c.pastOf(ctx, g, last, func(ch *chain) bool {
		oldest := ch.runs[len(ch.runs)-1]
		for _, l := range oldest.in.Lines {
			if l.Checkpoint == checkpoint {
				made, noted = l.Run, true
			}
		}
		if noted {
			return oldest.id == made
		}
		return len(oldest.in.Lines) < protocol.CarriedLines // it is of a run that is here, or of none
	})
	if err != nil {
		return nil, nil, err
	}
	if _, ok, _ := of.Snapshot(checkpoint); !ok && noted {
		return nil, nil, &thread.Error{Kind: thread.ErrNotFound, Graph: last.graph, Thread: last.thread,
			Message: fmt.Sprintf("checkpoint %q of thread %q is of run %s, which the server has no more", checkpoint, last.thread, made),
			Do:      "Choose a newer one", Command: []string{"history", last.thread}}
	}
	return of, earlier, nil
}

func (c *reader) explainReplay(err error, last *lastRun) error {
	var unreadable *workflows.UnreadableError
	if errors.As(err, &unreadable) {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: last.thread, Cause: unreadable,
			Message: fmt.Sprintf("the past of thread %q cannot be read here", last.thread)}
	}
	return c.explain(err, last.graph, last.thread)
}

// AuditOf implements runtime.Runtime.
func (c *reader) AuditOf(ctx context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return nil, approval.Chain{}, err
	}
	g = c.graphOr(g, last)
	var pages [][]approval.Entry
	var before approval.Chain
	for id := last.runID; id != ""; {
		entries, in, err := c.auditRun(ctx, g, last, id)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) && len(pages) > 0 {
			break
		}
		if err != nil {
			return nil, approval.Chain{}, c.explainReplay(err, last)
		}
		pages, before = append(pages, entries), approval.Chain{}
		before = in.Life.Chain
		if id = in.Previous; before.Count == 0 {
			break
		}
	}
	slices.Reverse(pages)
	entries := slices.Concat(pages...)
	chain, err := approval.VerifyEntries(before, entries)
	return entries, chain, err
}

// ExportOf implements runtime.Runtime.
func (c *reader) ExportOf(ctx context.Context, g *graphadapter.Graph, threadID string) (approval.Export, error) {
	var x approval.Export
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return x, err
	}
	var head protocol.AuditReply
	if err := c.query(ctx, last, protocol.QueryAudit, &head); err != nil && !unanswered(err) {
		return x, err
	}
	if head.Problem != "" {
		return x, &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: threadID, Message: "the worker cannot sign the audit: " + head.Problem,
			Do: "Give the workers another audit key"}
	}
	if x.Entries, x.Chain, err = c.AuditOf(ctx, g, threadID); err != nil || head.Signed == "" {
		return x, err
	}
	x.Signed = head.Signed
	// More may have happened since it was signed, and another run may have begun.
	kept := slices.IndexFunc(x.Entries, func(e approval.Entry) bool { return e.Seq > head.Chain.Count })
	if kept >= 0 {
		x.Entries = x.Entries[:kept]
		x.Chain = head.Chain
	}
	return x, x.Chain.Ends(head.Chain)
}

// auditRun reads what one run added to the audit.
func (c *reader) auditRun(ctx context.Context, g *graphadapter.Graph, last *lastRun, id string) ([]approval.Entry, protocol.GraphInput, error) {
	run, err := c.fetchRun(ctx, last.thread, id)
	if err != nil {
		return nil, run.in, err
	}
	var audit graphadapter.Audit
	err = c.tail.ReplayEvents(last.thread, id, run.events, workflows.NewReader(g, &audit))
	return audit.Entries, run.in, err
}
