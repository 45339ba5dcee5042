package workflows_test

import (
	"testing"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestApprovalExpiresInASegment: the time to answer begins when people can answer, which is when the segment in which the
// question was asked has come back, and it ends as it does anywhere.
func TestApprovalExpiresInASegment(t *testing.T) {
	const waits = 5 * time.Second // twice that is there to see when it is due
	action := within(waits.Milliseconds(), approval.SilenceEscalate)
	for mode, in := range fusedModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			slow := newGate("slow")
			g := graph("beside", map[string]graphadapter.Node{"start": says("start"), "pay": approved(action), "slow": slow.Node},
				[]string{"start", "pay", "slow"}, to(pregel.Start, "start"), to("start", "pay"), to("start", "slow"))
			r := newRig(t)
			r.gate = &approval.Gate{Keys: plainKeys{}}
			r.work(g)
			thread := testserver.Queue(t)
			in.Graph, in.Input = "beside", input(`{}`)
			r.start(thread, in)
			<-slow.began
			<-time.After(waits + time.Second) // longer than the approval waits
			released := time.Now()
			slow.release <- struct{}{}
			s := r.until(thread, "the question", func(s protocol.State) bool { return len(s.Approvals) == 1 && !s.Approvals[0].Due.IsZero() })
			if due := s.Approvals[0].Due; due.Before(released.Add(waits)) {
				t.Errorf("it is due at %v, %v after it could be answered", due, due.Sub(released))
			}
			if log := r.ended(thread); log != `["start","expired","{\"amount\":1000}","slow"]` {
				t.Errorf("the run ended with %s", log)
			}
			if got, want := r.audit(thread, g), linesOf("asked", "escalated", "expired expired"); got != want {
				t.Errorf("the audit is\n%s, want\n%s", got, want)
			}
		})
	}
}
