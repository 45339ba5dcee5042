package approval_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestARecordOfACheckpoint: the record says the same on both runtimes, before and after an approval, of where the thread stands and
// of what it has passed; neither parameters nor values are in it.
func TestARecordOfACheckpoint(t *testing.T) {
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	g := superstep.NewStateGraph[rig.Payment]("recorded")
	g.AddEffect(pay)
	g.AddNode("first", rig.Paying(pay, "ann"))
	g.AddNode("second", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		s.Log.Append("second")
		return s, nil
	}, superstep.WithApproval(func(rig.Payment) (approval.Action, bool) {
		return approval.Action{Tool: "bank.close", Summary: "Close the account", Params: json.RawMessage(`{"card":"4111-secret"}`),
			Permissions: []string{"account.close"}, Risk: approval.RiskHigh, Secrets: []string{"/card"}}, true
	}))
	g.AddEdge(superstep.Start, "first")
	g.AddEdge("first", "second")
	graph := g.MustCompile()
	plan, err := graphadapter.Fingerprint(graph.Adapter().Spec)
	require.NoError(t, err)

	told := map[string][]string{}
	rig.OnRuntimes(t, graph, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Payment]) {
		b.Empty()
		began := time.Now().Add(-time.Second)
		got, err := th.Invoke(t.Context(), rig.Payment{})
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, got.Status)
		effects, err := th.Effects(t.Context())
		require.NoError(t, err)
		require.Len(t, effects.Effects, 1)

		waits, err := th.Checkpoint(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "recorded", waits.Graph)
		assert.Equal(t, th.ID(), waits.Thread)
		assert.NotEmpty(t, waits.RunID)
		assert.WithinRange(t, waits.CreatedAt, began, time.Now().Add(time.Second))
		assert.Equal(t, plan, waits.PlanVersion)
		assert.Equal(t, []string{"second"}, waits.Nodes)
		assert.Equal(t, thread.ResumeAfterApproval, waits.ResumePolicy)
		assert.Equal(t, []string{thread.RecheckPermissions}, waits.Recheck)
		require.Len(t, waits.CompletedSteps, 1)
		assert.Equal(t, thread.CompletedStep{Step: 1, Nodes: []string{"first"}, Checkpoint: waits.ID}, waits.CompletedSteps[0])
		require.Len(t, waits.SideEffects, 1)
		assert.Equal(t, effects.Effects[0].Key, waits.SideEffects[0].Key)
		assert.Equal(t, "committed", waits.SideEffects[0].State)
		assert.NotEmpty(t, waits.SideEffects[0].ParamsHash)
		assert.Empty(t, waits.PendingSideEffects)
		require.Len(t, waits.PendingActions, 1)
		action := waits.PendingActions[0]
		question := got.Questions[0]
		assert.Equal(t, thread.PendingAction{Question: question.ID, Node: "second", Tool: "bank.close", ParamsHash: question.Approval.ParamsHash,
			Digest: question.Approval.Digest, Permissions: []string{"account.close"}, Requester: action.Requester, Risk: "high"}, action)
		require.Len(t, waits.Artifacts, 1)
		assert.Equal(t, "log", waits.Artifacts[0].Name)

		_, err = th.Approve(t.Context(), "", superstep.AskedBy("ann"), superstep.WithToken(graphtest.Token(th.ID(), question, "ann")))
		require.NoError(t, err)
		over, err := th.Checkpoint(t.Context())
		require.NoError(t, err)
		assert.Equal(t, thread.ResumeAfterInput, over.ResumePolicy)
		assert.Empty(t, over.PendingActions)
		assert.Len(t, over.CompletedSteps, 2)
		passed, err := th.Checkpoint(t.Context(), superstep.AtCheckpoint(waits.ID))
		require.NoError(t, err)
		assert.Equal(t, thread.ResumeByFork, passed.ResumePolicy)
		assert.Equal(t, waits.CompletedSteps, passed.CompletedSteps)
		assert.Equal(t, waits.SideEffects, passed.SideEffects)
		assert.Equal(t, waits.RunID, passed.RunID)
		input, err := th.Checkpoint(t.Context(), superstep.AtCheckpoint(waits.Parent))
		require.NoError(t, err)
		assert.Empty(t, input.CompletedSteps)
		assert.Len(t, input.SideEffects, 1, "the superstep behind it made it")
		_, err = th.Checkpoint(t.Context(), superstep.AtCheckpoint("c-none"))
		require.ErrorIs(t, err, thread.ErrNotFound)

		for _, r := range []thread.CheckpointRecord{input, waits, passed, over} {
			text, err := json.Marshal(r)
			require.NoError(t, err)
			assert.NotContains(t, string(text), "4111-secret")
			assert.NotContains(t, string(text), "paid ann")
			for name, value := range map[string]string{"THREAD": th.ID(), "RUN": r.RunID, "TIME": r.CreatedAt.Format(time.RFC3339Nano),
				"KEY": effects.Effects[0].Key, "QUESTION": question.ID, "DIGEST": action.Digest} {
				text = []byte(strings.ReplaceAll(string(text), `"`+value+`"`, `"`+name+`"`))
			}
			told[t.Name()] = append(told[t.Name()], string(text))
		}
	})
	var first []string
	for _, records := range told {
		if first == nil {
			first = records
		}
		assert.Equal(t, first, records)
	}
	assert.Len(t, told, 2)
}
