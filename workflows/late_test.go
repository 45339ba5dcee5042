package workflows_test

import (
	"context"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestWhoIsLateIsGivenMoreTime: a run that is begun late, as nobody was there or all were busy, gives the heartbeats of its tasks, or of its
// first segment, as much more time; one that is begun at once does not.
func TestWhoIsLateIsGivenMoreTime(t *testing.T) {
	for mode, in := range map[string]protocol.GraphInput{
		"sync": {}, "fused": {Fused: true}, "async": {Durability: graphadapter.DurabilityAsync}, "exit": {Durability: graphadapter.DurabilityExit},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			lateIsGivenMoreTime(t, in)
		})
	}
}

func lateIsGivenMoreTime(t *testing.T, in protocol.GraphInput) {
	const idle, most = steady, 1500 * time.Millisecond
	r := newRig(t)
	g := graph("slow", map[string]graphadapter.Node{"a": {Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		select {
		case <-time.After(time.Second): // longer than a segment stays within its workflow task
		case <-ctx.Done():
		}
		return writes("log", []string{"a"}), ctx.Err()
	}}}, []string{"a"}, to(pregel.Start, "a"))
	thread := testserver.Queue(t)
	in.Graph, in.Spec, in.Input = g.Spec.Name, g.Spec, input(`{}`)
	run := r.start(thread, in)
	<-time.After(300 * time.Millisecond) // there is no worker yet
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
