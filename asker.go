package superstep

import (
	"fmt"

	"superstep.dev/workflows/protocol"
)

// AskOption says who asks for something that is done to a thread, and why: both are in its audit. It goes with every call
// that changes a run from outside.
type AskOption interface {
	ReplyOption
	ControlOption
	EventOption
	CancelOption
	UpdateOption
	RunOption
}

// ControlOption shapes [Thread.Pause], [Thread.Unpause], [Thread.Retry], [Thread.Drain] and [Thread.Fork].
type ControlOption interface{ applyControl(*asker) }

// asker is who asks for something: By says so, and Token proves it where rules want that.
type asker struct{ by, reason, token string }

func askerOf(opts []ControlOption) (a asker) {
	for _, o := range opts {
		o.applyControl(&a)
	}
	return a
}

type askOption func(*asker)

func (o askOption) applyControl(a *asker) { o(a) }

func (o askOption) applyReply(r *replyOptions) { o(&r.asker) }

func (o askOption) applyEvent(r *EventRequest) {
	a := asker{by: r.By, token: r.Token}
	o(&a)
	r.By, r.Token = a.by, a.token
}

func (o askOption) applyCancel(r *CancelRequest) {
	r.By, r.Reason, r.Token = o.on(r.By, r.Reason, r.Token)
}

func (o askOption) applyUpdate(r *UpdateRequest) {
	r.By, r.Reason, r.Token = o.on(r.By, r.Reason, r.Token)
}

func (o askOption) applyRun(r *runOptions) {
	q := &r.request
	q.By, q.Reason, q.Token = o.on(q.By, q.Reason, q.Token)
}

func (o askOption) on(by, reason, token string) (string, string, string) {
	a := asker{by, reason, token}
	o(&a)
	return a.by, a.reason, a.token
}

// AskedBy names who asks, at most 200 bytes. Nobody checks the name; where rules want proof, [WithToken] is that.
func AskedBy(name string) AskOption { return askOption(func(a *asker) { a.by = name }) }

// WithToken proves who asks or answers: a token for this question or request, signed by somebody whose key the gate knows.
func WithToken(token string) AskOption { return askOption(func(a *asker) { a.token = token }) }

// WithReason says why, for the record: at most 1,000 bytes.
func WithReason(reason string) AskOption { return askOption(func(a *asker) { a.reason = reason }) }

// The bounds of who asks and why, in bytes.
const (
	maxAskerName   = 200
	maxAskerReason = 1000
)

// checkAsker refuses who and why that no run takes.
func checkAsker(thread, by, reason string) error {
	if len(by) <= maxAskerName && len(reason) <= maxAskerReason {
		return nil
	}
	return &Error{Kind: ErrBadInput, Thread: thread,
		Message: fmt.Sprintf("a name has at most %d bytes, and a reason at most %d", maxAskerName, maxAskerReason)}
}

// askedOf is who asks for something on the wire, nil when nobody said.
func askedOf(by, reason, token string) *protocol.Asked {
	if by == "" && reason == "" && token == "" {
		return nil
	}
	return &protocol.Asked{By: by, Reason: reason, Token: token}
}
