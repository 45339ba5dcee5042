package workflows

import (
	"superstep.dev/workflows/protocol"
)

// inbox notes what arrived for the main coroutine and is no part of the run's life.
type inbox struct {
	invoke *protocol.InvokeRequest
	edits  []*edit
	// unread are answers by signal that were received, and wait for the thread to be looked at.
	unread []protocol.ResumeRequest
	read   int // signals, so far
}

// changing reports whether the thread is about to change, so that its open questions may not be open any more.
func (b *inbox) changing() bool { return b.invoke != nil || len(b.edits) > 0 }

// edit is an accepted update of the state until its outcome is known.
type edit struct {
	req   protocol.UpdateStateRequest
	done  bool
	reply protocol.UpdateStateReply
	err   error
}
