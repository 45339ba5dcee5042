package approval_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/rules"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// gatedRuntimes are both runtimes, each with the gate.
var gatedRuntimes = map[string]func(*testing.T, *gated) superstep.Runtime{
	"memory": func(_ *testing.T, g *gated) superstep.Runtime { return g.rt },
	"temporal": func(t *testing.T, g *gated) superstep.Runtime {
		s := rig.NewServer(t)
		s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g.graph}, Gate: g.gate})
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
				th := g.graph.Thread(runtime(t, g), id)
				token := func(q thread.Question, by string) superstep.RequestOption {
					return g.token(t, q, by, func(c *approval.Claims) { c.Thread, c.ExpiresAt = id, time.Now().Add(10*time.Minute) })
				}
				result, err := th.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"), superstep.WithDurability(mode))
				require.NoError(t, err)
				q := result.Questions[0]
				require.Equal(t, "rita", q.Approval.Requester)
				require.Equal(t, "v1", q.Approval.ToolVersion)
				_, err = th.Approve(t.Context(), q.ID)
				require.ErrorIs(t, err, thread.ErrAnswerRefused)
				require.Equal(t, approval.CodeUnsigned, refusedFor(err), "%v", err)
				result, err = th.Edit(t.Context(), q.ID, claimOf{Amount: 200, Card: "4929"}, token(q, "ann"))
				require.NoError(t, err)
				q = result.Questions[0]
				result, err = th.Approve(t.Context(), q.ID, token(q, "ann"))
				require.NoError(t, err)
				require.Len(t, result.Questions[0].Approval.Votes, 1)
				result, err = th.Approve(t.Context(), q.ID, token(q, "bob"))
				require.NoError(t, err)
				require.Equal(t, []string{"paid 200"}, result.Output.Paid.Get())
				require.Len(t, g.paid, 1)
				require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindRefused, approval.KindAnswered, approval.KindAsked,
					approval.KindVoted, approval.KindAnswered, approval.KindUsed}, audited(t, th))
			})
		}
	}
}

// headOffice is a graph whose node calls the graph of an office, for each of two claims.
func headOffice(o *office) *superstep.Graph[claims] {
	g := superstep.NewStateGraph[claims]("head-office")
	g.AddNode("both", func(ctx context.Context, s claims) (claims, error) {
		for _, amount := range []int64{250, 300} {
			result, err := o.graph.Invoke(ctx, claimFor(amount))
			if err != nil {
				return s, err
			}
			s.Paid.Append(result.Output.Paid.Get()...)
		}
		return s, nil
	})
	g.AddEdge(superstep.Start, "both")
	return g.MustCompile()
}

// TestApprovalInACalledGraph: an effect asks for its approval in a graph that a node's code calls. The question is the
// node's, each call has its own, and what was approved is done once, however often the node runs.
func TestApprovalInACalledGraph(t *testing.T) {
	for name, runtime := range map[string]func(*testing.T, *gated, superstep.Runnable) superstep.Runtime{
		"memory": func(_ *testing.T, g *gated, _ superstep.Runnable) superstep.Runtime { return g.rt },
		"temporal": func(t *testing.T, g *gated, outer superstep.Runnable) superstep.Runtime {
			s := rig.NewServer(t)
			s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{outer}, Gate: g.gate})
			return s.Client
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			outer := headOffice(g.office)
			th := outer.Thread(runtime(t, g, outer), testserver.Queue(t))
			token := func(q thread.Question, by string) superstep.RequestOption {
				return g.token(t, q, by, func(c *approval.Claims) { c.Thread, c.ExpiresAt = th.ID(), time.Now().Add(10*time.Minute) })
			}
			result, err := th.Invoke(t.Context(), claims{}, superstep.WithRequester("rita"))
			require.NoError(t, err)
			require.Len(t, result.Questions, 1)
			first := result.Questions[0]
			require.Equal(t, "both", first.Node)
			require.Equal(t, "v1", first.Approval.ToolVersion)
			require.Equal(t, "rita", first.Approval.Requester)
			require.JSONEq(t, `{"amount":250,"card":"***"}`, string(first.Approval.Params))

			result, err = th.Approve(t.Context(), first.ID, token(first, "ann"))
			require.NoError(t, err)
			require.Len(t, result.Questions, 1)
			second := result.Questions[0]
			require.NotEqual(t, first.ID, second.ID)
			_, err = th.Approve(t.Context(), second.ID, token(first, "bob"))
			require.Equal(t, approval.CodeWrongRun, refusedFor(err), "the token of the first: %v", err)
			result, err = th.Approve(t.Context(), second.ID, token(second, "bob"))
			require.NoError(t, err)
			require.Equal(t, []string{"paid 250", "paid 300"}, result.Output.Paid.Get())
			require.Len(t, g.paid, 2)
			require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindAnswered, approval.KindUsed, approval.KindAsked,
				approval.KindRefused, approval.KindAnswered, approval.KindUsed}, audited(t, th))
		})
	}
}

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
			th := g.graph.Thread(runtime(t, g), id)
			as := func(q thread.Question, by string) superstep.RequestOption {
				return g.token(t, q, by, func(c *approval.Claims) { c.Thread, c.ExpiresAt = id, time.Now().Add(10*time.Minute) })
			}
			refused := func(q thread.Question, by string) {
				t.Helper()
				_, err := th.Approve(t.Context(), q.ID, as(q, by))
				require.Equal(t, approval.CodeSamePerson, refusedFor(err), "%s: %v", by, err)
			}
			result, err := th.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
			require.NoError(t, err)
			q := result.Questions[0]

			result, err = th.Edit(t.Context(), q.ID, claimOf{Amount: 250, Card: "ann's own"}, as(q, "ann"))
			require.NoError(t, err)
			q = result.Questions[0]
			refused(q, "ann")
			result, err = th.Edit(t.Context(), q.ID, claimOf{Amount: 240, Card: "ann's own"}, as(q, "bob"))
			require.NoError(t, err)
			q = result.Questions[0]
			require.Equal(t, []string{"ann", "bob"}, q.Approval.Before.Proposers)
			refused(q, "bob")
			refused(q, "ann") // the card is still hers
			require.Empty(t, g.paid)

			watched = "2" // approved by a third, and then something else has changed
			result, err = th.Approve(t.Context(), q.ID, as(q, "dan"))
			require.NoError(t, err)
			require.Equal(t, thread.StatusWaiting, result.Status)
			q = result.Questions[0]
			require.Equal(t, []string{"watch.rate"}, q.Approval.Before.Changed)
			refused(q, "ann")
			refused(q, "bob")
			result, err = th.Approve(t.Context(), q.ID, as(q, "dan"))
			require.NoError(t, err)
			require.Equal(t, thread.StatusFinished, result.Status)
			require.Equal(t, []claimOf{{Amount: 240, Card: "ann's own"}}, g.paid)
		})
	}
}
