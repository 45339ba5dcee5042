package workflows

import (
	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter/life"
	"superstep.dev/workflows/protocol"
)

// receive takes in commands by signal: since a signal gets no reply, a refusal is kept to be seen.
func receive[C life.Command](ctx workflow.Context, p *people, name, about string) {
	each(ctx, name, about, func(ctx workflow.Context, c C) { p.take(ctx, request{Command: c, silent: true}) })
}

// each does something about each signal of that name, in a coroutine of its own.
func each[T any](ctx workflow.Context, name, about string, do func(workflow.Context, T)) {
	channel := workflow.GetSignalChannelWithOptions(ctx, name, workflow.SignalChannelOptions{Description: about})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var got T
			if more := channel.Receive(ctx, &got); !more {
				return
			}
			do(ctx, got)
		}
	})
}

// unread does something about the signals that nobody has received when the run ends: what they bring would be gone.
func unread[T any](ctx workflow.Context, name string, do func(T)) {
	channel := workflow.GetSignalChannel(ctx, name)
	for {
		var got T
		if !channel.ReceiveAsync(&got) {
			return
		}
		do(got)
	}
}

// readUnread takes in the events and views that nobody has received.
func (p *people) readUnread(ctx workflow.Context) {
	unread(ctx, protocol.SignalEvent, func(req protocol.EventRequest) {
		p.take(ctx, request{Command: req, silent: true, now: true})
	})
	unread(ctx, protocol.SignalViewed, func(req protocol.ViewRequest) { p.viewed(ctx, req) })
}

// receiveAnswer holds an answer by signal to the same checks as those by update.
func (p *people) receiveAnswer(ctx workflow.Context, req protocol.ResumeRequest) {
	p.inbox.unread = append(p.inbox.unread, req)
	// What is open is not known while the thread is being changed.
	_ = workflow.Await(ctx, func() bool { return !p.inbox.changing() || len(p.inbox.unread) == 0 })
	p.readAnswers(ctx, nil)
}

// readAnswers looks at the answers by signal that were received, and at those in channel unless that is nil.
func (p *people) readAnswers(ctx workflow.Context, channel workflow.ReceiveChannel) {
	for {
		var req protocol.ResumeRequest
		switch {
		case len(p.inbox.unread) > 0:
			req = p.inbox.unread[0]
			p.inbox.unread = p.inbox.unread[1:]
		case channel == nil || !channel.ReceiveAsync(&req):
			return
		}
		p.take(ctx, request{Command: req, silent: true})
		if p.inbox.read++; p.inbox.read%signalsAtOnce == 0 {
			GiveWay(ctx)
		}
	}
}

// signalsAtOnce is how many signals are read before other coroutines have a turn: see deliveriesAtOnce.
const signalsAtOnce = 100

// viewed notes who says to have looked at an approval's question.
func (p *people) viewed(ctx workflow.Context, req protocol.ViewRequest) {
	p.life.Viewed(req, workflow.Now(ctx))
	p.act(ctx, p.life.Actions())
}
