package approval_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/rules"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

const quiet = `
people: {ann: {groups: [finance]}, rita: {groups: [finance]}}
groups: {finance: {permissions: [refund.write]}}
rules:
  - allow: at night
    when: params.amount > 0
    pause: quiet hours
`

// TestARulePausesARun: what was approved counts, and nothing is done before somebody lets the run go on.
func TestARulePausesARun(t *testing.T) {
	for name, runtime := range gatedRuntimes {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			book, err := rules.Parse("rules.yaml", []byte(quiet))
			require.NoError(t, err)
			g.gate.Policy, g.gate.Directory = book, book
			th := g.graph.Thread(runtime(t, g), testserver.Queue(t))
			result, err := th.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
			require.NoError(t, err)
			q := result.Questions[0]
			token := g.token(t, q, "ann", func(c *approval.Claims) { c.Thread, c.ExpiresAt = th.ID(), time.Now().Add(10*time.Minute) })
			_, err = th.Answer(t.Context(), q.ID, approval.Reply{Verdict: approval.VerdictApprove}, token)
			require.NoError(t, err)
			v, err := th.Show(t.Context())
			require.NoError(t, err)
			require.Equal(t, thread.StatusPaused, v.Status)
			require.Equal(t, "rules", v.Paused.By)
			require.Equal(t, "quiet hours", v.Paused.Reason)
			require.Empty(t, g.paid)
			require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindAnswered, approval.KindPaused}, audited(t, th))
			require.NoError(t, th.Unpause(t.Context(), superstep.AskedBy("bob")))
			_, err = th.Wait(t.Context())
			require.NoError(t, err)
			require.Len(t, g.paid, 1)
		})
	}
}

// TestTokensOfSeveralAnswers go by the questions' ids, with the answers; an option that a request does not take is refused.
func TestTokensOfSeveralAnswers(t *testing.T) {
	for name, runtime := range gatedRuntimes {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			th := g.graph.Thread(runtime(t, g), testserver.Queue(t))
			result, err := th.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
			require.NoError(t, err)
			q := result.Questions[0]
			token := g.signed(t, q, "ann", func(c *approval.Claims) { c.Thread, c.ExpiresAt = th.ID(), time.Now().Add(10*time.Minute) })
			answers := map[string]any{q.ID: approval.Reply{Verdict: approval.VerdictApprove}}
			_, err = th.AnswerByID(t.Context(), answers)
			require.Equal(t, approval.CodeUnsigned, refusedFor(err), "%v", err)
			err = th.Pause(t.Context(), "", superstep.WithTokens(map[string]string{q.ID: token}))
			require.ErrorIs(t, err, thread.ErrBadInput)
			require.ErrorContains(t, err, "Pause takes no WithTokens")
			_, err = th.Invoke(t.Context(), nil, superstep.WithRequestID("r"))
			require.ErrorContains(t, err, "a run takes no WithRequestID")
			_, err = th.AnswerByID(t.Context(), answers, superstep.WithTokens(map[string]string{q.ID: token}))
			require.NoError(t, err)
			_, err = th.Wait(t.Context())
			require.NoError(t, err)
			require.Len(t, g.paid, 1)
		})
	}
}
