package remote

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/acked"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// lingersFor is how long a graph, in a mode, is remembered whose run did not end in its first workflow task: it takes fewer calls to begin
// another one together with the wait for it. To be wrong costs a call.
const lingersFor = time.Minute

// here begins runs that may end in this process.
type here struct{ *Threads }

// may reports whether a new run is best begun by a worker of this process, on this very client: Temporal gives it to that
// worker with the reply to the start, and the worker's own call says that it has ended.
func (c here) may(req runtime.Start) bool {
	return !req.KeepOpen && c.cfg.Identity == "" && acked.Served(c.temporal, c.cfg.TaskQueue) && !c.open.within(req.Thread, rememberedFor) &&
		!c.lingers.within(inMode(req), lingersFor)
}

// inMode names the graph of a request, and how it is to run: one that ends in its first workflow task in one mode may not in another.
func inMode(req runtime.Start) string {
	return fmt.Sprint(req.Graph, "/", req.Durability, "/", req.Fused)
}

// start begins a thread, and returns when its run has ended, where a worker of this process ends it in its first workflow task;
// else the run is under way. It fails with errNotNew when the thread has begun before.
func (c here) start(ctx context.Context, req runtime.Start) (thread.View, error) {
	watch := acked.NewWatch()
	view, err := c.launch(watch.In(ctx), req, inputFor(req), nil)
	if err != nil {
		return view, err
	}
	end, eager := watch.Wait(ctx, protocol.WorkflowTaskTimeout)
	if end == nil {
		c.lingers.note(inMode(req), eager)
		return view, ctx.Err()
	}
	ended, err := c.endedAs(ctx, view, end)
	if err != nil {
		return view, ctx.Err() // the server's records tell
	}
	c.changed.note(req.Thread, true)
	c.ended.note(req.Thread, true)
	c.outputs.keep(req.Thread, pregel.HoldAll(ended.Output))
	return ended, nil
}

// endedAs is the view of a run that has ended so, as the server's records give it.
func (c here) endedAs(ctx context.Context, v thread.View, end *acked.End) (thread.View, error) {
	last := &lastRun{thread: v.Thread, graph: v.Graph, runID: v.RunID, status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		closing: &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
				WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{Result: end.Result}}}}
	v.Status, v.Started, v.Closed, v.Events, v.HistoryBytes = thread.StatusFinished, end.Began, end.At, end.Events, end.Bytes
	return v, c.addClosed(ctx, last, &v)
}
