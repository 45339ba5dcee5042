package workflows_test

import (
	"strings"
	"testing"
	"time"

	"superstep.dev/approval"
	"superstep.dev/workflows/protocol"
)

// within is an action that has to be decided in so many milliseconds.
func within(ms int64, silence approval.Silence) approval.Action {
	a := payment()
	a.Within, a.Silence = ms, silence
	switch silence {
	case approval.SilenceDefault:
		a.Default = approval.VerdictReject
	case approval.SilenceEscalate:
		a.Escalate = []string{"boss"}
	}
	return a
}

// TestApprovalSilence: each kind of silence does what its action says, and nothing else; people are warned before.
func TestApprovalSilence(t *testing.T) {
	t.Parallel()
	warned := within(1500, approval.SilenceDeny)
	warned.Warn = 1000
	half := within(15_000, approval.SilenceDeny) // somebody votes before it is over
	half.Quorum = 2
	for name, c := range map[string]struct {
		action approval.Action
		log    string
		audit  string
	}{
		"deny":     {warned, `["expired","{\"amount\":1000}","end"]`, linesOf("asked", "warned", "expired expired")},
		"default":  {within(300, approval.SilenceDefault), `["reject","{\"amount\":1000}","end"]`, linesOf("asked", "expired reject")},
		"escalate": {within(300, approval.SilenceEscalate), `["expired","{\"amount\":1000}","end"]`, linesOf("asked", "escalated", "expired expired")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, thread := begins(t, c.action, protocol.GraphInput{})
			if log := r.ended(thread); log != c.log {
				t.Errorf("the run ended with %s, want %s", log, c.log)
			}
			if got := r.audit(thread, paymentGraph(c.action)); got != c.audit {
				t.Errorf("the audit is\n%s, want\n%s", got, c.audit)
			}
		})
	}
	t.Run("half a quorum", func(t *testing.T) {
		t.Parallel()
		r, thread, q := pays(t, half, protocol.GraphInput{})
		if _, err := r.update(thread, replied(t, thread, q, "ann", approves)); err != nil {
			t.Fatal(err)
		}
		if log := r.ended(thread); log != `["expired ann","{\"amount\":1000}","end"]` {
			t.Errorf("the run ended with %s", log)
		}
	})
}

// TestApprovalSilenceAsksOthers: after the escalation others are asked, and those before them are not.
func TestApprovalSilenceAsksOthers(t *testing.T) {
	t.Parallel()
	action := within(15_000, approval.SilenceEscalate) // as long is there to answer behind it
	action.Approvers = []string{"ann"}
	r, thread, q := pays(t, action, protocol.GraphInput{})
	s := r.until(thread, "the escalation", func(s protocol.State) bool { return len(s.Approvals) == 1 && s.Approvals[0].Escalated })
	if p := s.Approvals[0]; strings.Join(p.Asked, " ") != "boss" || p.Due.IsZero() || len(s.Due) != 1 || !s.Due[0].At.Equal(p.Due) {
		t.Errorf("asked now is %+v, due %+v", p, s.Due)
	}
	if _, err := r.update(thread, replied(t, thread, q, "ann", approves)); codeOf(t, err) != approval.CodeNotYours {
		t.Errorf("who was asked before: %v", err)
	}
	r.taken(thread, replied(t, thread, q, "boss", approves))
	if log := r.ended(thread); !strings.Contains(log, "approve boss") {
		t.Errorf("the run ended with %s", log)
	}
}

// TestApprovalSilencePauses: the run is paused, the question stays, and it has no time limit any more.
func TestApprovalSilencePauses(t *testing.T) {
	t.Parallel()
	action := within(300, approval.SilencePause)
	r, thread := begins(t, action, protocol.GraphInput{})
	s := r.paused(thread)
	if len(s.Questions) != 1 || !strings.Contains(s.Paused.Reason, s.Questions[0].ID) || len(s.Due) != 0 {
		t.Fatalf("paused is %+v, asked %+v, due %+v", s.Paused, s.Questions, s.Due)
	}
	q := s.Questions[0]
	r.taken(thread, replied(t, thread, q, "ann", approves))
	if _, err := r.pausing(thread, protocol.PauseRequest{ID: "go on", Unpause: true}); err != nil {
		t.Fatal(err)
	}
	if log := r.ended(thread); !strings.Contains(log, "approve ann") {
		t.Errorf("the run ended with %s", log)
	}
	if got, want := r.audit(thread, paymentGraph(action)), linesOf("asked", "expired", "answered ann approve", "unpaused"); got != want {
		t.Errorf("the audit is\n%s, want\n%s", got, want)
	}
}

// TestApprovalDeadlineStays: it is when it was, whatever the run goes through.
func TestApprovalDeadlineStays(t *testing.T) {
	t.Parallel()
	action := within(20_000, approval.SilenceDeny) // time to be continued in, and to lose the worker
	r := newRig(t)
	r.gate = &approval.Gate{Keys: plainKeys{}}
	stop := r.work(paymentGraph(action))
	thread := r.queue
	run := r.start(thread, protocol.GraphInput{Graph: "payment", Input: input(`{}`), ContinueAt: &protocol.ContinueAt{Events: 1}})
	r.asks(thread, 1)
	r.handled(thread)
	due := r.asks(thread, 1).Approvals[0].Due
	r.continued(thread, run.GetRunID())
	if now := r.asks(thread, 1).Approvals[0].Due; !now.Equal(due) {
		t.Errorf("behind a continue-as-new it is due at %v, it was at %v", now, due)
	}
	stop()
	<-time.After(time.Until(due)) // nobody is there when it is over
	r.work(paymentGraph(action))
	if log := r.ended(thread); !strings.Contains(log, `"expired"`) {
		t.Errorf("the run ended with %s", log)
	}
	if got := r.audit(thread, paymentGraph(action)); !strings.HasPrefix(got, "asked\n") || !strings.HasSuffix(got, "expired expired\n") {
		t.Errorf("the audit is\n%s", got)
	}
}
