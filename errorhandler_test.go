package superstep_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
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
		assert.Equal(t, superstep.StatusFinished, got.Status)
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
