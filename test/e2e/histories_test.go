package e2e_test

import (
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter/segment"
)

// told is what the history of a thread's newest run tells of how its nodes came to run.
type told struct {
	activities []string // the types of those that were scheduled, in their order
	attempts   []int32  // those at which they ended, or wait for an end that has come
	expired    int      // activities that timed out for good
	late       []enumspb.TimeoutType
	openings   int
	outcomes   int       // of nodes
	began      time.Time // when the first workflow task did
}

// past reads the history of a thread's newest run.
func (r *rig) past(threadID string) (h told) {
	r.t.Helper()
	kinds := map[int64]string{}
	events := r.temporal.GetWorkflowHistory(r.t.Context(), threadID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(r.t, err)
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			if h.began.IsZero() {
				h.began = e.GetEventTime().AsTime()
			}
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			h.late = append(h.late, e.GetWorkflowTaskTimedOutEventAttributes().GetTimeoutType())
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			kinds[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
			h.activities = append(h.activities, kinds[e.GetEventId()])
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			h.attempts = append(h.attempts, e.GetActivityTaskStartedEventAttributes().GetAttempt())
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
			h.expired++
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			ended := e.GetActivityTaskCompletedEventAttributes()
			if kinds[ended.GetScheduledEventId()] != segment.SegmentActivity {
				h.outcomes++ // a task's own activity
				continue
			}
			var encoded []byte
			require.NoError(r.t, converter.GetDefaultDataConverter().FromPayloads(ended.GetResult(), &encoded))
			h.brought(r, encoded)
		case enumspb.EVENT_TYPE_MARKER_RECORDED:
			h.opened(r, e)
		}
	}
	return h
}

// opened takes in what a segment's opening came to: nothing where it goes on in its activity.
func (h *told) opened(r *rig, e *historypb.HistoryEvent) {
	r.t.Helper()
	marker := e.GetMarkerRecordedEventAttributes()
	if marker.GetMarkerName() != "LocalActivity" {
		return
	}
	var local struct{ ActivityType string } // as the SDK's marker names it
	require.NoError(r.t, converter.GetDefaultDataConverter().FromPayloads(marker.GetDetails()["data"], &local))
	if local.ActivityType != segment.OpeningActivity {
		return
	}
	h.openings++
	var encoded []byte
	require.NoError(r.t, converter.GetDefaultDataConverter().FromPayloads(marker.GetDetails()["result"], &encoded))
	if len(encoded) > 0 {
		h.brought(r, encoded)
	}
}

// brought takes in the outcomes of a segment.
func (h *told) brought(r *rig, encoded []byte) {
	r.t.Helper()
	result, err := segment.DecodeWhole(encoded)
	require.NoError(r.t, err)
	h.outcomes += len(result.Deliveries)
}
