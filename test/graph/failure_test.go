package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

type declined struct{ reason string }

func (e declined) Error() string { return "declined: " + e.reason }

type orderState struct {
	Orders superstep.List[string]  `json:"orders"`
	Log    superstep.List[string]  `json:"log"`
	Limit  superstep.Value[int64]  `json:"limit"`
	Card   superstep.Value[string] `json:"card"`
}

func logging(line string) func(context.Context, orderState) (orderState, error) {
	return func(_ context.Context, s orderState) (orderState, error) {
		s.Log.Append(line)
		return s, nil
	}
}

// noting is an error handler that says what it handles.
func noting(who string) func(context.Context, orderState, *superstep.NodeError) (superstep.Command[orderState], error) {
	return func(ctx context.Context, s orderState, e *superstep.NodeError) (superstep.Command[orderState], error) {
		s.Log.Append(fmt.Sprintf("%s: %s of %s/%s: %s (card %s)", who, e.Type, e.Graph, e.Node, e.Message, s.Card.Get()))
		return superstep.Command[orderState]{Update: s}, nil
	}
}

// The handler takes over after the retries, sees what the node saw, and its node's edges do not fire.
func TestAnErrorHandlerTakesOver(t *testing.T) {
	var attempts atomic.Int64
	g := superstep.NewStateGraph[orderState]("handled")
	g.AddNode("pay", func(_ context.Context, s orderState) (orderState, error) {
		attempts.Add(1)
		s.Log.Append("lost")
		return s, fmt.Errorf("pay: %w", declined{"no money"})
	}, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: -1, NoJitter: true, MaxAttempts: 2, RetryOn: superstep.RetryIf[declined]}))
	g.AddErrorHandler("pay", func(ctx context.Context, s orderState, e *superstep.NodeError) (superstep.Command[orderState], error) {
		if superstep.Info(ctx).Node != "__error_handler__pay" {
			return superstep.Command[orderState]{}, errors.New("it runs as another node")
		}
		c, err := noting("handler")(ctx, s, e)
		c.Goto = superstep.To("apologise")
		return c, err
	})
	g.AddNode("ship", logging("shipped"))
	g.AddNode("apologise", logging("sorry"))
	g.AddEdge(superstep.Start, "pay")
	g.AddEdge("pay", "ship")
	compiled := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		attempts.Store(0)
		got, err := compiled.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), map[string]any{"card": "visa"})
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Equal(t, []string{"handler: declined of handled/pay: pay: declined: no money (card visa)", "sorry"}, got.Output.Log.Get())
		assert.Equal(t, int64(2), attempts.Load())
	}, compiled)
}

// Each Send's task is handled for itself, with its own argument; siblings that succeeded are kept.
func TestErrorHandlersOfSends(t *testing.T) {
	g := superstep.NewStateGraph[orderState]("sends")
	each := func(_ context.Context, order string) (superstep.Command[orderState], error) {
		var update orderState
		if order == "bad" {
			return superstep.Command[orderState]{}, declined{order}
		}
		update.Log.Append("paid " + order)
		return superstep.Command[orderState]{Update: update}, nil
	}
	superstep.AddInputNode(g, "each", each)
	superstep.AddInputErrorHandler(g, "each", func(_ context.Context, order string, e *superstep.NodeError) (superstep.Command[orderState], error) {
		var update orderState
		update.Log.Append("not paid: " + order)
		return superstep.Command[orderState]{Update: update}, nil
	})
	superstep.AddInputNode(g, "other", each)
	g.AddErrorHandler(superstep.All, noting("default"))
	g.AddConditionalEdges(superstep.Start, func(_ context.Context, s orderState) ([]superstep.Target, error) {
		return append(superstep.SendEach("each", s.Orders.Get()), superstep.Send("other", "bad")...), nil
	})
	compiled := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		got, err := compiled.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), map[string]any{"orders": []string{"a", "bad", "c"}})
		require.NoError(t, err)
		assert.Equal(t, []string{"paid a", "not paid: bad", "paid c", "default: declined of sends/other: declined: bad (card )"},
			got.Output.Log.Get(), "in the order of the Sends")
	}, compiled)
}

// What fails inside a subgraph is handled outside when it is not handled inside; its own handlers come first.
func TestErrorHandlersOfSubgraphs(t *testing.T) {
	type inner struct {
		Limit superstep.Value[int64] `json:"limit"`
	}
	sub := func(name string, handle bool) *superstep.Graph[inner] {
		g := superstep.NewStateGraph[inner](name)
		g.AddNode("fails", func(_ context.Context, s inner) (inner, error) { return s, declined{"inside"} })
		g.AddEdge(superstep.Start, "fails")
		if handle {
			g.AddErrorHandler("fails", func(_ context.Context, s inner, _ *superstep.NodeError) (superstep.Command[inner], error) {
				s.Limit.Set(1)
				return superstep.Command[inner]{Update: s}, nil
			})
		}
		return g.MustCompile()
	}
	g := superstep.NewStateGraph[orderState]("outer")
	g.AddSubgraph("calm", sub("calm", true))
	g.AddSubgraph("wild", sub("wild", false))
	g.AddErrorHandler(superstep.All, noting("outside"))
	g.AddEdge(superstep.Start, "calm")
	g.AddEdge("calm", "wild")
	compiled := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		got, err := compiled.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), map[string]any{"card": "x"})
		require.NoError(t, err)
		assert.Equal(t, int64(1), got.Output.Limit.Get())
		assert.Equal(t, []string{"outside: declined of wild/fails: declined: inside (card x)"}, got.Output.Log.Get())
	}, compiled)
}

// A handler may ask; once it took over, the node does not run again. Its own failure fails the run, and continuing the
// thread goes on with the handler.
func TestAnErrorHandlerMayAskAndFail(t *testing.T) {
	var ran, broken atomic.Int64
	g := superstep.NewStateGraph[orderState]("asking")
	g.AddNode("pay", func(_ context.Context, s orderState) (orderState, error) {
		ran.Add(1)
		return s, declined{"no money"}
	})
	g.AddErrorHandler("pay", func(ctx context.Context, s orderState, e *superstep.NodeError) (superstep.Command[orderState], error) {
		way, err := superstep.Interrupt[string](ctx, "What about "+e.Message+"?")
		if err != nil {
			return superstep.Command[orderState]{}, err
		}
		if broken.Add(1) == 1 {
			return superstep.Command[orderState]{}, errors.New("the handler is broken")
		}
		s.Log.Append("answer: " + way)
		return superstep.Command[orderState]{Update: s}, nil
	})
	g.AddEdge(superstep.Start, "pay")
	compiled := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		ran.Store(0)
		broken.Store(0)
		th := compiled.Thread(rt, graphtest.ThreadID(t))
		got, err := th.Invoke(t.Context(), map[string]any{"card": "x"})
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		_, err = th.Resume(t.Context(), "wait")
		var failed *superstep.NodeError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "__error_handler__pay", failed.Node)
		assert.Equal(t, "the handler is broken", failed.Message)
		got, err = th.Retry(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"answer: wait"}, got.Output.Log.Get(), "the answer is still there")
		assert.Equal(t, int64(1), ran.Load(), "the node ran once")
	}, compiled)
}

// A subgraph's node is retried by its own policy, which decides by the failure's type: the first policy that takes it
// counts, and what had finished inside does not run again.
func TestASubgraphIsRetriedByThePolicyOfItsNode(t *testing.T) {
	var first, second, asked atomic.Int64
	var fatal atomic.Bool
	inner := superstep.NewStateGraph[rig.Counter]("inner")
	inner.AddNode("first", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		first.Add(1)
		s.Log.Append("first")
		return s, nil
	})
	inner.AddNode("second", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		switch n := second.Add(1); {
		case fatal.Load():
			return s, errors.New("fatal")
		case n < 4:
			return s, declined{"not yet"}
		}
		s.Log.Append("second")
		return s, nil
	})
	inner.AddEdge(superstep.Start, "first")
	inner.AddEdge("first", "second")
	g := superstep.NewStateGraph[rig.Counter]("outer")
	g.AddSubgraph("sub", inner.MustCompile(),
		superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 9, InitialInterval: -1, NoJitter: true, RetryOn: func(err error) bool {
			asked.Add(1)
			var failure *superstep.NodeError
			return errors.As(err, &failure) && failure.Type == "declined" && failure.Graph == "inner" && failure.Node == "second"
		}}),
		superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 2, InitialInterval: -1, NoJitter: true}))
	g.AddEdge(superstep.Start, "sub")
	compiled := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		first.Store(0)
		second.Store(0)
		asked.Store(0)
		fatal.Store(false)
		got, err := compiled.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), rig.Counter{})
		require.NoError(t, err)
		assert.Equal(t, []string{"first", "second"}, got.Output.Log.Get())
		assert.Equal(t, int64(1), first.Load())
		assert.Equal(t, int64(4), second.Load())
		assert.Equal(t, int64(3), asked.Load())

		second.Store(0)
		fatal.Store(true)
		_, err = compiled.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), rig.Counter{})
		var failed *superstep.NodeError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "fatal", failed.Message)
		assert.Equal(t, int64(2), second.Load(), "the second policy takes what the first does not")
	}, compiled)
}

// breakDown panics in the way of that name.
func breakDown(how string) {
	switch how {
	case "value":
		panic("no paper")
	case "error":
		panic(errors.New("no ink"))
	case "nil":
		var s *struct{ count int }
		s.count++
	case "index":
		var none []int
		_ = none[len(how)]
	case "library":
		_ = strings.Repeat("x", -len(how))
	}
}

// TestPanicsSayWhere: the error of a node that panicked names the function, its file and the line, and no directory of the
// machine, on every runtime.
func TestPanicsSayWhere(t *testing.T) {
	b := superstep.NewStateGraph[rig.Counter]("panics")
	b.AddNode("break", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		breakDown(s.Log.Get()[0])
		return s, nil
	})
	b.AddEdge(superstep.Start, "break")
	rig.OnRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, _ *superstep.Thread[rig.Counter]) {
		g := b.MustCompile()
		for how, what := range map[string]string{"value": "no paper", "error": "no ink", "nil": "nil pointer dereference",
			"index": "index out of range", "library": "negative Repeat count"} {
			_, err := g.Thread(rt, strings.ReplaceAll(t.Name(), "/", "-")+"-"+how).Invoke(t.Context(), map[string]any{"log": []string{how}})
			require.ErrorContains(t, err, what)
			assert.Regexp(t, `, in superstep\.dev/test/graph_test\.breakDown \(failure_test\.go:[0-9]+\)`, err.Error(), how)
			assert.NotContains(t, strings.ReplaceAll(err.Error(), "superstep.dev/test/graph_test.", ""), "/", how)
		}
	})
}

// TestConflictsNameTheNodes: the error of writes that a field cannot take together names who wrote them.
func TestConflictsNameTheNodes(t *testing.T) {
	type state struct {
		Winner superstep.Value[string] `json:"winner"`
		Log    superstep.List[string]  `json:"log"`
	}
	b := superstep.NewStateGraph[state]("race")
	for _, node := range []string{"red", "blue", "green"} {
		b.AddNode(node, func(_ context.Context, s state) (state, error) {
			if s.Log.Append(node); node != "green" {
				s.Winner.Set(node)
			}
			return s, nil
		})
		b.AddEdge(superstep.Start, node)
	}
	rig.OnRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[state]) {
		_, err := th.Invoke(t.Context(), state{})
		require.ErrorContains(t, err, `INVALID_CONCURRENT_GRAPH_UPDATE: channel "winner" of graph "race": written by blue, red: `)
		var conflict *pregel.InvalidUpdateError
		if errors.As(err, &conflict) {
			assert.Equal(t, []string{"blue", "red"}, conflict.Nodes)
		}
	})
}
