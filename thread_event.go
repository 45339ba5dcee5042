package superstep

import "context"

// EventOption shapes an event: see [WithRequestID].
type EventOption interface{ applyEvent(*EventRequest) }

// SendEvent sends an event to the thread, and returns when it is taken: every task that waits for it with [WaitEvent] goes
// on, or, when none does yet, the first that will. Wait tells how the run goes on. Value encodes as JSON of at most
// 256 KiB.
//
// With [WithRequestID] the same event may be sent again by who never learnt what became of it.
//
// Errors: [ErrBadInput] when it does not fit what waits for it; [ErrAnswerRefused] when the run is over; [ErrRunning] when
// the thread keeps too many events.
func (t *Thread[Out]) SendEvent(ctx context.Context, name string, value any, opts ...EventOption) (EventReply, error) {
	raw, err := encodeJSON(value)
	if err != nil {
		return EventReply{}, &Error{Kind: ErrBadInput, Graph: t.graph.Spec.Name, Thread: t.id,
			Message: "the event's value does not encode as JSON", Cause: err}
	}
	r := EventRequest{Thread: t.id, Name: name, Value: raw}
	for _, opt := range opts {
		opt.applyEvent(&r)
	}
	return t.runtime.eventRun(ctx, t.graph, r)
}
