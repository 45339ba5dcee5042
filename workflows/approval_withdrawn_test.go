package workflows_test

import (
	"slices"
	"strings"
	"testing"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// TestApprovalWithdrawn: whatever makes the run not ask any more is in the audit, and an answer to it does not count.
func TestApprovalWithdrawn(t *testing.T) {
	t.Parallel()
	noted := map[string][]string{"an update": {"updated"}, "a cancellation": {"cancelled"}}
	for name, abandon := range map[string]func(r *rig, thread string) error{
		"new input": func(r *rig, thread string) error {
			return r.invoke(thread, protocol.InvokeRequest{ID: "new", Input: protocol.Input{Value: pregel.Value(`{"log":["new"]}`)}})
		},
		"an update": func(r *rig, thread string) error {
			_, err := r.updateState(thread, one("u", as("pay", "by hand")))
			return err
		},
		"a cancellation": func(r *rig, thread string) error { return r.client.CancelWorkflow(r.ctx, thread, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			action := payment()
			action.Quorum = 2
			r, thread, q := pays(t, action, protocol.GraphInput{})
			if _, err := r.update(thread, replied(t, thread, q, "ann", approves)); err != nil {
				t.Fatal(err)
			}
			if err := abandon(r, thread); err != nil {
				t.Fatal(err)
			}
			var audit string
			await(t, "its withdrawal", func() bool {
				audit = r.audit(thread, paymentGraph(action))
				return strings.HasPrefix(audit, linesOf(slices.Concat([]string{"asked", "voted ann approve"}, noted[name], []string{"withdrawn"})...))
			}, func() any { return audit })
			if _, err := r.update(thread, replied(t, thread, q, "bob", approves)); err == nil {
				t.Error("an answer to a question that is not asked any more was taken")
			}
			for _, p := range r.shown(thread) {
				if len(p.Votes) != 0 {
					t.Errorf("votes for another question are left: %+v", p)
				}
			}
		})
	}
}

// shown is what the newest run of a thread shows of its approvals, closed runs included.
func (r *rig) shown(thread string) []protocol.PendingApproval {
	r.t.Helper()
	s, err := r.state(thread)
	if err != nil {
		r.t.Fatal(err)
	}
	return s.Approvals
}

// TestApprovalSeveralAtOnce: a request answers all of its questions, or none.
func TestApprovalSeveralAtOnce(t *testing.T) {
	t.Parallel()
	first, second := payment(), payment()
	second.Tool = "book"
	g := graph("payments", map[string]graphadapter.Node{"one": approved(first), "two": approved(second), "three": asking("three", "sure?"), "end": says("end")},
		[]string{"one", "two", "three", "end"}, to(pregel.Start, "one"), to(pregel.Start, "two"), to(pregel.Start, "three"),
		to("one", "end"), to("two", "end"), to("three", "end"))
	r := newRig(t)
	r.gate = &approval.Gate{Keys: plainKeys{}}
	r.work(g)
	thread := r.queue
	run := r.start(thread, protocol.GraphInput{Graph: "payments", Input: input(`{}`)})
	s := r.asks(thread, 3)
	one, two := questionOf(t, s, "one"), questionOf(t, s, "two")
	req := protocol.ResumeRequest{ID: "all", Answers: []pregel.Answer{
		{QuestionID: one.ID, Value: pregel.Value(approves)}, {QuestionID: two.ID, Value: pregel.Value(rejects)},
		{QuestionID: questionOf(t, s, "three").ID, Value: pregel.Value(`"yes"`)}},
		Tokens: map[string]string{one.ID: tokenOf(t, thread, one, "ann", "1")}}
	if _, err := r.update(thread, req); codeOf(t, err) != approval.CodeUnsigned {
		t.Errorf("with one token of two: %v", err)
	}
	if now := r.asks(thread, 3); len(now.Answered) != 0 {
		t.Errorf("answered are %+v", now.Answered)
	}
	req.ID, req.Tokens[two.ID] = "all of them", tokenOf(t, thread, two, "bob", "2")
	if _, err := r.update(thread, req); err != nil {
		t.Fatal(err)
	}
	log := string(r.finished(run).Output["log"])
	for _, want := range []string{`"approve ann"`, `"reject bob"`, `"three","\"yes\""`} {
		if !strings.Contains(log, want) {
			t.Errorf("the run ended with %s, want %s in it", log, want)
		}
	}
	if got, want := r.audit(thread, g), linesOf("asked", "asked", "refused unsigned", "answered", "answered ann approve", "answered bob reject"); got != want {
		t.Errorf("the audit is\n%s, want\n%s", got, want)
	}
}

// TestApprovalViewed: who says to have looked is noted once, whoever says so however often.
func TestApprovalViewed(t *testing.T) {
	t.Parallel()
	r, thread, q := pays(t, payment(), protocol.GraphInput{})
	for _, by := range []string{"ann", "ann", "", "bob", strings.Repeat("n", 300), "ann"} {
		if err := r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalViewed, protocol.ViewRequest{Question: q.ID, By: by}); err != nil {
			t.Fatal(err)
		}
	}
	r.until(thread, "the views", func(s protocol.State) bool { return strings.Join(s.Approvals[0].Viewers, " ") == "ann bob" })
	r.taken(thread, replied(t, thread, q, "bob", rejects))
	r.ended(thread)
	if got, want := r.audit(thread, paymentGraph(payment())), linesOf("asked", "viewed", "viewed", "answered bob reject"); got != want {
		t.Errorf("the audit is\n%s, want\n%s", got, want)
	}
}
