package superstep_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
)

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
			s := newServer(t)
			s.workWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{outer}, Gate: g.gate})
			return s.Client
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			outer := headOffice(g.office)
			thread := outer.Thread(runtime(t, g, outer), testserver.Queue(t))
			token := func(q superstep.Question, by string) superstep.ReplyOption {
				return g.token(t, q, by, func(c *approval.Claims) { c.Thread, c.ExpiresAt = thread.ID(), time.Now().Add(10*time.Minute) })
			}
			result, err := thread.Invoke(t.Context(), claims{}, superstep.WithRequester("rita"))
			require.NoError(t, err)
			require.Len(t, result.Questions, 1)
			first := result.Questions[0]
			require.Equal(t, "both", first.Node)
			require.Equal(t, "v1", first.Approval.ToolVersion)
			require.Equal(t, "rita", first.Approval.Requester)
			require.JSONEq(t, `{"amount":250,"card":"***"}`, string(first.Approval.Params))

			result, err = thread.Approve(t.Context(), first.ID, token(first, "ann"))
			require.NoError(t, err)
			require.Len(t, result.Questions, 1)
			second := result.Questions[0]
			require.NotEqual(t, first.ID, second.ID)
			_, err = thread.Approve(t.Context(), second.ID, token(first, "bob"))
			require.Equal(t, approval.CodeWrongRun, refusedFor(err), "the token of the first: %v", err)
			result, err = thread.Approve(t.Context(), second.ID, token(second, "bob"))
			require.NoError(t, err)
			require.Equal(t, []string{"paid 250", "paid 300"}, result.Output.Paid.Get())
			require.Len(t, g.paid, 2)
			require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindAnswered, approval.KindUsed, approval.KindAsked,
				approval.KindRefused, approval.KindAnswered, approval.KindUsed}, audited(t, thread))
		})
	}
}
