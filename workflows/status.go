package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// resting is the status of a run that has no task under way.
func (r *run) resting() string {
	switch {
	case r.life.State.Paused != nil:
		return protocol.StatusPaused
	case r.failure != nil:
		return protocol.FailureStatus(failureOf(r.in.Graph, r.failure))
	case r.stands() == pregel.StatusWaiting && len(r.life.Questions()) == 0 && len(r.life.Waits()) > 0:
		return protocol.StatusWaitingEvent
	case r.stands() == pregel.StatusWaiting:
		return protocol.StatusWaiting
	case r.nothingLeft():
		return protocol.StatusFinished
	}
	return protocol.StatusStopped
}

// standing reports whether the run stands still, so that its state may be changed.
func (r *run) standing() bool { return r.status != protocol.StatusRunning && r.life.Undoing() == nil }

// show brings the details of Temporal's own screens up to date, which leaves no event, and the search attributes: one
// event, only when people have something new to see.
func (r *run) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, r.details())
	now := listing.Shown{Status: r.status, Open: len(r.life.Questions())}
	for _, q := range r.life.Unanswered() {
		now.Nodes = append(now.Nodes, q.Node)
	}
	if r.listed.Questions() {
		now.Note = r.noteOf(r.life.Questions())
	}
	r.listed.changed, r.listed.news = false, r.host.news
	if r.status != protocol.StatusRunning {
		r.listed.underWay = 0
	}
	r.listed.Upsert(ctx, now)
}

// showEnd shows how the run ends: who lists runs that are over sees it without reading their last events.
func (r *run) showEnd(ctx workflow.Context, status string) {
	r.status = status
	workflow.SetCurrentDetails(ctx, r.details())
	r.listed.End(ctx, status)
}
