package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/thread"
)

// claimOf is what a person wants back.
type claimOf struct {
	Amount int64  `json:"amount"`
	Card   string `json:"card"`
}

type claims struct {
	Claim superstep.Value[claimOf] `json:"claim"`
	Paid  superstep.List[string]   `json:"paid"`
}

// office is a graph that pays claims out, above 100 with an approval that the test shapes.
type office struct {
	paid   []claimOf
	made   map[string]string // receipts, by key
	shape  func(*approval.Action)
	effect *superstep.Effect[claimOf, string]
	graph  *superstep.Graph[claims]
}

func newOffice() *office { return newOfficeOf("v1") }

// newOfficeOf is one whose tool has that version.
func newOfficeOf(version string) *office {
	o := &office{shape: func(*approval.Action) {}, made: map[string]string{}}
	o.effect = &superstep.Effect[claimOf, string]{Name: "bank.pay", Version: version, Target: superstep.TargetKeyed,
		Do: func(_ context.Context, key string, c claimOf) (string, error) {
			o.paid = append(o.paid, c)
			o.made[key] = fmt.Sprintf("paid %d", c.Amount)
			return o.made[key], nil
		},
		Lookup: func(_ context.Context, key string, _ claimOf) (superstep.Finding[string], error) {
			if receipt, made := o.made[key]; made {
				return superstep.Finding[string]{Status: superstep.FindingCommitted, Receipt: receipt}, nil
			}
			return superstep.Finding[string]{Status: superstep.FindingNotFound}, nil
		},
		Approval: func(c claimOf) (approval.Action, bool) {
			a := approval.Action{Summary: fmt.Sprintf("Pay %d", c.Amount), Secrets: []string{"/card"}}
			o.shape(&a)
			return a, c.Amount > 100
		},
	}
	g := superstep.NewStateGraph[claims]("office")
	g.AddEffect(o.effect)
	g.AddNode("pay", func(ctx context.Context, s claims) (claims, error) {
		receipt, err := o.effect.Call(ctx, s.Claim.Get())
		if err == nil {
			s.Paid.Append(receipt)
		}
		return s, err
	})
	g.AddEdge(superstep.Start, "pay")
	o.graph = g.MustCompile()
	return o
}

func claimFor(amount int64) claims {
	var c claims
	c.Claim.Set(claimOf{Amount: amount, Card: "4929"})
	return c
}

func kinds(entries []approval.Entry) (out []approval.Kind) {
	for _, e := range entries {
		out = append(out, e.Kind)
	}
	return out
}

// audited returns the kinds of the thread's audit, whose chain is whole.
func audited[Out any](t *testing.T, thread *superstep.Thread[Out]) []approval.Kind {
	t.Helper()
	entries, chain, err := thread.Audit(t.Context())
	require.NoError(t, err)
	end, err := approval.VerifyEntries(approval.Chain{}, entries)
	require.NoError(t, err)
	require.Equal(t, chain, end)
	return kinds(entries)
}

func TestEffectWaitsForItsApproval(t *testing.T) {
	o := newOffice()
	th := o.graph.Thread(superstep.NewMemory(), "t-1")
	result, err := th.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, result.Status)
	require.Len(t, result.Questions, 1)
	asked := result.Questions[0].Approval
	require.Equal(t, "rita", asked.Requester)
	require.JSONEq(t, `{"amount":250,"card":"***"}`, string(asked.Params))
	require.JSONEq(t, `{"kind":"approval","ask":"Pay 250","tool":"bank.pay","risk":"medium"}`, string(result.Questions[0].Value))
	require.Empty(t, o.paid)

	result, err = th.Edit(t.Context(), result.Questions[0].ID, claimOf{Amount: 200, Card: "4929"}, superstep.AskedBy("ann"))
	require.NoError(t, err)
	asked = result.Questions[0].Approval
	require.Equal(t, []approval.Change{{Path: "/amount", Before: json.RawMessage("250"), Now: json.RawMessage("200")}}, asked.Changes)
	require.NotContains(t, fmt.Sprintf("%s %s", asked.Params, asked.Before.Params), "4929")
	result, err = th.Approve(t.Context(), "", superstep.AskedBy("bob"), superstep.WithReason("fine"))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	require.Equal(t, []claimOf{{200, "4929"}}, o.paid)
	require.Equal(t, []string{"paid 200"}, result.Output.Paid.Get())
	require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindAnswered, approval.KindAsked, approval.KindAnswered, approval.KindUsed},
		audited(t, th))
	effects, err := th.Effects(t.Context())
	require.NoError(t, err)
	require.Equal(t, "bob", effects.Effects[0].Approved.By)
}

// failedAs reports whether a node failed with an error of that type.
func failedAs(err error, kind string) bool {
	var failure *superstep.NodeError
	return errors.As(err, &failure) && failure.Type == kind
}

func TestRejectedEffect(t *testing.T) {
	o := newOffice()
	thread := o.graph.Thread(superstep.NewMemory(), "t-1")
	_, err := thread.Invoke(t.Context(), claimFor(250))
	require.NoError(t, err)
	_, err = thread.Reject(t.Context(), "", superstep.AskedBy("ann"), superstep.WithReason("too much"))
	require.True(t, failedAs(err, "Rejected"), "%v", err)
	require.ErrorContains(t, err, "rejected by ann: too much")
	require.Empty(t, o.paid)
}

func TestQuorum(t *testing.T) {
	o := newOffice()
	o.shape = func(a *approval.Action) { a.Quorum = 2 }
	th := o.graph.Thread(superstep.NewMemory(), "t-1")
	result, err := th.Invoke(t.Context(), claimFor(250))
	require.NoError(t, err)
	id := result.Questions[0].ID
	result, err = th.Approve(t.Context(), id, superstep.AskedBy("ann"))
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, result.Status)
	require.Equal(t, "ann", result.Questions[0].Approval.Votes[0].By)
	_, err = th.Approve(t.Context(), id, superstep.AskedBy("ann"))
	var refused *thread.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, approval.CodeAlreadyGiven, refused.Code)
	require.ErrorIs(t, err, thread.ErrAnswerRefused)
	result, err = th.Approve(t.Context(), id, superstep.AskedBy("bob"))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindVoted, approval.KindRefused, approval.KindAnswered, approval.KindUsed}, audited(t, th))
	_, err = th.Approve(t.Context(), id, superstep.AskedBy("eve"))
	require.ErrorContains(t, err, "already answered by bob")
}

// TestNothingElseAnswersAnApproval: not any JSON, and not input.
func TestNothingElseAnswersAnApproval(t *testing.T) {
	o := newOffice()
	rt := superstep.NewMemory()
	th := o.graph.Thread(rt, "t-1")
	_, err := th.Invoke(t.Context(), claimFor(250))
	require.NoError(t, err)
	for _, answer := range []any{true, map[string]any{"verdict": "yes"}, map[string]any{"verdict": "expired"},
		map[string]any{"verdict": "edit"}, map[string]any{"verdict": "approve", "votes": []string{}}} {
		_, err = th.Resume(t.Context(), answer)
		require.ErrorIs(t, err, thread.ErrBadInput, "%v", answer)
	}
	_, err = th.Command(t.Context(), superstep.Command[claims]{}, superstep.WithAnswers(map[string]any{"": approval.Decision{Verdict: approval.VerdictApprove}}))
	require.ErrorIs(t, err, thread.ErrAnswerRefused)
	require.Empty(t, o.paid)
}

func TestSilence(t *testing.T) {
	minute := time.Minute.Milliseconds()
	for name, c := range map[string]struct {
		shape  approval.Action
		after  time.Duration
		status thread.Status
		paid   int
		audit  []approval.Kind
	}{
		"not yet":   {approval.Action{Within: minute}, 59 * time.Second, thread.StatusWaiting, 0, []approval.Kind{approval.KindAsked}},
		"deny":      {approval.Action{Within: minute}, time.Minute, thread.StatusFailed, 0, []approval.Kind{approval.KindAsked, approval.KindExpired}},
		"warned":    {approval.Action{Within: minute, Warn: minute / 2}, 31 * time.Second, thread.StatusWaiting, 0, []approval.Kind{approval.KindAsked, approval.KindWarned}},
		"approve":   {approval.Action{Within: minute, Silence: approval.SilenceDefault, Default: approval.VerdictApprove}, time.Minute, thread.StatusFinished, 1, []approval.Kind{approval.KindAsked, approval.KindExpired, approval.KindUsed}},
		"reject":    {approval.Action{Within: minute, Silence: approval.SilenceDefault, Default: approval.VerdictReject}, time.Minute, thread.StatusFailed, 0, []approval.Kind{approval.KindAsked, approval.KindExpired}},
		"escalate":  {approval.Action{Within: minute, Silence: approval.SilenceEscalate, Escalate: []string{"boss"}}, time.Minute, thread.StatusWaiting, 0, []approval.Kind{approval.KindAsked, approval.KindEscalated}},
		"and again": {approval.Action{Within: minute, Silence: approval.SilenceEscalate, Escalate: []string{"boss"}}, 2 * time.Minute, thread.StatusFailed, 0, []approval.Kind{approval.KindAsked, approval.KindEscalated, approval.KindExpired}},
		"pause":     {approval.Action{Within: minute, Silence: approval.SilencePause}, time.Hour, thread.StatusPaused, 0, []approval.Kind{approval.KindAsked, approval.KindExpired}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice()
				o.shape = func(a *approval.Action) {
					a.Within, a.Warn, a.Silence, a.Default, a.Escalate = c.shape.Within, c.shape.Warn, c.shape.Silence, c.shape.Default, c.shape.Escalate
				}
				th := o.graph.Thread(superstep.NewMemory(), "t-1")
				_, err := th.Invoke(t.Context(), claimFor(250))
				require.NoError(t, err)
				time.Sleep(c.after) // the bubble's clock, which moves when nothing else does
				synctest.Wait()
				result, err := th.Wait(t.Context())
				require.Equal(t, c.status, result.Status, "%v", err)
				require.Len(t, o.paid, c.paid)
				require.Equal(t, c.audit, audited(t, th))
				require.Equal(t, c.status == thread.StatusFailed, failedAs(err, "Rejected"))
				if name == "escalate" {
					require.Equal(t, []string{"boss"}, result.Questions[0].Approval.Asked)
					require.WithinDuration(t, time.Now().Add(time.Minute), result.Questions[0].Approval.Due, 0)
				}
				if name == "pause" {
					_, err = th.Approve(t.Context(), "", superstep.AskedBy("ann"))
					require.NoError(t, err)
					require.Empty(t, o.paid)
					require.NoError(t, th.Unpause(t.Context()))
					_, err = th.Wait(t.Context())
					require.NoError(t, err)
					require.Len(t, o.paid, 1)
				}
			})
		})
	}
}
