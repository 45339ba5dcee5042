package superstep

import "context"

// SendEvent sends an event to the thread, and returns when it is taken: every task that waits for it with [WaitEvent] goes
// on, or, when none does yet, the first that will. Wait tells how the run goes on. Value encodes as JSON of at most
// 256 KiB.
//
// Errors: [ErrBadInput] when it does not fit what waits for it; [ErrAnswerRefused] when the run is over; [ErrRunning] when
// the thread keeps too many events.
func (t *Thread[Out]) SendEvent(ctx context.Context, name string, value any, opts ...ControlOption) (EventReply, error) {
	raw, err := encodeJSON(value)
	if err != nil {
		return EventReply{}, &Error{Kind: ErrBadInput, Graph: t.graph.Spec.Name, Thread: t.id,
			Message: "the event's value does not encode as JSON", Cause: err}
	}
	a := askerOf(opts)
	return t.runtime.eventRun(ctx, t.graph, EventRequest{Thread: t.id, Name: name, Value: raw, By: a.by, Token: a.token})
}
