package remote

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/history"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// EffectsOf implements runtime.Runtime.
func (c *reader) EffectsOf(ctx context.Context, g *graphadapter.Graph, threadID string) (thread.EffectsView, error) {
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return thread.EffectsView{}, err
	}
	effects, gone, err := allEffects(ctx, c, g, last)
	if err != nil {
		return thread.EffectsView{}, err
	}
	return thread.EffectsView{Thread: threadID, Graph: last.graph, Status: statusOf(last.status), Gone: gone,
		Effects: runtime.EffectsView(effects.All())}, nil
}

// OriginOf implements runtime.Runtime.
func (c *reader) OriginOf(ctx context.Context, g *graphadapter.Graph, threadID, checkpoint string) (past.Origin, error) {
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return past.Origin{}, err
	}
	effects, _, err := allEffects(ctx, c, g, last)
	if err != nil {
		return past.Origin{}, err
	}
	return effects.Origin(checkpoint), nil
}

// allEffects are the effects of all runs of a thread that the server still has, and of tasks under way; gone counts the others.
func allEffects(ctx context.Context, c *reader, g *graphadapter.Graph, last *lastRun) (effects *past.Effects, gone int, err error) {
	walk := EffectsWalk{Tail: &c.tail, Graph: c.graphOr(g, last), Thread: last.thread}
	effects, err = walk.Back(ctx, last.runID, func(*past.Effects) bool { return false })
	if err != nil {
		return nil, 0, c.explainReplay(err, last)
	}
	if last.open {
		c.addUntaken(walk.newest, effects)
		c.addUnderWay(last, effects)
	}
	return effects, walk.Gone, nil
}

// addUnderWay adds what the tasks under way have stored with their heartbeats.
func (c *reader) addUnderWay(last *lastRun, effects *past.Effects) {
	for _, a := range last.described.GetPendingActivities() {
		switch a.GetActivityType().GetName() {
		case taskrun.StandingActivity, taskrun.CompensateActivity, taskrun.RewindActivity:
			continue // they call nothing but what undoes effects
		}
		c.addStored(a, effects)
	}
}

// addUntaken adds what tasks have come back with that no workflow task has taken in yet: a replay does not tell of it, and
// while no worker runs nobody else does.
func (c *reader) addUntaken(events []*historypb.HistoryEvent, effects *past.Effects) {
	taken := 0
	for i, e := range events {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			taken = i + 1
		}
	}
	for _, e := range events[taken:] {
		completed, failed := e.GetActivityTaskCompletedEventAttributes(), e.GetActivityTaskFailedEventAttributes()
		at := int(max(completed.GetScheduledEventId(), failed.GetScheduledEventId())) - 1
		if at < 0 || at >= len(events) {
			continue
		}
		scheduled, since := events[at].GetActivityTaskScheduledEventAttributes(), e.GetEventTime().AsTime()
		if completed != nil {
			c.addResult(scheduled.GetActivityType().GetName(), scheduled.GetActivityId(), completed.GetResult(), since, effects)
			continue
		}
		var left graphadapter.NodeFailure
		if c.cfg.DataConverter.FromPayloads(failureDetails(failed.GetFailure()), &left) == nil {
			_, node, _ := strings.Cut(scheduled.GetActivityType().GetName(), ".")
			effects.UnderWay(node, protocol.StepOf(scheduled.GetActivityId()), left.Ledger, since)
		}
	}
}

// addResult adds what a task's activity, or a segment's, has returned.
func (c *reader) addResult(kind, id string, result *commonpb.Payloads, at time.Time, effects *past.Effects) {
	_, node, isNode := strings.Cut(kind, ".")
	var outcome pregel.Outcome
	switch {
	case kind == segment.SegmentActivity:
		var encoded []byte
		if c.cfg.DataConverter.FromPayloads(result, &encoded) != nil {
			return
		}
		ran, err := segment.DecodeWhole(encoded)
		if err != nil {
			return
		}
		for _, d := range ran.Deliveries {
			step, node := d.Place()
			effects.UnderWay(node, step, d.Outcome.Ledger, at)
		}
		for _, key := range slices.Sorted(maps.Keys(ran.Left)) {
			step, node := segment.Delivery{Key: key}.Place()
			effects.UnderWay(node, step, ran.Left[key], at)
		}
	case isNode && c.cfg.DataConverter.FromPayloads(result, &outcome) == nil:
		effects.UnderWay(node, protocol.StepOf(id), outcome.Ledger, at)
	}
}

// addStored adds what a task under way, or a segment, has stored: what its tasks did that have ended, and those that have not.
// In exit mode it stores nothing before its end.
func (c *reader) addStored(a *workflowpb.PendingActivityInfo, effects *past.Effects) {
	var progress graphadapter.Progress
	var record []byte
	if c.cfg.DataConverter.FromPayloads(a.GetHeartbeatDetails(), &progress, &record) != nil {
		return
	}
	since := a.GetLastHeartbeatTime().AsTime()
	if deliveries, err := segment.DecodeRecord(record); err == nil {
		for _, d := range deliveries {
			step, node := d.Place()
			effects.UnderWay(node, step, d.Outcome.Ledger, since)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(progress.Tasks)) {
		step, node := segment.Delivery{Key: key}.Place()
		effects.UnderWay(node, step, progress.Tasks[key], since)
	}
}

// EffectsWalk reads the effects of a thread's runs, from one run back. It holds one run's events at a time.
type EffectsWalk struct {
	Tail   *history.Tail
	Graph  *graphadapter.Graph // nil when it is not known here
	Thread string
	Gone   int                       // runs of the thread that the server has no more
	newest []*historypb.HistoryEvent // of the first run that is read
}

// Back reads runs until enough says so of the last one read, or to the oldest that the server still has. The error may be
// an *workflows.UnreadableError.
func (w *EffectsWalk) Back(ctx context.Context, runID string, enough func(*past.Effects) bool) (*past.Effects, error) {
	var runs []*past.Effects
	var ids []string
	var lines []protocol.Line
	for id := runID; id != ""; {
		effects, in, err := w.run(ctx, id)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) && len(runs) > 0 {
			w.Gone = max(1, goneRuns(lines, ids))
			break
		}
		if err != nil {
			return nil, err
		}
		runs, ids, lines = append(runs, effects), append(ids, id), in.Lines
		if id = in.Previous; enough(effects) {
			break
		}
	}
	all := past.NewEffects("", nil)
	for _, run := range slices.Backward(runs) {
		all.Continue(run)
	}
	return all, nil
}

// run replays one run.
func (w *EffectsWalk) run(ctx context.Context, id string) (*past.Effects, protocol.GraphInput, error) {
	var in protocol.GraphInput
	events, err := w.Tail.All(ctx, w.Thread, id)
	if err != nil {
		return nil, in, err
	}
	if w.newest == nil {
		w.newest = events
	}
	if len(events) > 0 {
		started := events[0].GetWorkflowExecutionStartedEventAttributes()
		if err := w.Tail.Converter.FromPayloads(started.GetInput(), &in); err != nil {
			return nil, in, err
		}
	}
	effects := past.NewEffects(id, timeIn(events))
	return effects, in, w.Tail.ReplayEvents(w.Thread, id, events, workflows.NewReader(w.Graph, effects))
}

// timeIn tells the time of a run's events by their ids.
func timeIn(events []*historypb.HistoryEvent) func(int64) time.Time {
	return func(at int64) time.Time {
		if at < 1 || at > int64(len(events)) {
			return time.Time{}
		}
		return events[at-1].GetEventTime().AsTime()
	}
}

// goneRuns counts the runs that made these checkpoints, without those that are there.
func goneRuns(lines []protocol.Line, there []string) int {
	gone := map[string]bool{}
	for _, l := range lines {
		if l.Run != "" && !slices.Contains(there, l.Run) {
			gone[l.Run] = true
		}
	}
	return len(gone)
}
