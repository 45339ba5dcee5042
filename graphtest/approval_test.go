package graphtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphtest"
)

// approvedPayment pays what two people approve.
func approvedPayment(target superstep.EffectTarget) *superstep.Effect[payment, string] {
	pay := payments(target, "bank.pay")
	pay.Version = "v1"
	pay.Approval = func(p payment) (approval.Action, bool) {
		return approval.Action{Summary: fmt.Sprintf("Pay %d in %s", p.Amount, p.City), Quorum: 2}, p.Amount > 50
	}
	return pay
}

func TestContextUnderstandsApprovals(t *testing.T) {
	pay := approvedPayment(superstep.TargetKeyed)
	edited := payment{"rome", 60}
	raw, err := json.Marshal(edited)
	require.NoError(t, err)
	ctx := graphtest.Context(t, graphtest.Effects(pay), graphtest.Info(superstep.TaskInfo{Requester: "rita"}),
		graphtest.Answer(approval.Reply{Verdict: approval.VerdictEdit, Params: raw}), graphtest.Answer(approval.VerdictApprove),
		graphtest.Answer(approval.Decision{Verdict: approval.VerdictReject, Reason: "no"}), graphtest.Answer(approval.VerdictExpired))
	_, err = pay.Call(ctx, payment{"rome", 100})
	require.NoError(t, err)
	require.Equal(t, []graphtest.Call[payment]{{Op: graphtest.OpDo, Key: graphtest.Calls(ctx, pay)[0].Key, Params: edited}}, graphtest.Calls(ctx, pay))
	asked := graphtest.Asked(ctx)
	require.Equal(t, []string{"Pay 100 in rome", "rita"}, []string{asked[0].Approval.Summary, asked[0].Approval.Requester})
	require.Contains(t, asked[1].Approval.Summary, "Pay 60 in rome")

	_, err = pay.Call(ctx, payment{"oslo", 100})
	var rejected *superstep.RejectedError
	require.ErrorAs(t, err, &rejected)
	require.Equal(t, "no", rejected.Reason)
	d, err := superstep.Approve(ctx, approval.Action{Summary: "Go"})
	require.NoError(t, err)
	require.Equal(t, approval.VerdictExpired, d.Verdict)
	_, err = superstep.Approve(ctx, approval.Action{Summary: "Go on"})
	require.ErrorIs(t, err, superstep.ErrInterrupted)
}

func TestContextRefusesWhatIsNoDecision(t *testing.T) {
	ctx := graphtest.Context(t, graphtest.Answer(true))
	_, err := superstep.Approve(ctx, approval.Action{Summary: "Go"})
	var wrong *superstep.AnswerError
	require.ErrorAs(t, err, &wrong)
}

// TestMatrixOfApprovals: whatever crashes between the question and the write, what was approved is done once.
func TestMatrixOfApprovals(t *testing.T) {
	raw, err := json.Marshal(payment{"rome", 60})
	require.NoError(t, err)
	for _, target := range []superstep.EffectTarget{superstep.TargetKeyed, superstep.TargetLookupOnly, superstep.TargetNone} {
		t.Run(string(target), func(t *testing.T) {
			pay := approvedPayment(target)
			g := superstep.NewStateGraph[trip]("office")
			g.AddEffect(pay)
			g.AddNode("plan", func(_ context.Context, s trip) (trip, error) { s.Log.Append("planned"); return s, nil },
				superstep.WithApproval(func(trip) (approval.Action, bool) { return approval.Action{Summary: "Plan it"}, true }))
			g.AddNode("pay", func(ctx context.Context, s trip) (trip, error) {
				side := superstep.Go(ctx, "side", func(ctx context.Context) (string, error) { return pay.Call(ctx, payment{"side", 70}) })
				receipt, err := pay.Call(ctx, payment{"rome", 100})
				other, failed := side.Get(ctx)
				if err == nil {
					err = failed
				}
				s.Log.Append(receipt, other)
				return s, err
			})
			g.AddNode("again", func(ctx context.Context, s trip) (trip, error) {
				receipt, err := pay.Call(ctx, payment{"insurance", 99}, superstep.WithThreadKey("insurance"))
				s.Log.Append(receipt)
				return s, err
			})
			g.AddEdge(superstep.Start, "plan")
			g.AddEdge("plan", "pay")
			g.AddEdge("pay", "again")
			graphtest.Matrix(t, g.MustCompile(), trip{}, graphtest.Answer(approval.VerdictApprove),
				graphtest.Answer(approval.Reply{Verdict: approval.VerdictApprove}),
				graphtest.Answer(approval.Reply{Verdict: approval.VerdictEdit, Params: raw}),
				graphtest.Answer(approval.VerdictApprove), graphtest.Answer(approval.VerdictApprove))
		})
	}
}
