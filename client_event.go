package superstep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// EventRequest sends an event to a thread.
type EventRequest struct {
	Thread string
	// Name has 1 to 256 bytes; Value is JSON of at most 256 KiB, nil means null.
	Name  string
	Value json.RawMessage
	// By names who sends it, at most 200 bytes.
	By string
	// ID makes the request idempotent: the thread takes the same ID once. "" makes one. At most 200 bytes.
	ID string
	// Token proves who sends it, where rules want that.
	Token string
}

// EventReply says what became of an event.
type EventReply struct {
	Thread string `json:"thread"`
	Event  string `json:"event"`
	// Nodes are those that waited for it, one for each wait. Without any the event is kept for the first wait to come.
	Nodes []string `json:"nodes,omitempty"`
	// Repeated says that this very request had been taken before.
	Repeated bool `json:"repeated,omitempty"`
	// Stored says that no worker took the event yet: it is stored, and counts as soon as one runs.
	Stored bool `json:"stored,omitempty"`
}

// SendEvent sends an event to a thread: to every task that waits for it with [WaitEvent], or, when none does yet, for the
// first that will. A thread keeps at most 100 events for waits to come, of 512 KiB together. Without a worker the event
// is stored unchecked. A request whose ID was taken before is no error, also when the run is over: the reply is Repeated.
//
// Errors: ErrNotFound; ErrBadInput when the event does not fit what waits for it; ErrAnswerRefused when the thread's run
// is over; ErrRunning when the thread keeps too many events; ErrNoServer.
func (c *Client) SendEvent(ctx context.Context, r EventRequest) (EventReply, error) {
	return c.eventRun(ctx, nil, r)
}

func (c *Client) eventRun(ctx context.Context, _ *graphadapter.Graph, r EventRequest) (EventReply, error) {
	if err := checkEvent(r); err != nil {
		return EventReply{}, err
	}
	wire := protocol.EventRequest{ID: cmp.Or(r.ID, uuid.NewString()), Call: newCall(), Name: r.Name, Value: pregel.Value(r.Value), By: r.By, Token: r.Token}
	for {
		last, err := c.theLastRun(ctx, r.Thread)
		if err != nil {
			return EventReply{}, err
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
func (c *Client) noEvents(ctx context.Context, last *lastRun, wire protocol.EventRequest) (EventReply, error) {
	left, _, err := c.left(ctx, last)
	if taken, again := left.Life.TakenEvent(wire.ID); err == nil && again { // what cannot be read has nothing to add
		return EventReply{Thread: last.thread, Event: wire.Name, Nodes: taken.Nodes, Repeated: true}, nil
	}
	return EventReply{}, &Error{Kind: ErrAnswerRefused, Graph: last.graph, Thread: last.thread,
		Message: fmt.Sprintf("thread %q takes no event: its run is %s", last.thread, statusOf(last.status)),
		Do:      "Look at it", Command: []string{"show", last.thread}}
}

// sendEvent has the run take the event, or stores it for the next worker.
func (c *Client) sendEvent(ctx context.Context, last *lastRun, wire protocol.EventRequest) (EventReply, error) {
	reply := EventReply{Thread: last.thread, Event: wire.Name}
	err := c.somebodyPolls(ctx, last.graph, last.queue)
	if err == nil {
		var taken protocol.EventReply
		err = c.update(ctx, last, wire.ID, protocol.UpdateEvent, wire, &taken)
		// The server itself gives the outcome of an update again to who repeats it.
		reply.Nodes, reply.Repeated = taken.Nodes, err == nil && (taken.Repeated || taken.Call != wire.Call)
	}
	if errors.Is(err, ErrNoWorker) {
		// Should the update have got through all the same, the id makes one of the two.
		reply.Stored = true
		if err = c.signal(ctx, last, protocol.SignalEvent, wire); err != nil {
			err = c.explain(err, last.graph, last.thread)
		}
	}
	return reply, err
}

func checkEvent(r EventRequest) error {
	err := graphadapter.CheckEvent(r.Name, pregel.Value(r.Value))
	if err == nil && (len(r.By) > maxPauseBy || len(r.ID) > maxPauseBy) {
		err = fmt.Errorf("an event has a sender and an id of at most %d bytes", maxPauseBy)
	}
	if err != nil {
		return &Error{Kind: ErrBadInput, Thread: r.Thread, Message: err.Error()}
	}
	return nil
}
