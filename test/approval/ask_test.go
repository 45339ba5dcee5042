package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

type errand struct {
	What superstep.Value[string] `json:"what"`
	Done superstep.List[string]  `json:"done"`
}

func errandFor(what string) errand {
	var e errand
	e.What.Set(what)
	return e
}

// big asks about errands that are big.
func big(e errand) (approval.Action, bool) {
	return approval.Action{Summary: "Do " + e.What.Get(), Params: json.RawMessage(`{"size":"big"}`)}, e.What.Get() == "big"
}

// TestWithApprovalOnEveryKindOfNode: the function runs once it is approved, and what it returns counts as always.
func TestWithApprovalOnEveryKindOfNode(t *testing.T) {
	for name, add := range map[string]func(*superstep.StateGraph[errand]){
		"node": func(g *superstep.StateGraph[errand]) {
			g.AddNode("do", func(_ context.Context, e errand) (errand, error) {
				e.Done.Append(e.What.Get())
				return e, nil
			}, superstep.WithApproval(big))
			g.AddEdge(superstep.Start, "do")
		},
		"command": func(g *superstep.StateGraph[errand]) {
			g.AddCommandNode("do", func(_ context.Context, e errand) (c superstep.Command[errand], err error) {
				c.Update.Done.Append(e.What.Get())
				return c, nil
			}, superstep.WithApproval(big))
			g.AddEdge(superstep.Start, "do")
		},
		"input": func(g *superstep.StateGraph[errand]) {
			superstep.AddInputNode(g, "do", func(_ context.Context, what string) (c superstep.Command[errand], err error) {
				c.Update.Done.Append(what)
				return c, nil
			}, superstep.WithApproval(func(what string) (approval.Action, bool) { return big(errandFor(what)) }))
			g.AddConditionalEdges(superstep.Start, func(_ context.Context, e errand) ([]superstep.Target, error) {
				return superstep.SendEach("do", []string{e.What.Get()}), nil
			}, "do")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := superstep.NewStateGraph[errand]("errands")
			add(g)
			graph, rt := g.MustCompile(), superstep.NewMemory()
			small, err := graph.Thread(rt, "small").Invoke(t.Context(), errandFor("small"))
			require.NoError(t, err)
			require.Equal(t, []string{"small"}, small.Output.Done.Get())

			th := graph.Thread(rt, "big")
			result, err := th.Invoke(t.Context(), errandFor("big"))
			require.NoError(t, err)
			require.Equal(t, thread.StatusWaiting, result.Status)
			require.Equal(t, "do", result.Questions[0].Approval.Tool)
			_, err = th.Edit(t.Context(), "", map[string]string{"size": "small"})
			require.ErrorIs(t, err, thread.ErrBadInput, "the function would not see it")
			result, err = th.Approve(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, []string{"big"}, result.Output.Done.Get())

			th = graph.Thread(rt, "rejected")
			_, err = th.Invoke(t.Context(), errandFor("big"))
			require.NoError(t, err)
			_, err = th.Reject(t.Context(), "")
			require.True(t, failedAs(err, "Rejected"), "%v", err)
		})
	}
}

func TestWithApprovalOfAnEntrypoint(t *testing.T) {
	graph := superstep.NewEntrypoint("shout", func(_ context.Context, what string) (string, error) { return strings.ToUpper(what), nil },
		superstep.WithApproval(func(what string) (approval.Action, bool) { return big(errandFor(what)) }))
	thread := graph.Thread(superstep.NewMemory(), "t-1")
	_, err := thread.Invoke(t.Context(), "big")
	require.NoError(t, err)
	result, err := thread.Approve(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, "BIG", result.Output)
}

func TestRejectionHasAHandler(t *testing.T) {
	g := superstep.NewStateGraph[errand]("errands")
	g.AddNode("do", func(_ context.Context, e errand) (errand, error) { return e, nil }, superstep.WithApproval(big))
	g.AddErrorHandler("do", func(_ context.Context, _ errand, failure *superstep.NodeError) (c superstep.Command[errand], err error) {
		c.Update.Done.Append(failure.Type)
		return c, nil
	})
	g.AddEdge(superstep.Start, "do")
	thread := g.MustCompile().Thread(superstep.NewMemory(), "t-1")
	_, err := thread.Invoke(t.Context(), errandFor("big"))
	require.NoError(t, err)
	result, err := thread.Reject(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"Rejected"}, result.Output.Done.Get())
}

func TestWithApprovalThatCannotBe(t *testing.T) {
	inner := superstep.NewStateGraph[errand]("inner")
	inner.AddNode("n", func(_ context.Context, e errand) (errand, error) { return e, nil })
	inner.AddEdge(superstep.Start, "n")
	g := superstep.NewStateGraph[errand]("errands")
	node := func(_ context.Context, e errand) (errand, error) { return e, nil }
	g.AddNode("other", node, superstep.WithApproval(func(string) (approval.Action, bool) { return approval.Action{}, false }))
	g.AddNode("nil", node, superstep.WithApproval[errand](nil))
	g.AddSubgraph("sub", inner.MustCompile(), superstep.WithApproval(big))
	g.SetNodeDefaults(superstep.WithApproval(big))
	g.AddEdge(superstep.Start, "other")
	_, err := g.Compile()
	for _, problem := range []string{"takes string, but the node's input is", "has no function", "give it to the nodes of the subgraph", "is no default"} {
		require.ErrorContains(t, err, problem)
	}
}

// errands is a graph whose one node asks for the approval of several actions at once.
func errands(names ...string) *superstep.Graph[errand] {
	g := superstep.NewStateGraph[errand]("errands")
	g.AddNode("ask", func(ctx context.Context, e errand) (errand, error) {
		var pending []*superstep.Future[approval.Decision]
		for _, name := range names {
			pending = append(pending, superstep.Go(ctx, "ask "+name, func(ctx context.Context) (approval.Decision, error) {
				return superstep.Approve(ctx, approval.Action{Tool: name, Summary: "Do " + name})
			}))
		}
		var missing error
		for i, f := range pending {
			d, err := f.Get(ctx)
			if err != nil {
				missing = err
				continue
			}
			e.Done.Append(fmt.Sprintf("%s: %s", names[i], d.Verdict))
		}
		return e, missing
	})
	g.AddEdge(superstep.Start, "ask")
	return g.MustCompile()
}

// TestApprovalsOfOneNodeInAnyOrder: several are asked for at once, and each is answered by itself, in memory and on a server.
func TestApprovalsOfOneNodeInAnyOrder(t *testing.T) {
	names := []string{"a", "b", "c"}
	graph := errands(names...)
	signer, gate := signing(t)
	s := rig.NewServer(t)
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{graph}, Gate: gate})
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		for name, runtime := range map[string]superstep.Runtime{"memory": superstep.NewMemory(), "temporal": s.Client} {
			t.Run(fmt.Sprint(name, order), func(t *testing.T) {
				th := graph.Thread(runtime, testserver.Queue(t))
				result, err := th.Invoke(t.Context(), errandFor("x"))
				require.NoError(t, err)
				byTool := map[string]thread.Question{}
				for _, q := range result.Questions {
					byTool[q.Approval.Tool] = q
				}
				for i, at := range order {
					answer, q := th.Approve, byTool[names[at]]
					if names[at] == "b" {
						answer = th.Reject
					}
					signed, err := signer.Sign(approval.Claims{Thread: th.ID(), Question: q.ID, Approver: "ann", Digest: q.Approval.Digest,
						ParamsHash: q.Approval.ParamsHash})
					require.NoError(t, err)
					result, err = answer(t.Context(), q.ID, superstep.WithToken(signed), superstep.AskedBy("ann"))
					require.NoError(t, err)
					require.Len(t, result.Questions, 2-i)
				}
				require.Equal(t, []string{"a: approve", "b: reject", "c: approve"}, result.Output.Done.Get())
			})
		}
	}
}

// TestADeadlineThatNobodyWatches passes while no worker runs. The next one finds that nobody has answered in time, and an
// answer that comes then is too late.
func TestADeadlineThatNobodyWatches(t *testing.T) {
	t.Parallel()
	const within = 10 * time.Second // the question is there before it is over
	b := superstep.NewStateGraph[errand]("late")
	b.AddNode("ask", func(ctx context.Context, e errand) (errand, error) {
		d, err := superstep.Approve(ctx, approval.Action{Tool: "pay", Summary: "Pay", Within: within.Milliseconds(), Silence: approval.SilenceDeny})
		if err == nil {
			e.Done.Append(string(d.Verdict))
		}
		return e, err
	})
	b.AddEdge(superstep.Start, "ask")
	graph := b.MustCompile()
	_, gate := signing(t)
	s := rig.NewServer(t)
	serving := superstep.WorkerConfig{Graphs: []superstep.Runnable{graph}, Gate: gate}
	stop := s.WorkWith(serving)
	th := graph.Thread(s.Client, testserver.Queue(t))
	result, err := th.Invoke(t.Context(), errandFor("x"))
	require.NoError(t, err)
	stop()
	due := result.Questions[0].Approval.Due
	require.Eventually(t, func() bool { return time.Now().After(due) }, time.Minute, 10*time.Millisecond)
	s.WorkWith(serving)
	// The server's timer may fire a little after the deadline: until then the run waits.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		late, err := th.Wait(t.Context())
		require.NoError(c, err)
		require.Equal(c, thread.StatusFinished, late.Status)
		require.Equal(c, []string{string(approval.VerdictExpired)}, late.Output.Done.Get())
	}, time.Minute, 10*time.Millisecond)
	_, err = th.Approve(t.Context(), result.Questions[0].ID)
	require.Error(t, err)
}

func TestApproveRefusesWhatCannotBeAsked(t *testing.T) {
	_, err := superstep.Approve(t.Context(), approval.Action{Summary: "x"})
	require.ErrorIs(t, err, superstep.ErrOutsideNode)
	for problem, ask := range map[string]func(context.Context) error{
		"say in one sentence": func(ctx context.Context) error { _, err := superstep.Approve(ctx, approval.Action{}); return err },
		"WithAnswerSchema": func(ctx context.Context) error {
			_, err := superstep.Approve(ctx, approval.Action{Summary: "x"}, superstep.WithAnswerSchema(`{}`))
			return err
		},
	} {
		g := superstep.NewEntrypoint("ask", func(ctx context.Context, _ string) (string, error) { return "", ask(ctx) })
		_, err := g.Invoke(t.Context(), "")
		require.ErrorContains(t, err, problem)
	}
}
