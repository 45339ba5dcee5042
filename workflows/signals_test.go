package workflows_test

import (
	"strings"
	"testing"

	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestSignalsThatCannotBeReadAreShown: their senders get no reply.
func TestSignalsThatCannotBeReadAreShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(askingGraph())
	thread := testserver.Queue(t)
	r.start(thread, protocol.GraphInput{Graph: "asks", Input: input(`{}`)})
	r.asks(thread, 1)
	for i, s := range []struct {
		name    string
		payload any
	}{
		{protocol.SignalResume, "text"}, {protocol.SignalResume, map[string]any{"id": 5}}, {protocol.SignalEvent, []int{}},
		{protocol.SignalPause, map[string]any{"by": 3}}, {protocol.SignalCancel, []byte("\x00")}, {protocol.SignalViewed, 7},
	} {
		if err := r.client.SignalWorkflow(r.ctx, thread, "", s.name, s.payload); err != nil {
			t.Fatal(err)
		}
		all := r.until(thread, "the refusal of "+s.name, func(s protocol.State) bool { return len(s.Refused) == i+1 }).Refused
		if got := all[i].Reason; !strings.Contains(got, `"`+s.name+`" cannot be read`) {
			t.Errorf("the signal %s was refused since %q", s.name, got)
		}
	}
}
