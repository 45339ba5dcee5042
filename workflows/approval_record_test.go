package workflows_test

import (
	"testing"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// TestRecordApprovals records runs that ask for approvals: granted by two, edited and rejected, expired, and refused by signal.
func TestRecordApprovals(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	recorded := func(name string, action approval.Action, life func(r *rig, thread string, q pregel.OpenQuestion)) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.gate = &approval.Gate{Keys: plainKeys{}}
			if name == "told" {
				r.notifier = &recordingNotifier{}
			}
			r.work(paymentGraph(action))
			r.start(name, protocol.GraphInput{Graph: "payment", Input: input(`{}`), Found: &protocol.Found{Notices: r.notifier != nil}})
			life(r, name, r.asks(name, 1).Questions[0])
			r.ended(name)
			r.record(name, name)
		})
	}
	two := payment()
	two.Quorum = 2
	byTwo := func(r *rig, thread string, q pregel.OpenQuestion) {
		r.taken(thread, replied(t, thread, q, "ann", approves))
		r.signal(thread, replied(t, thread, q, "bob", approves))
	}
	recorded("approved-by-two", two, byTwo)
	recorded("approval-edited", payment(), func(r *rig, thread string, q pregel.OpenQuestion) {
		r.taken(thread, replied(t, thread, q, "ann", `{"verdict":"edit","params":{"amount":500}}`))
		next := r.until(thread, "the next question", func(s protocol.State) bool { return len(s.Questions) == 1 && s.Questions[0].ID != q.ID })
		r.taken(thread, replied(t, thread, next.Questions[0], "bob", rejects))
	})
	warned := within(1500, approval.SilenceEscalate)
	warned.Warn = 500
	recorded("approval-expired", warned, func(*rig, string, pregel.OpenQuestion) {})
	refused := func(r *rig, thread string, q pregel.OpenQuestion) {
		bad := replied(t, thread, q, "mallory", approves)
		bad.Token = "junk"
		for range 3 {
			r.signal(thread, bad)
		}
		r.until(thread, "the refusal", func(s protocol.State) bool { return len(s.Refused) > 0 })
		if _, err := r.update(thread, bad); err == nil {
			t.Error("junk was taken")
		}
		r.taken(thread, replied(t, thread, q, "ann", approves))
	}
	told := within(60_000, approval.SilenceEscalate)
	told.Warn = 59_500
	recorded("told", told, func(r *rig, thread string, q pregel.OpenQuestion) {
		heard := r.notifier.(*recordingNotifier)
		await(r.t, "the warning", func() bool { return len(heard.kinds()) == 2 }, func() any { return heard.kinds() })
		r.taken(thread, replied(t, thread, q, "ann", approves))
		await(r.t, "the answer", func() bool { return len(heard.kinds()) == 3 }, func() any { return heard.kinds() })
	})
	recorded("approval-refused", payment(), refused)
}
