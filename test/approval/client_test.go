package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
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
	b := superstep.NewStateGraph[rig.Counter]("payment")
	b.AddNode("pay", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		d, err := superstep.Approve(ctx, action)
		if err != nil {
			return s, err
		}
		return rig.Appending(string(d.Verdict))(ctx, s)
	})
	b.AddEdge(superstep.Start, "pay")
	g := b.MustCompile()
	s := rig.NewServer(t)
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Gate: gate})
	th := g.Thread(s.Client, s.Queue)
	_, err := th.Invoke(t.Context(), rig.Counter{})
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
	answer := thread.ResumeRequest{Thread: th.ID(), Question: q, Value: json.RawMessage(`{"verdict":"approve"}`), By: "ann"}
	refused := func(want approval.Code) {
		t.Helper()
		_, err := s.Resume(t.Context(), answer)
		require.ErrorIs(t, err, thread.ErrAnswerRefused)
		var why *thread.Error
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
	var got superstep.Result[rig.Counter]
	require.Eventually(t, func() bool { // nobody waits for a signal
		got, err = th.Wait(t.Context())
		return err == nil && got.Status == thread.StatusFinished
	}, time.Minute, 20*time.Millisecond)
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
	require.ErrorIs(t, err, thread.ErrAnswerRefused)
	_, _, err = s.Audit(t.Context(), "no-such-thread")
	assert.True(t, errors.Is(err, thread.ErrNotFound))
}

// payer asks for an approval of a payment, and beside it a plain question.
func payer(name string, a approval.Action) *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter](name)
	g.AddNode("pay", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		_, err := superstep.Approve(ctx, a)
		return s, err
	})
	g.AddNode("ask", rig.Asking("ask"))
	g.AddEdge(superstep.Start, "pay")
	g.AddEdge(superstep.Start, "ask")
	return g.MustCompile()
}

// TestInbox: what waits is listed without a worker, by approver, group and graph, page by page.
func TestInbox(t *testing.T) {
	s := rig.NewServer(t)
	name := "payer" + testserver.Queue(t)
	g := payer(name, approval.Action{Tool: "pay", Summary: "Pay 250.00 to Alina's", Risk: approval.RiskHigh, Approvers: []string{"ann's", "group:finance"}})
	stop := s.Work(g)
	for _, threadID := range []string{name + "-1", name + "-2"} {
		_, err := s.Start(t.Context(), thread.StartRequest{Graph: name, Thread: threadID, Input: []byte(`{}`)})
		require.NoError(t, err)
	}
	listed := func(q thread.InboxQuery) []thread.InboxItem {
		q.Graph = name
		page, err := s.Inbox(t.Context(), q)
		require.NoError(t, err)
		return page.Questions
	}
	require.Eventually(t, func() bool { return len(listed(thread.InboxQuery{})) == 4 }, time.Minute, 50*time.Millisecond)
	stop()

	all := listed(thread.InboxQuery{})
	assert.Equal(t, "Pay 250.00 to Alina's", all[0].Asks, "what can do most harm comes first")
	assert.Equal(t, approval.RiskHigh, all[0].Risk)
	assert.Equal(t, "really ask?", all[3].Asks)
	assert.Equal(t, 1, all[0].Need)
	for about, q := range map[string]thread.InboxQuery{
		"a person": {Approver: "ann's"}, "a group": {Group: "finance"}, "either": {Approver: "nobody", Group: "finance"},
	} {
		got := listed(q)
		require.Len(t, got, 2, about)
		assert.Equal(t, "pay", got[0].Node, about)
	}
	for about, q := range map[string]thread.InboxQuery{
		"nobody": {Approver: "bob"}, "a group is no person": {Approver: "finance"}, "overdue": {Overdue: true},
		"a query": {Approver: `\' OR SuperstepQuestions > 0 OR SuperstepRisk = '`},
	} {
		assert.Empty(t, listed(q), about)
	}

	first, err := s.Inbox(t.Context(), thread.InboxQuery{Graph: name, Limit: 1})
	require.NoError(t, err)
	second, err := s.Inbox(t.Context(), thread.InboxQuery{Graph: name, Limit: 1, Page: first.Next})
	require.NoError(t, err)
	threads := []string{}
	for _, i := range slices.Concat(first.Questions, second.Questions) {
		threads = append(threads, i.Thread)
	}
	assert.ElementsMatch(t, []string{name + "-1", name + "-1", name + "-2", name + "-2"}, threads)
	for about, q := range map[string]thread.InboxQuery{"too large": {Limit: 1001}, "no page": {Page: "?"}} {
		_, err = s.Inbox(t.Context(), q)
		require.ErrorIs(t, err, thread.ErrBadInput, about)
	}
}

// TestOverdue: a question whose time is over stays in the inbox while it is open, and can be selected.
func TestOverdue(t *testing.T) {
	s := rig.NewServer(t)
	name := "late" + testserver.Queue(t)
	within := 300 * time.Millisecond
	s.Work(payer(name, approval.Action{Tool: "pay", Summary: "Pay", Within: within.Milliseconds(), Silence: approval.SilencePause}))
	_, err := s.Start(t.Context(), thread.StartRequest{Graph: name, Thread: name, Input: []byte(`{}`)})
	require.NoError(t, err)
	var overdue []thread.InboxItem
	require.Eventually(t, func() bool {
		page, err := s.Inbox(t.Context(), thread.InboxQuery{Graph: name, Overdue: true})
		require.NoError(t, err)
		overdue = page.Questions
		v, err := s.Show(t.Context(), name)
		require.NoError(t, err)
		return len(overdue) == 1 && v.Status == thread.StatusPaused
	}, time.Minute, 50*time.Millisecond)
	assert.Equal(t, "pay", overdue[0].Node)
	v, err := s.Question(t.Context(), name, overdue[0].Question)
	require.NoError(t, err)
	assert.True(t, v.Approval.Due.Equal(overdue[0].Due), "%v, in the list %v", v.Approval.Due, overdue[0].Due)

	th := payer(name, approval.Action{Tool: "pay", Summary: "Pay", Within: within.Milliseconds(), Silence: approval.SilencePause}).
		Thread(superstep.NewMemory(), "t")
	_, err = th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		v, err := th.Wait(t.Context())
		require.NoError(t, err)
		return v.Status == thread.StatusPaused && slices.ContainsFunc(v.Questions, func(q thread.Question) bool { return q.Approval != nil && !q.Approval.Due.IsZero() })
	}, time.Minute, 10*time.Millisecond)
}

// TestQuestion: one question as its run has it, by the start of its id.
func TestQuestion(t *testing.T) {
	s := rig.NewServer(t)
	name := "payer" + testserver.Queue(t)
	s.Work(payer(name, approval.Action{Tool: "pay", Summary: "Pay", Params: []byte(`{"card":"4111","amount":1}`), Secrets: []string{"/card"}}))
	_, err := s.Start(t.Context(), thread.StartRequest{Graph: name, Thread: name, Input: []byte(`{}`)})
	require.NoError(t, err)
	var shown thread.View
	require.Eventually(t, func() bool {
		shown, err = s.Show(t.Context(), name)
		return err == nil && len(shown.Questions) == 2
	}, time.Minute, 50*time.Millisecond)

	pay, ask := shown.Questions[0], shown.Questions[1]
	if pay.Node != "pay" {
		pay, ask = ask, pay
	}
	v, err := s.Question(t.Context(), name, pay.ID)
	require.NoError(t, err)
	require.NotNil(t, v.Approval)
	assert.JSONEq(t, `{"card":"***","amount":1}`, string(v.Approval.Params))
	assert.NotEmpty(t, v.Approval.Digest)
	assert.Equal(t, []thread.Question{ask}, v.Others)
	_, err = s.Question(t.Context(), name, "")
	require.ErrorIs(t, err, thread.ErrBadInput, "two can be meant")
	_, err = s.Question(t.Context(), name, "q-nothing")
	require.ErrorIs(t, err, thread.ErrNotFound)

	_, err = s.Resume(t.Context(), thread.ResumeRequest{Thread: name, Question: ask.ID, Value: []byte("true"), By: "ann"})
	require.NoError(t, err)
	v, err = s.Question(t.Context(), name, ask.ID)
	require.NoError(t, err)
	require.NotNil(t, v.Given)
	assert.Equal(t, "ann", v.Given.By)
	v, err = s.Question(t.Context(), name, "")
	require.NoError(t, err)
	assert.Equal(t, pay.ID, v.ID)
}

// TestAnApprovalWithoutAWorker: what is asked is seen, and an approval by signal is kept for the next worker.
func TestAnApprovalWithoutAWorker(t *testing.T) {
	t.Parallel()
	signer, gate := signing(t)
	b := superstep.NewStateGraph[rig.Counter]("unattended")
	b.AddNode("pay", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		d, err := superstep.Approve(ctx, approval.Action{Tool: "pay", Summary: "Pay somebody.", Params: json.RawMessage(`{"amount":1}`)})
		if err != nil {
			return s, err
		}
		return rig.Appending(string(d.Verdict))(ctx, s)
	})
	b.AddEdge(superstep.Start, "pay")
	g := b.MustCompile()
	s := rig.NewServer(t)
	config := superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Gate: gate}
	stop := s.WorkWith(config)
	th := g.Thread(s.Client, s.Queue)
	asks, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	stop()
	q, err := s.Question(t.Context(), th.ID(), "")
	require.NoError(t, err)
	require.Equal(t, asks.Questions[0].ID, q.ID)
	require.Equal(t, asks.Questions[0].Approval.Digest, q.Approval.Digest)
	signed, err := signer.Sign(approval.Claims{ID: q.ID, Thread: th.ID(), Question: q.ID, Approver: "ann", Digest: q.Approval.Digest,
		ParamsHash: q.Approval.ParamsHash, IssuedAt: time.Now(), ExpiresAt: time.Now().Add(10 * time.Minute)})
	require.NoError(t, err)
	_, err = s.Resume(t.Context(), thread.ResumeRequest{Thread: th.ID(), Question: q.ID, Value: json.RawMessage(`{"verdict":"approve"}`),
		Token: signed, Signal: true})
	require.NoError(t, err)
	s.WorkWith(config)
	result, err := th.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
}
