package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/workflows/protocol"
)

// The bounds of waiters. The server lets ten updates of a run be under way, and 2,000 be made: answers must find room.
const (
	mostWaiters = 3
	mostWaits   = 200
)

// waiters are those who are told when the run rests or ends: one update for each, in the place of a look at every event.
type waiters struct {
	*people
	room   *room
	goesOn func() bool // as [run.mayGoOn]

	now, all int // those that wait, and those that have waited in this run
	// ends says that the run is about to end.
	ends bool
}

// refuse is the validator: who is refused leaves no event.
func (w *waiters) refuse(ctx workflow.Context) error {
	switch {
	case w.room.due(ctx):
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is about to be continued as a new one: ask that one")
	case w.now >= mostWaiters:
		return protocol.Refuse(protocol.ErrTypeBusy, "%d others wait already for the run to rest: follow its history", w.now)
	case w.all >= mostWaits:
		return protocol.Refuse(protocol.ErrTypeBusy, "it was waited %d times for the run to rest: follow its history", w.all)
	}
	return nil
}

// wait is the handler.
func (w *waiters) wait(ctx workflow.Context) (protocol.RestReply, error) {
	w.now++
	w.all++
	defer func() { w.now-- }()
	return w.await(ctx), nil
}

// await returns when the run rests. What has arrived with the same workflow task is taken in first.
func (w *waiters) await(ctx workflow.Context) protocol.RestReply {
	wait, _ := workflow.NewDisconnectedContext(ctx)
	GiveWay(wait)
	_ = workflow.Await(wait, func() bool { return w.ends || w.rests() || w.room.due(wait) })
	if !w.ends && !w.rests() {
		return protocol.RestReply{Moved: true}
	}
	return protocol.RestReply{Status: w.status, Ends: w.ends}
}

// rests reports whether nothing goes on before somebody lets it.
func (w *waiters) rests() bool {
	said := w.taking > 0 || len(w.inbox.edits) > 0 || w.life.Claiming() || len(w.life.Replies) > 0 // and not done yet
	given := w.life.State.Paused == nil && w.life.Waiting()
	return w.status != protocol.StatusRunning && !said && !given && !w.goesOn()
}
