package workflows_test

import (
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestWhoIsLateIsGivenMoreTime: a run that is begun late, as nobody was there or all were busy, gives its tasks' heartbeats as
// much more time; one that is begun at once does not.
func TestWhoIsLateIsGivenMoreTime(t *testing.T) {
	t.Parallel()
	const idle, most = steady, 1500 * time.Millisecond
	r := newRig(t)
	g := crowdGraph(2, &crowd{})
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: g.Spec.Name, Spec: g.Spec, Input: input(`{}`)}) // there is no worker yet
	r.work(g)
	r.finished(run)
	var started, begun time.Time
	events := r.client.GetWorkflowHistory(r.ctx, thread, run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			started = e.GetEventTime().AsTime()
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
			if begun.IsZero() {
				begun = e.GetEventTime().AsTime()
			}
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			late := begun.Sub(started)
			want := idle + min(2*late, most).Truncate(100*time.Millisecond)
			if got := e.GetActivityTaskScheduledEventAttributes().GetHeartbeatTimeout().AsDuration(); got != want {
				t.Errorf("a run that is begun after %v gives its task's heartbeats %v, want %v", late, got, want)
			}
			return
		}
	}
	t.Error("there is no activity")
}
