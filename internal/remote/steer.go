package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// EventRun implements runtime.Runtime.
func (c *Threads) EventRun(ctx context.Context, _ *graphadapter.Graph, r thread.EventRequest) (thread.EventReply, error) {
	if err := runtime.CheckEvent(r); err != nil {
		return thread.EventReply{}, err
	}
	wire := protocol.EventRequest{ID: cmp.Or(r.ID, uuid.NewString()), Call: newCall(), Name: r.Name, Value: pregel.Value(r.Value), By: r.By, Token: r.Token}
	for {
		last, err := c.theLastRun(ctx, r.Thread)
		if err != nil {
			return thread.EventReply{}, err
		}
		if !last.open {
			return c.noEvents(ctx, last, wire)
		}
		reply, err := c.sendEvent(ctx, last, wire)
		if !errors.Is(err, errEnded) {
			return reply, err
		}
	}
}

// noEvents says why a closed run takes no event. One that was taken before is no error.
func (c *Threads) noEvents(ctx context.Context, last *lastRun, wire protocol.EventRequest) (thread.EventReply, error) {
	left, _, err := c.left(ctx, last)
	if taken, again := left.Life.TakenEvent(wire.ID); err == nil && again { // what cannot be read has nothing to add
		return thread.EventReply{Thread: last.thread, Event: wire.Name, Nodes: taken.Nodes, Repeated: true}, nil
	}
	return thread.EventReply{}, &thread.Error{Kind: thread.ErrAnswerRefused, Graph: last.graph, Thread: last.thread,
		Message: fmt.Sprintf("thread %q takes no event: its run is %s", last.thread, statusOf(last.status)),
		Do:      "Look at it", Command: []string{"show", last.thread}}
}

// sendEvent has the run take the event, or stores it for the next worker.
func (c *Threads) sendEvent(ctx context.Context, last *lastRun, wire protocol.EventRequest) (thread.EventReply, error) {
	reply := thread.EventReply{Thread: last.thread, Event: wire.Name}
	err := c.somebodyPolls(ctx, last.graph, last.queue)
	if err == nil {
		var taken protocol.EventReply
		err = c.update(ctx, last, wire.ID, protocol.UpdateEvent, wire, &taken)
		// The server itself gives the outcome of an update again to who repeats it.
		reply.Nodes, reply.Repeated = taken.Nodes, err == nil && (taken.Repeated || taken.Call != wire.Call)
	}
	if errors.Is(err, thread.ErrNoWorker) {
		// Should the update have got through all the same, the id makes one of the two.
		reply.Stored = true
		if err = c.signal(ctx, last, protocol.SignalEvent, wire); err != nil {
			err = c.explain(err, last.graph, last.thread)
		}
	}
	return reply, err
}

// PauseRun implements runtime.Runtime.
func (c *Threads) PauseRun(ctx context.Context, _ *graphadapter.Graph, r thread.PauseRequest, unpause bool) (thread.PauseReply, error) {
	if err := runtime.CheckPause(r); err != nil {
		return thread.PauseReply{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return thread.PauseReply{}, err
	}
	reply := thread.PauseReply{Thread: r.Thread}
	if last.open {
		reply, err = c.sendPause(ctx, last, protocol.PauseRequest{
			ID: cmp.Or(r.ID, uuid.NewString()), By: r.By, Reason: r.Reason, Unpause: unpause, Token: r.Token})
		if err != nil && !errors.Is(err, errEnded) || reply.Stored {
			return reply, err
		}
	}
	v, err := c.Show(ctx, r.Thread)
	reply.Status = v.Status
	return reply, err
}

// sendPause has the run take the request, or stores it for the next worker.
func (c *Threads) sendPause(ctx context.Context, last *lastRun, wire protocol.PauseRequest) (thread.PauseReply, error) {
	reply := thread.PauseReply{Thread: last.thread, Status: thread.StatusRunning}
	err := c.somebodyPolls(ctx, last.graph, last.queue)
	if err == nil {
		var taken protocol.PauseReply
		err = c.update(ctx, last, wire.ID, protocol.UpdatePause, wire, &taken)
		reply.Paused, reply.Changed = taken.Paused, taken.Changed
	}
	if errors.Is(err, thread.ErrNoWorker) {
		// Should the update have got through all the same, the id makes one of the two.
		reply.Stored = true
		if err = c.signal(ctx, last, protocol.SignalPause, wire); err != nil {
			err = c.explain(err, last.graph, last.thread)
		}
	}
	return reply, err
}

// DrainRun implements runtime.Runtime.
func (c *Threads) DrainRun(ctx context.Context, _ *graphadapter.Graph, r thread.DrainRequest) (thread.View, error) {
	if err := runtime.CheckDrain(&r); err != nil {
		return thread.View{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return thread.View{}, err
	}
	if last.open {
		req := protocol.DrainRequest{ID: uuid.NewString(), Reason: r.Reason, By: r.By, Token: r.Token}
		err := c.update(ctx, last, req.ID, protocol.UpdateDrain, req, nil)
		if err != nil && !errors.Is(err, errEnded) {
			return thread.View{}, err
		}
	}
	return c.Show(ctx, r.Thread)
}

// Viewed notes in a thread's audit that somebody has looked at a question which asks for an approval.
func (c *reader) Viewed(ctx context.Context, thread, question, by string) error {
	last, err := c.theLastRun(ctx, thread)
	if err != nil || !last.open {
		return err
	}
	if err := c.signal(ctx, last, protocol.SignalViewed, protocol.ViewRequest{Question: question, By: by}); err != nil {
		return c.explain(err, last.graph, thread)
	}
	return nil
}
