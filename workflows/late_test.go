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
// first segment, as much more time, and so does one to whose worker workflow tasks come late now.
func TestWhoIsLateIsGivenMoreTime(t *testing.T) {
	for what, c := range map[string]struct {
		nodes     []string
		in        protocol.GraphInput
		late, now time.Duration
	}{
		"tasks":        {nodes: []string{"a", "b"}, late: 300 * time.Millisecond}, // a segment has one in sync mode
		"sync":         {nodes: []string{"a"}, late: 300 * time.Millisecond},
		"fused":        {nodes: []string{"a"}, in: protocol.GraphInput{Fused: true}, late: 300 * time.Millisecond},
		"async":        {nodes: []string{"a"}, in: protocol.GraphInput{Durability: graphadapter.DurabilityAsync}, late: 300 * time.Millisecond},
		"exit":         {nodes: []string{"a"}, in: protocol.GraphInput{Durability: graphadapter.DurabilityExit}, late: 300 * time.Millisecond},
		"tasks now":    {nodes: []string{"a", "b"}, now: 600 * time.Millisecond},
		"segment now":  {nodes: []string{"a"}, now: 600 * time.Millisecond},
		"far too late": {nodes: []string{"a"}, now: time.Hour},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			lateIsGivenMoreTime(t, c.nodes, c.in, c.late, c.now)
		})
	}
}

// lateIsGivenMoreTime starts a run of nodes that begin at once, which has its worker so much later, and whose worker has its tasks late now.
func lateIsGivenMoreTime(t *testing.T, names []string, in protocol.GraphInput, later, now time.Duration) {
	const idle, most = steady, 1500 * time.Millisecond
	r := newRig(t)
	r.late = func() time.Duration { return now }
	nodes, edges := map[string]graphadapter.Node{}, []pregel.Edge(nil)
	for _, name := range names {
		nodes[name] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			select {
			case <-time.After(time.Second): // longer than a segment stays within its workflow task
			case <-ctx.Done():
			}
			return writes("log", []string{name}), ctx.Err()
		}}
		edges = append(edges, to(pregel.Start, name))
	}
	g := graph("slow", nodes, names, edges...)
	thread := testserver.Queue(t)
	in.Graph, in.Spec, in.Input = g.Spec.Name, g.Spec, input(`{}`)
	run := r.start(thread, in)
	<-time.After(later)
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
			want := idle + min(2*max(late, now), most).Truncate(100*time.Millisecond)
			if got := e.GetActivityTaskScheduledEventAttributes().GetHeartbeatTimeout().AsDuration(); got != want {
				t.Errorf("a run that is begun after %v gives its task's heartbeats %v, want %v", late, got, want)
			}
			return
		}
	}
	t.Error("there is no activity")
}
