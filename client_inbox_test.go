package superstep_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
)

// payer asks for an approval of a payment, and beside it a plain question.
func payer(name string, a approval.Action) *superstep.Graph[counter] {
	g := superstep.NewStateGraph[counter](name)
	g.AddNode("pay", func(ctx context.Context, s counter) (counter, error) {
		_, err := superstep.Approve(ctx, a)
		return s, err
	})
	g.AddNode("ask", asking("ask"))
	g.AddEdge(superstep.Start, "pay")
	g.AddEdge(superstep.Start, "ask")
	return g.MustCompile()
}

// TestInbox: what waits is listed without a worker, by approver, group and graph, page by page.
func TestInbox(t *testing.T) {
	s := newServer(t)
	name := "payer" + testserver.Queue(t)
	g := payer(name, approval.Action{Tool: "pay", Summary: "Pay 250.00 to Alina's", Risk: approval.RiskHigh, Approvers: []string{"ann's", "group:finance"}})
	stop := s.work(g)
	for _, thread := range []string{name + "-1", name + "-2"} {
		_, err := s.Start(t.Context(), superstep.StartRequest{Graph: name, Thread: thread, Input: []byte(`{}`)})
		require.NoError(t, err)
	}
	listed := func(q superstep.InboxQuery) []superstep.InboxItem {
		q.Graph = name
		page, err := s.Inbox(t.Context(), q)
		require.NoError(t, err)
		return page.Questions
	}
	require.Eventually(t, func() bool { return len(listed(superstep.InboxQuery{})) == 4 }, time.Minute, 50*time.Millisecond)
	stop()

	all := listed(superstep.InboxQuery{})
	assert.Equal(t, "Pay 250.00 to Alina's", all[0].Asks, "what can do most harm comes first")
	assert.Equal(t, approval.RiskHigh, all[0].Risk)
	assert.Equal(t, "really ask?", all[3].Asks)
	assert.Equal(t, 1, all[0].Need)
	for about, q := range map[string]superstep.InboxQuery{
		"a person": {Approver: "ann's"}, "a group": {Group: "finance"}, "either": {Approver: "nobody", Group: "finance"},
	} {
		got := listed(q)
		require.Len(t, got, 2, about)
		assert.Equal(t, "pay", got[0].Node, about)
	}
	for about, q := range map[string]superstep.InboxQuery{
		"nobody": {Approver: "bob"}, "a group is no person": {Approver: "finance"}, "overdue": {Overdue: true},
		"a query": {Approver: `\' OR SuperstepQuestions > 0 OR SuperstepRisk = '`},
	} {
		assert.Empty(t, listed(q), about)
	}

	first, err := s.Inbox(t.Context(), superstep.InboxQuery{Graph: name, Limit: 1})
	require.NoError(t, err)
	second, err := s.Inbox(t.Context(), superstep.InboxQuery{Graph: name, Limit: 1, Page: first.Next})
	require.NoError(t, err)
	threads := []string{}
	for _, i := range slices.Concat(first.Questions, second.Questions) {
		threads = append(threads, i.Thread)
	}
	assert.ElementsMatch(t, []string{name + "-1", name + "-1", name + "-2", name + "-2"}, threads)
	for about, q := range map[string]superstep.InboxQuery{"too large": {Limit: 1001}, "no page": {Page: "?"}} {
		_, err = s.Inbox(t.Context(), q)
		require.ErrorIs(t, err, superstep.ErrBadInput, about)
	}
}

// TestOverdue: a question whose time is over stays in the inbox while it is open, and can be selected.
func TestOverdue(t *testing.T) {
	s := newServer(t)
	name := "late" + testserver.Queue(t)
	within := 300 * time.Millisecond
	s.work(payer(name, approval.Action{Tool: "pay", Summary: "Pay", Within: within.Milliseconds(), Silence: approval.SilencePause}))
	_, err := s.Start(t.Context(), superstep.StartRequest{Graph: name, Thread: name, Input: []byte(`{}`)})
	require.NoError(t, err)
	var overdue []superstep.InboxItem
	require.Eventually(t, func() bool {
		page, err := s.Inbox(t.Context(), superstep.InboxQuery{Graph: name, Overdue: true})
		require.NoError(t, err)
		overdue = page.Questions
		v, err := s.Show(t.Context(), name)
		require.NoError(t, err)
		return len(overdue) == 1 && v.Status == superstep.StatusPaused
	}, time.Minute, 50*time.Millisecond)
	assert.Equal(t, "pay", overdue[0].Node)
	v, err := s.Question(t.Context(), name, overdue[0].Question)
	require.NoError(t, err)
	assert.True(t, v.Approval.Due.Equal(overdue[0].Due), "%v, in the list %v", v.Approval.Due, overdue[0].Due)

	thread := payer(name, approval.Action{Tool: "pay", Summary: "Pay", Within: within.Milliseconds(), Silence: approval.SilencePause}).
		Thread(superstep.NewMemory(), "t")
	_, err = thread.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		v, err := thread.Wait(t.Context())
		require.NoError(t, err)
		return v.Status == superstep.StatusPaused && slices.ContainsFunc(v.Questions, func(q superstep.Question) bool { return q.Approval != nil && !q.Approval.Due.IsZero() })
	}, time.Minute, 10*time.Millisecond)
}

// TestQuestion: one question as its run has it, by the start of its id.
func TestQuestion(t *testing.T) {
	s := newServer(t)
	name := "payer" + testserver.Queue(t)
	s.work(payer(name, approval.Action{Tool: "pay", Summary: "Pay", Params: []byte(`{"card":"4111","amount":1}`), Secrets: []string{"/card"}}))
	_, err := s.Start(t.Context(), superstep.StartRequest{Graph: name, Thread: name, Input: []byte(`{}`)})
	require.NoError(t, err)
	var shown superstep.ThreadView
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
	assert.Equal(t, []superstep.Question{ask}, v.Others)
	_, err = s.Question(t.Context(), name, "")
	require.ErrorIs(t, err, superstep.ErrBadInput, "two can be meant")
	_, err = s.Question(t.Context(), name, "q-nothing")
	require.ErrorIs(t, err, superstep.ErrNotFound)

	_, err = s.Resume(t.Context(), superstep.ResumeRequest{Thread: name, Question: ask.ID, Value: []byte("true"), By: "ann"})
	require.NoError(t, err)
	v, err = s.Question(t.Context(), name, ask.ID)
	require.NoError(t, err)
	require.NotNil(t, v.Given)
	assert.Equal(t, "ann", v.Given.By)
	v, err = s.Question(t.Context(), name, "")
	require.NoError(t, err)
	assert.Equal(t, pay.ID, v.ID)
}
