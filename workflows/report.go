package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// report tells those who read a run how its invocations go, and keeps the checkpoints that they make.
type report struct{ *people }

// began reports that the engine, or an update, goes on with the thread.
func (r *report) began(ctx workflow.Context, d graphadapter.Durability) {
	r.invoked, r.base, r.beganIn = true, headID(r.thread), r.checkpoints.run
	r.life.Look()
	if r.sink != nil {
		r.sink.Began(position(ctx), r.program, r.thread, d)
	}
}

// ended reports that the invocation stands still. In durability exit it leaves one checkpoint behind, whose parent is
// the one that it began at.
func (r *report) ended(ctx workflow.Context) {
	if !r.invoked {
		return
	}
	r.invoked = false
	if head := r.thread.Head; r.loop != nil && r.durability() == graphadapter.DurabilityExit && headID(r.thread) != r.base {
		head.Checkpoint = head.Checkpoint.WithParent(r.base)
		r.checkpoints.add(r.program, head, workflow.Now(ctx))
	}
	r.settle()
	if r.sink != nil {
		r.sink.Ended(position(ctx), r.endStatus(ctx), r.thread)
	}
}

// observer notes the history's lines, and passes every event on to the sink.
func (r *report) observer(ctx workflow.Context) pregel.Observer {
	return func(e pregel.Event) {
		if e.Kind == pregel.EventCheckpoint && e.Namespace == "" && r.durability() != graphadapter.DurabilityExit {
			r.checkpoints.add(r.program, e.Checkpoint, workflow.Now(ctx))
		}
		r.life.Happened(workflow.Now(ctx), e)
		r.act(ctx, r.life.Actions())
		if len(e.Questions) > 0 {
			r.life.Look()
		}
		for _, q := range e.Questions {
			r.listed.changed = r.listed.changed || q.Event == ""
		}
		if r.sink != nil {
			r.sink.Happened(position(ctx), e)
		}
	}
}

// endStatus is where the thread stands, as readers are told: what was cancelled has not finished, whatever is left to run.
func (r *report) endStatus(ctx workflow.Context) pregel.Status {
	if s := r.threadStatus(); s != pregel.StatusDone || ctx.Err() == nil {
		return s
	}
	return pregel.StatusDrained
}
