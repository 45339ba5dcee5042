package taskrun

import (
	"context"
	"errors"
	"testing"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

func TestGateBeforeUse(t *testing.T) {
	says := func(r approval.Ruling, err error) graphadapter.UseGate {
		return func(context.Context, approval.UseCheck) (approval.Ruling, error) { return r, err }
	}
	for name, c := range map[string]struct {
		gate  graphadapter.UseGate
		code  approval.Code
		final bool
		state ledger.State
	}{
		"revoked":     {says(approval.Ruling{Code: approval.CodePermission, Reason: "ann may not any more"}, nil), approval.CodePermission, true, ledger.StateFailed},
		"unavailable": {says(approval.Ruling{Code: approval.CodeUnavailable, Reason: "the policy does not load"}, nil), approval.CodeUnavailable, false, ledger.StateIntent},
		"error":       {says(approval.Ruling{}, errors.New("broken")), approval.CodeUnavailable, false, ledger.StateIntent},
		"none":        {nil, approval.CodeUnavailable, false, ledger.StateIntent},
	} {
		t.Run(name, func(t *testing.T) {
			action, got := refundAction(), approval.Decision{}
			d := newDesk(t, oneNode(approvingNode(&action, &got)))
			q, asked := d.asks()
			d.says(q, asked, approval.VerdictApprove, "ann", "")
			d.use = c.gate
			_, err := d.run()
			var refused *NotAllowedError
			if !errors.As(err, &refused) || refused.Code != c.code || graphadapter.IsPermanent(err) != c.final || refused.Question != q.ID {
				t.Errorf("%v", err)
			}
			if e := onlyEntry(t, d.journal); e.State != c.state || (e.Approved != nil) != c.final {
				t.Errorf("ledger %+v", e)
			}
			d.use = allow
			if _, err := d.run(); err != nil {
				t.Errorf("once it is allowed: %v", err)
			}
		})
	}
}

// TestOnlyDecisionsAnswer: what came in past the gate decides nothing.
func TestOnlyDecisionsAnswer(t *testing.T) {
	for _, answer := range []string{`true`, `{"verdict":"approve"}`, `{"verdict":"approve","question":"q-other","digest":"sha256:1"}`} {
		action, got := refundAction(), approval.Decision{}
		d := newDesk(t, oneNode(approvingNode(&action, &got)))
		q, _ := d.asks()
		d.answers = []pregel.Answer{{QuestionID: q.ID, Value: pregel.Value(answer)}}
		var wrong *graphadapter.AnswerError
		if _, err := d.run(); !errors.As(err, &wrong) || got.Verdict == approval.VerdictApprove {
			t.Errorf("%s: %v, %+v", answer, err, got)
		}
	}
}
