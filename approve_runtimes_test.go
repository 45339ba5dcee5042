package superstep_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
)

// gatedRuntimes are both runtimes, each with the gate.
var gatedRuntimes = map[string]func(*testing.T, *gated) superstep.Runtime{
	"memory": func(_ *testing.T, g *gated) superstep.Runtime { return g.rt },
	"temporal": func(t *testing.T, g *gated) superstep.Runtime {
		s := newServer(t)
		s.workWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g.graph}, Gate: g.gate})
		return s.Client
	},
}

// TestApprovalsAreTheSameOnBothRuntimes: asked, edited, approved by two people with tokens, done once, and audited, in every
// durability mode.
func TestApprovalsAreTheSameOnBothRuntimes(t *testing.T) {
	for _, mode := range []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit} {
		for name, runtime := range gatedRuntimes {
			t.Run(string(mode)+"/"+name, func(t *testing.T) {
				g := newGated(t)
				shape := g.shape
				g.shape = func(a *approval.Action) { shape(a); a.Quorum = 2 }
				id := testserver.Queue(t)
				thread := g.graph.Thread(runtime(t, g), id)
				token := func(q superstep.Question, by string) superstep.ReplyOption {
					return g.token(t, q, by, func(c *approval.Claims) { c.Thread, c.ExpiresAt = id, time.Now().Add(10*time.Minute) })
				}
				result, err := thread.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"), superstep.WithDurability(mode))
				require.NoError(t, err)
				q := result.Questions[0]
				require.Equal(t, "rita", q.Approval.Requester)
				require.Equal(t, "v1", q.Approval.ToolVersion)
				_, err = thread.Approve(t.Context(), q.ID)
				require.ErrorIs(t, err, superstep.ErrAnswerRefused)
				require.Equal(t, approval.CodeUnsigned, refusedFor(err), "%v", err)
				result, err = thread.Edit(t.Context(), q.ID, claimOf{Amount: 200, Card: "4929"}, token(q, "ann"))
				require.NoError(t, err)
				q = result.Questions[0]
				result, err = thread.Approve(t.Context(), q.ID, token(q, "ann"))
				require.NoError(t, err)
				require.Len(t, result.Questions[0].Approval.Votes, 1)
				result, err = thread.Approve(t.Context(), q.ID, token(q, "bob"))
				require.NoError(t, err)
				require.Equal(t, []string{"paid 200"}, result.Output.Paid.Get())
				require.Len(t, g.paid, 1)
				require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindRefused, approval.KindAnswered, approval.KindAsked,
					approval.KindVoted, approval.KindAnswered, approval.KindUsed}, audited(t, thread))
			})
		}
	}
}
