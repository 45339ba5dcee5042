package remote

import (
	"cmp"
	"context"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/tape"
)

// lookInterval is how often a feed asks what a segment under way has stored.
const lookInterval = 500 * time.Millisecond

// ahead reads what a segment under way has stored with its heartbeats: what the run's history will tell when the segment
// has ended.
type ahead struct {
	activityID string
	loop       *pregel.Loop // nil when what is stored is none of this loop's
	ready      []*pregel.Task
	deliveries int // made so far
	tape       []tape.Entry
}

// handed is a run as it was handed to a segment.
type handed struct {
	activityID string
	program    *pregel.Program
	suspended  pregel.Value
}

// ahead returns the reader of the segment, nil when events say that it has ended, or when this process cannot read it.
func (h *handed) ahead(events []*historypb.HistoryEvent) *ahead {
	if h == nil || !underWay(events, h.activityID) {
		return nil
	}
	a := &ahead{activityID: h.activityID}
	loop, err := h.program.Restore(h.suspended, func(e pregel.Event) {
		a.tape = append(a.tape, tape.Entry{Ahead: true, Event: e})
	})
	if err != nil {
		return nil
	}
	a.loop, a.ready = loop, loop.Ready()
	return a
}

// underWay reports whether an activity was scheduled and has not ended.
func underWay(events []*historypb.HistoryEvent, activityID string) bool {
	scheduled := slices.IndexFunc(events, func(e *historypb.HistoryEvent) bool {
		return e.GetActivityTaskScheduledEventAttributes().GetActivityId() == activityID
	})
	return scheduled >= 0 && !slices.ContainsFunc(events[scheduled:], func(e *historypb.HistoryEvent) bool {
		return endOf(e) == events[scheduled].GetEventId()
	})
}

// endOf is the event that scheduled the activity whose end an event is; 0 for other events.
func endOf(e *historypb.HistoryEvent) int64 {
	return cmp.Or(
		e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskFailedEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(),
	)
}

// Read takes in a record; it reports whether there was news. One that cannot be read tells nothing.
func (a *ahead) Read(details *commonpb.Payloads, c converter.DataConverter) bool {
	var progress graphadapter.Progress
	var record []byte
	if a.loop == nil || len(details.GetPayloads()) == 0 || c.FromPayloads(details, &progress, &record) != nil {
		return false
	}
	all, err := segment.DecodeRecord(record)
	if err != nil || len(all) <= a.deliveries {
		return false
	}
	had := len(a.tape)
	if a.ready, err = segment.Redeliver(a.loop, a.ready, all[a.deliveries:], nil); err != nil {
		a.tape, a.loop = a.tape[:had], nil // this process's reducers are others: the history tells, later
		return false
	}
	a.deliveries = len(all)
	return true
}

// look asks the server what the segment has stored; it reports whether there was news.
func (f *feed) look(ctx context.Context, a *ahead) bool {
	described, err := f.client.temporal.DescribeWorkflowExecution(ctx, f.key.thread, f.key.run)
	if err != nil {
		return false
	}
	at := slices.IndexFunc(described.GetPendingActivities(), func(p *workflowpb.PendingActivityInfo) bool {
		return p.GetActivityId() == a.activityID
	})
	return at >= 0 && a.Read(described.GetPendingActivities()[at].GetHeartbeatDetails(), f.client.tail.Converter)
}
