package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/internal/clip"
	"superstep.dev/workflows/protocol"
)

// errNotDecoded says that the payload of a signal could not be decoded at all.
var errNotDecoded = errors.New("its payload cannot be decoded: it was encoded in another way, or with another key, than this worker's")

// receiveSignal takes the next message from a signal's channel, if there is one. A message that cannot be read is shown among those that
// the run refused: its sender gets no reply, and the SDK would only write to the worker's log.
func receiveSignal[T any](ctx workflow.Context, p *people, channel workflow.ReceiveChannel) (got T, ok bool) {
	for {
		var raw converter.RawValue
		left := channel.Len()
		ok = channel.ReceiveAsync(&raw)
		dropped := left - channel.Len()
		if ok {
			dropped--
		}
		for range dropped {
			p.unreadable(ctx, channel.Name(), errNotDecoded)
		}
		if !ok || raw.Payload() == nil {
			return got, ok
		}
		var message T
		if err := converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &message); err != nil {
			p.unreadable(ctx, channel.Name(), err)
			continue
		}
		return message, true
	}
}

// unreadable notes that a message cannot be read, and why.
func (p *people) unreadable(ctx workflow.Context, signal string, err error) {
	workflow.GetLogger(ctx).Warn("a signal cannot be read", "signal", signal, "error", err)
	reason := fmt.Sprintf("the signal %q cannot be read: %v", signal, err)
	p.life.RefuseUnread(clip.Text(reason, protocol.MaxReasonBytes), workflow.Now(ctx))
}
