package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// maxEventsTaken bounds the requests that a run remembers.
const maxEventsTaken = 1000

// events is the run's EventState under way.
type events struct {
	protocol.EventState
	// asked says that waits may have begun or ended since the run last looked.
	asked bool
	timer eventTimer
}

// eventState is what the thread's next execution has to know; nil when it never had anything to do with events.
func (r *run) eventState() *protocol.EventState {
	if len(r.events.Kept)+len(r.events.Due)+len(r.events.Taken) == 0 {
		return nil
	}
	state := r.events.EventState
	return &state
}

// onEvent takes in an event by update.
func (r *run) onEvent(ctx workflow.Context, req protocol.EventRequest) (protocol.EventReply, error) {
	// What waits is not known while the thread is about to change.
	wait, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(wait, func() bool { return !r.inbox.changing() })
	if taken, ok := r.eventTaken(req.ID); ok {
		return protocol.EventReply{Nodes: taken.Nodes, Repeated: true}, nil
	}
	by, err := r.proven(ctx, sending(req))
	if err != nil {
		return protocol.EventReply{}, err
	}
	_ = workflow.Await(wait, func() bool { return !r.inbox.changing() })
	return r.takeEvent(ctx, req, by)
}

// sending is an event as the gate is asked about it.
func sending(req protocol.EventRequest) request {
	return request{Control: approval.Control{Op: approval.OpEvent, On: req.Name}, by: req.By, token: req.Token}
}

// receiveEvents takes in events by signal; since a signal gets no reply, a refusal is kept to be seen.
func (r *run) receiveEvents(ctx workflow.Context) {
	channel := workflow.GetSignalChannelWithOptions(ctx, protocol.SignalEvent,
		workflow.SignalChannelOptions{Description: "Sends an event without waiting for the reply."})
	for {
		var req protocol.EventRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
		r.eventBySignal(ctx, req)
	}
}

func (r *run) eventBySignal(ctx workflow.Context, req protocol.EventRequest) {
	err := r.eventRefusal(req) // which bounds it before anything else looks at it
	var by trail.Actor
	if _, again := r.eventTaken(req.ID); err == nil && !again {
		by, err = r.provenSignal(ctx, sending(req))
	}
	if err == nil {
		_, err = r.takeEvent(ctx, req, by)
	}
	if err != nil {
		r.inbox.refuse(protocol.Refused{Event: named(req.Name), By: named(req.By), Reason: err.Error(), At: workflow.Now(ctx)})
		workflow.GetLogger(ctx).Warn("event by signal refused", "event", named(req.Name), "reason", err.Error())
	}
}

// readEvents takes in the signals that nobody has read when the run ends: what they bring would be gone.
func (r *run) readEvents(ctx workflow.Context) {
	channel := workflow.GetSignalChannel(ctx, protocol.SignalEvent)
	var req protocol.EventRequest
	for channel.ReceiveAsync(&req) {
		r.eventBySignal(ctx, req)
		req = protocol.EventRequest{}
	}
}

// takeEvent gives an event to all who wait for it, or keeps it for the first who will. It takes all of it or nothing.
func (r *run) takeEvent(ctx workflow.Context, req protocol.EventRequest, by trail.Actor) (protocol.EventReply, error) {
	req.By = by.Name()
	if err := r.eventRefusal(req); err != nil {
		return protocol.EventReply{}, err
	}
	if taken, ok := r.eventTaken(req.ID); ok {
		return protocol.EventReply{Nodes: taken.Nodes, Call: taken.Call, Repeated: isRepeat(req.Call, taken.Call)}, nil
	}
	var nodes []string
	for _, q := range r.waits() {
		if q.Event == req.Name {
			nodes = append(nodes, q.Node)
			r.give(ctx, q, req.ID, pregel.Answer{QuestionID: q.ID, Value: req.Value, By: req.By})
		}
	}
	if len(nodes) == 0 {
		r.events.Kept = append(r.events.Kept[:len(r.events.Kept):len(r.events.Kept)],
			protocol.KeptEvent{Name: req.Name, Value: req.Value, By: req.By, At: workflow.Now(ctx), ID: req.ID})
	}
	r.events.Taken = append(r.events.Taken, protocol.TakenEvent{ID: req.ID, Nodes: nodes, Call: req.Call})
	if len(r.events.Taken) > maxEventsTaken {
		r.events.Taken = slices.Clone(r.events.Taken[len(r.events.Taken)-maxEventsTaken:])
	}
	r.audit(ctx, trail.Event(by, req.Name, nodes))
	return protocol.EventReply{Nodes: nodes, Call: req.Call}, nil
}

// give notes the end of a wait; the engine is told when it can go on.
func (r *run) give(ctx workflow.Context, q pregel.OpenQuestion, request string, a pregel.Answer) {
	r.inbox.note(protocol.Answered{Question: q.ID, Node: q.Node, RequestID: request, By: a.By, At: workflow.Now(ctx)})
	r.inbox.events = append(r.inbox.events, a)
	r.events.asked, r.notices.look = true, true
}

func (r *run) eventTaken(id string) (protocol.TakenEvent, bool) {
	at := slices.IndexFunc(r.events.Taken, func(t protocol.TakenEvent) bool { return t.ID == id })
	if at < 0 {
		return protocol.TakenEvent{}, false
	}
	return r.events.Taken[at], true
}

// eventRefusal says why an event cannot be taken; nil means it can. It changes nothing.
func (r *run) eventRefusal(req protocol.EventRequest) error {
	if req.ID == "" || len(req.ID) > protocol.MaxNameBytes || len(req.Call) > protocol.MaxNameBytes || len(req.By) > protocol.MaxNameBytes {
		return protocol.Refuse(protocol.ErrTypeBadAnswer, "an event has an id and a sender of at most %d bytes", protocol.MaxNameBytes)
	}
	if err := graphadapter.CheckEvent(req.Name, req.Value); err != nil {
		return protocol.Refuse(protocol.ErrTypeBadAnswer, "%v", err)
	}
	if _, ok := r.eventTaken(req.ID); ok {
		return nil
	}
	waiting := false
	for _, q := range r.waits() {
		if q.Event == req.Name {
			waiting = true
			if err := graphadapter.CheckAnswer(q.Question, req.Value); err != nil {
				return protocol.Refuse(protocol.ErrTypeBadAnswer, "node %q waits for the event %q: %v", q.Node, req.Name, err)
			}
		}
	}
	if !waiting && !r.events.room(len(req.Value)) {
		return protocol.Refuse(protocol.ErrTypeBusy, "nobody waits for the event %q yet, and the thread keeps no more than %d events and %d bytes of "+
			"them", req.Name, graphadapter.MaxKeptEvents, graphadapter.MaxKeptBytes)
	}
	return nil
}

// room reports whether one more event can be kept.
func (e *events) room(size int) bool {
	return len(e.Kept) < graphadapter.MaxKeptEvents && e.bytes()+size <= graphadapter.MaxKeptBytes
}

// bytes is the size of the values that are kept.
func (e *events) bytes() int {
	size := 0
	for _, k := range e.Kept {
		size += len(k.Value)
	}
	return size
}

// waits are the tasks' waits for events that are not over, in task order; none while the thread is about to change, or
// its superstep to be dropped: what comes then is for the waits after that.
func (r *run) waits() []pregel.OpenQuestion {
	if r.inbox.changing() || r.cancel.drops() {
		return nil
	}
	return slices.DeleteFunc(r.unanswered(), func(q pregel.OpenQuestion) bool { return q.Event == "" })
}

// questions are the open questions for people.
func (r *run) questions() []pregel.OpenQuestion {
	return slices.DeleteFunc(r.unanswered(), func(q pregel.OpenQuestion) bool { return q.Event != "" })
}
