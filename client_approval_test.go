package superstep_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

// signing is a signer, and the gate that knows it.
func signing(t *testing.T) (*token.Signer, *approval.Gate) {
	t.Helper()
	private, _, err := token.Generate(approval.Owner{Issuer: "test"}, "test")
	require.NoError(t, err)
	signer, err := token.ParseSigner(private)
	require.NoError(t, err)
	keys, err := token.New(signer.Key())
	require.NoError(t, err)
	return signer, &approval.Gate{Keys: keys}
}

// TestClientApproval: an answer without a right token is refused with its code, the right one counts, by update and by
// signal, and the audit of an open and of a closed thread is whole.
func TestClientApproval(t *testing.T) {
	t.Parallel()
	signer, gate := signing(t)
	action := approval.Action{Tool: "pay", Summary: "Pay somebody.", Params: json.RawMessage(`{"amount":1}`), Quorum: 2}
	b := superstep.NewStateGraph[counter]("payment")
	b.AddNode("pay", func(ctx context.Context, s counter) (counter, error) {
		d, err := superstep.Approve(ctx, action)
		if err != nil {
			return s, err
		}
		return appending(string(d.Verdict))(ctx, s)
	})
	b.AddEdge(superstep.Start, "pay")
	g := b.MustCompile()
	s := newServer(t)
	s.workWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Gate: gate})
	th := g.Thread(s.Client, s.queue)
	_, err := th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	view, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	require.Len(t, view.Questions, 1)
	q := view.Questions[0].ID

	asked := view.Questions[0].Approval
	require.NotNil(t, asked)
	claims := func(by string) approval.Claims {
		return approval.Claims{ID: by + q, Thread: th.ID(), Question: q, Approver: by, Digest: asked.Digest, ParamsHash: asked.ParamsHash,
			IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute)}
	}
	sign := func(c approval.Claims) string {
		signed, err := signer.Sign(c)
		require.NoError(t, err)
		return signed
	}
	answer := superstep.ResumeRequest{Thread: th.ID(), Question: q, Value: json.RawMessage(`{"verdict":"approve"}`), By: "ann"}
	refused := func(want approval.Code) {
		t.Helper()
		_, err := s.Resume(t.Context(), answer)
		require.ErrorIs(t, err, superstep.ErrAnswerRefused)
		var why *superstep.Error
		require.ErrorAs(t, err, &why)
		assert.Equal(t, want, why.Code)
		assert.Equal(t, q, why.Question)
		assert.NotEmpty(t, why.Do)
	}
	refused(approval.CodeUnsigned)
	other, _ := signing(t)
	answer.Token, err = other.Sign(claims("ann"))
	require.NoError(t, err)
	refused(approval.CodeSignature)

	require.NoError(t, s.Viewed(t.Context(), th.ID(), q, "ann"))
	answer.Token = sign(claims("ann"))
	reply, err := s.Resume(t.Context(), answer)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, []int{reply.Votes, reply.Need})
	refused(approval.CodeUsed)
	view, err = s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Len(t, view.Questions[0].Approval.Votes, 1)
	open, chain, err := s.Audit(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, len(open), chain.Count)

	answer.Token, answer.By, answer.Signal = sign(claims("bob")), "bob", true
	_, err = s.Resume(t.Context(), answer)
	require.NoError(t, err)
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"approve"}, got.Output.Log.Get())

	all, chain, err := s.Audit(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, open, all[:len(open)], "what was in the audit has changed")
	var kinds []approval.Kind
	for _, e := range all {
		kinds = append(kinds, e.Kind)
	}
	assert.Subset(t, kinds, []approval.Kind{approval.KindAsked, approval.KindRefused, approval.KindViewed, approval.KindVoted,
		approval.KindAnswered, approval.KindUsed})
	known, err := approval.VerifyEntries(approval.Chain{}, all)
	require.NoError(t, err)
	assert.Equal(t, chain, known)
	answer.Signal = false
	_, err = s.Resume(t.Context(), answer)
	require.ErrorIs(t, err, superstep.ErrAnswerRefused)
	_, _, err = s.Audit(t.Context(), "no-such-thread")
	assert.True(t, errors.Is(err, superstep.ErrNotFound))
}
