package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// position is where the run's history stands: the id of the event with which its current workflow task started. A
// replay comes to the same positions as the run did.
func position(ctx workflow.Context) int64 {
	return int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
}

// began reports that the engine, or an update, goes on with the thread.
func (r *run) began(ctx workflow.Context, d graphadapter.Durability) {
	r.invoked, r.base, r.beganIn = true, headID(r.thread), r.lines.run
	r.life.Look()
	if r.sink != nil {
		r.sink.Began(position(ctx), r.program, r.thread, d)
	}
}

// ended reports that the invocation stands still. In durability exit it leaves one checkpoint behind, whose parent is
// the one that it began at.
func (r *run) ended(ctx workflow.Context) {
	if !r.invoked {
		return
	}
	r.invoked = false
	if head := r.thread.Head; r.loop != nil && r.durability() == graphadapter.DurabilityExit && headID(r.thread) != r.base {
		head.Checkpoint = head.Checkpoint.WithParent(r.base)
		r.lines.add(r.program, head, workflow.Now(ctx))
	}
	r.settle()
	if r.sink != nil {
		r.sink.Ended(position(ctx), r.toldAs(ctx), r.thread)
	}
}

// settle gives the thread its newest state back when an invocation from an earlier one made no checkpoint.
func (r *run) settle() {
	if r.newest == nil {
		return
	}
	was := r.thread
	r.thread, r.newest = pregel.Newer(r.newest, r.thread), nil
	if r.thread != was && r.stands() != pregel.StatusDone {
		r.loop = nil // what it stands at is no longer the thread's
	}
}

func headID(t *pregel.Thread) string {
	if t.Head == nil {
		return ""
	}
	return t.Head.Checkpoint.ID
}

// observer notes the history's lines, and passes every event on to the sink.
func (r *run) observer(ctx workflow.Context) pregel.Observer {
	return func(e pregel.Event) {
		if e.Kind == pregel.EventCheckpoint && e.Namespace == "" && r.durability() != graphadapter.DurabilityExit {
			r.lines.add(r.program, e.Checkpoint, workflow.Now(ctx))
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

// toldAs is where the thread stands, as readers are told: what was cancelled has not finished, whatever is left to run.
func (r *run) toldAs(ctx workflow.Context) pregel.Status {
	if s := r.stands(); s != pregel.StatusDone || ctx.Err() == nil {
		return s
	}
	return pregel.StatusDrained
}
