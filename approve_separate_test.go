package superstep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/rules"
	"superstep.dev/internal/testserver"
)

// TestWhoeverEditsDoesNotApprove where approvers are separate: neither the last parameters, nor others in which theirs may
// still be, nor after the action was asked about anew for another reason.
func TestWhoeverEditsDoesNotApprove(t *testing.T) {
	for name, runtime := range gatedRuntimes {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			book, err := rules.Parse("rules.yaml", []byte(whoMay))
			require.NoError(t, err)
			g.gate.Policy, g.gate.Directory = book, book
			watched := "1"
			shape := g.shape
			g.shape = func(a *approval.Action) { shape(a); a.Watch = map[string]string{"rate": watched} }
			id := testserver.Queue(t)
			thread := g.graph.Thread(runtime(t, g), id)
			as := func(q superstep.Question, by string) superstep.ReplyOption {
				return g.token(t, q, by, func(c *approval.Claims) { c.Thread, c.ExpiresAt = id, time.Now().Add(10*time.Minute) })
			}
			refused := func(q superstep.Question, by string) {
				t.Helper()
				_, err := thread.Approve(t.Context(), q.ID, as(q, by))
				require.Equal(t, approval.CodeSamePerson, refusedFor(err), "%s: %v", by, err)
			}
			result, err := thread.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
			require.NoError(t, err)
			q := result.Questions[0]

			result, err = thread.Edit(t.Context(), q.ID, claimOf{Amount: 250, Card: "ann's own"}, as(q, "ann"))
			require.NoError(t, err)
			q = result.Questions[0]
			refused(q, "ann")
			result, err = thread.Edit(t.Context(), q.ID, claimOf{Amount: 240, Card: "ann's own"}, as(q, "bob"))
			require.NoError(t, err)
			q = result.Questions[0]
			require.Equal(t, []string{"ann", "bob"}, q.Approval.Before.Proposers)
			refused(q, "bob")
			refused(q, "ann") // the card is still hers
			require.Empty(t, g.paid)

			watched = "2" // approved by a third, and then something else has changed
			result, err = thread.Approve(t.Context(), q.ID, as(q, "dan"))
			require.NoError(t, err)
			require.Equal(t, superstep.StatusWaiting, result.Status)
			q = result.Questions[0]
			require.Equal(t, []string{"watch.rate"}, q.Approval.Before.Changed)
			refused(q, "ann")
			refused(q, "bob")
			result, err = thread.Approve(t.Context(), q.ID, as(q, "dan"))
			require.NoError(t, err)
			require.Equal(t, superstep.StatusFinished, result.Status)
			require.Equal(t, []claimOf{{Amount: 240, Card: "ann's own"}}, g.paid)
		})
	}
}
