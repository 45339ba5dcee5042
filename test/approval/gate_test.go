package approval_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/thread"
)

// staff is a directory that the test changes.
type staff map[string]approval.Person

func (s staff) Person(_ context.Context, name string) (approval.Person, error) {
	p, ok := s[name]
	if !ok {
		return p, &approval.UnknownPersonError{Name: name}
	}
	return p, nil
}

func (s staff) Version(context.Context) (string, error) { return "1", nil }

// gated is an office with a gate.
type gated struct {
	*office
	staff  staff
	signer *token.Signer
	gate   *approval.Gate
	rt     *superstep.Memory
	thread *superstep.Thread[claims]
}

func newGated(t *testing.T) *gated {
	t.Helper()
	private, _, err := token.Generate(approval.Owner{Issuer: "test"}, "test")
	require.NoError(t, err)
	g := &gated{office: newOffice(), staff: staff{}}
	g.signer, err = token.ParseSigner(private)
	require.NoError(t, err)
	keys, err := token.New(g.signer.Key())
	require.NoError(t, err)
	for _, name := range []string{"ann", "bob"} {
		g.staff[name] = approval.Person{Name: name, Groups: []string{"finance"}, Permissions: []string{"refund.write"}}
	}
	g.staff["rita"] = approval.Person{Name: "rita", Permissions: []string{"refund.write"}}
	g.shape = func(a *approval.Action) {
		a.Permissions, a.Approvers = []string{"refund.write"}, []string{"group:finance"}
	}
	g.gate = &approval.Gate{Keys: keys, Directory: g.staff}
	g.rt = superstep.NewMemory(superstep.WithGate(g.gate))
	g.thread = g.graph.Thread(g.rt, "t-1")
	return g
}

func (g *gated) begin(t *testing.T) thread.Question {
	t.Helper()
	result, err := g.thread.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
	require.NoError(t, err)
	require.Len(t, result.Questions, 1)
	return result.Questions[0]
}

// token is what that person signs for a question.
func (g *gated) token(t *testing.T, q thread.Question, by string, change ...func(*approval.Claims)) superstep.RequestOption {
	t.Helper()
	return superstep.WithToken(g.signed(t, q, by, change...))
}

// signed is a token for an answer to a question.
func (g *gated) signed(t *testing.T, q thread.Question, by string, change ...func(*approval.Claims)) string {
	t.Helper()
	c := approval.Claims{Thread: "t-1", Question: q.ID, Approver: by, Digest: q.Approval.Digest, ParamsHash: q.Approval.ParamsHash,
		IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute)}
	for _, f := range change {
		f(&c)
	}
	signed, err := g.signer.Sign(c)
	require.NoError(t, err)
	return signed
}

func refusedFor(err error) approval.Code {
	var refused *thread.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func TestMemoryGate(t *testing.T) {
	g := newGated(t)
	q := g.begin(t)
	for code, opt := range map[approval.Code]superstep.RequestOption{
		approval.CodeUnsigned:    superstep.AskedBy("ann"),
		approval.CodeMalformed:   superstep.WithToken("yes"),
		approval.CodeWrongThread: g.token(t, q, "ann", func(c *approval.Claims) { c.Thread = "t-2" }),
		approval.CodeWrongRun:    g.token(t, q, "ann", func(c *approval.Claims) { c.Question = "q-other" }),
		approval.CodeNotYours:    g.token(t, q, "rita"),
		approval.CodeExpired: g.token(t, q, "ann", func(c *approval.Claims) {
			c.IssuedAt, c.ExpiresAt = c.IssuedAt.Add(-10*time.Minute), c.IssuedAt.Add(-5*time.Minute)
		}),
	} {
		_, err := g.thread.Approve(t.Context(), q.ID, opt)
		require.ErrorIs(t, err, thread.ErrAnswerRefused)
		require.Equal(t, code, refusedFor(err), "%v", err)
	}
	require.Empty(t, g.paid)
	result, err := g.thread.Approve(t.Context(), q.ID, g.token(t, q, "ann"))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	require.Len(t, g.paid, 1)
	entries, _, err := g.thread.Audit(t.Context())
	require.NoError(t, err)
	answered := entries[len(entries)-2]
	require.Equal(t, approval.KindAnswered, answered.Kind)
	require.Equal(t, "ann", answered.Who)
	require.NotEmpty(t, answered.Token)
	require.Len(t, audited(t, g.thread), 9)
}

// TestRevokedBetweenApprovalAndWrite: the permission that counted when it was approved is gone when it is to be done.
func TestRevokedBetweenApprovalAndWrite(t *testing.T) {
	for name, c := range map[string]struct {
		revoke func(*gated)
		code   approval.Code
	}{
		"the approver's": {func(g *gated) { g.staff["ann"] = approval.Person{Name: "ann", Groups: []string{"finance"}} }, approval.CodePermission},
		"the requester":  {func(g *gated) { delete(g.staff, "rita") }, approval.CodeRequester},
		"the approver":   {func(g *gated) { delete(g.staff, "ann") }, approval.CodeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			q := g.begin(t)
			require.NoError(t, g.thread.Pause(t.Context(), "lunch"))
			_, err := g.thread.Approve(t.Context(), q.ID, g.token(t, q, "ann"))
			require.NoError(t, err)
			c.revoke(g)
			require.NoError(t, g.thread.Unpause(t.Context()))
			_, err = g.thread.Wait(t.Context())
			require.True(t, failedAs(err, "NotAllowed"), "%v", err)
			require.Empty(t, g.paid)
			require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindPaused, approval.KindAnswered, approval.KindUnpaused,
				approval.KindNotUsed}, audited(t, g.thread))
			entries, _, err := g.thread.Audit(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.code, entries[4].Code)
			for name := range g.staff {
				delete(g.staff, name)
			}
			for _, p := range []string{"ann", "rita"} {
				g.staff[p] = approval.Person{Name: p, Groups: []string{"finance"}, Permissions: []string{"refund.write"}}
			}
			_, err = g.thread.Retry(t.Context())
			require.NoError(t, err, "allowed again, the same approval counts")
			require.Len(t, g.paid, 1)
		})
	}
}

// TestOtherVersionBetweenApprovalAndWrite: what was approved is a version of the tool.
func TestOtherVersionBetweenApprovalAndWrite(t *testing.T) {
	g := newGated(t)
	q := g.begin(t)
	next := newOffice()
	next.shape, next.effect.Version = g.shape, "v2"
	regraph := superstep.NewStateGraph[claims]("office")
	regraph.AddEffect(next.effect)
	regraph.AddNode("pay", func(ctx context.Context, s claims) (claims, error) {
		receipt, err := next.effect.Call(ctx, s.Claim.Get())
		s.Paid.Append(receipt)
		return s, err
	})
	regraph.AddEdge(superstep.Start, "pay")
	deployed := regraph.MustCompile().Thread(g.rt, "t-1")
	_, err := deployed.Approve(t.Context(), q.ID, g.token(t, q, "ann"))
	require.Equal(t, approval.CodeToolVersion, refusedFor(err), "%v", err)
	_, err = g.thread.Reject(t.Context(), q.ID, g.token(t, q, "ann"))
	require.True(t, failedAs(err, "Rejected"), "a rejection does no harm: %v", err)
}

// TestAbandonedApprovalIsWithdrawn: cancelled, or overtaken by new input, and asked anew by a retry.
func TestAbandonedApprovalIsWithdrawn(t *testing.T) {
	g := newGated(t)
	q := g.begin(t)
	require.NoError(t, g.thread.Cancel(t.Context(), "no more"))
	_, err := g.thread.Approve(t.Context(), q.ID, g.token(t, q, "ann"))
	require.ErrorIs(t, err, thread.ErrAnswerRefused)
	require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindCancelled, approval.KindWithdrawn}, audited(t, g.thread))
	result, err := g.thread.Retry(t.Context())
	require.NoError(t, err)
	require.Equal(t, q.ID, result.Questions[0].ID)
	again := g.begin(t)
	require.NotEqual(t, q.ID, again.ID)
	_, err = g.thread.Approve(t.Context(), again.ID, g.token(t, again, "ann"))
	require.NoError(t, err)
	require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindCancelled, approval.KindWithdrawn, approval.KindRetried,
		approval.KindAsked, approval.KindWithdrawn,
		approval.KindAsked, approval.KindAnswered, approval.KindUsed}, audited(t, g.thread))
}
