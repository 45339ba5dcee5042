package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
)

// position is where the run's history stands: the id of the event with which its current workflow task started. A
// replay comes to the same positions as the run did.
func position(ctx workflow.Context) int64 {
	return int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
}

func (r *run) began(ctx workflow.Context) {
	if r.sink != nil {
		r.sink.Began(position(ctx), r.program, r.thread, r.in.Durability)
	}
}

// ended reports that the invocation stands still.
func (r *run) ended(ctx workflow.Context) {
	if r.sink == nil {
		return
	}
	status := pregel.StatusFailed
	if r.failure == nil && r.loop != nil {
		status = r.loop.Status()
	}
	r.sink.Ended(position(ctx), status)
}

// observer notes the history's lines, and passes every event on to the sink.
func (r *run) observer(ctx workflow.Context) pregel.Observer {
	return func(e pregel.Event) {
		if e.Kind == pregel.EventCheckpoint && e.Namespace == "" {
			r.lines.add(r.program, e.Checkpoint)
		}
		if r.sink != nil {
			r.sink.Happened(position(ctx), e)
		}
	}
}
