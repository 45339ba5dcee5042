package graph_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

type tenant struct {
	Name  string `json:"name"`
	Limit int64  `json:"limit"`
}

func TestRunContextReachesNodesBranchesAndSubgraphs(t *testing.T) {
	read := func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		who, err := superstep.RunContext[tenant](ctx)
		s.Log.Append(superstep.Info(ctx).Node + " " + who.Name)
		s.N.Set(who.Limit)
		return s, err
	}
	type limit struct {
		N superstep.Value[int64] `json:"n"`
	}
	inner := superstep.NewStateGraph[limit]("inner")
	inner.AddNode("inside", func(ctx context.Context, s limit) (limit, error) {
		who, err := superstep.RunContext[tenant](ctx)
		s.N.Set(who.Limit)
		return s, err
	})
	inner.AddEdge(superstep.Start, "inside")
	called := inner.MustCompile()
	g := superstep.NewStateGraph[rig.Counter]("outer")
	g.AddNode("first", read)
	g.AddNode("routed", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		got, err := called.Invoke(ctx, map[string]any{"n": 0})
		s.Log.Append("called " + got.Output.N.String())
		return s, err
	})
	g.AddSubgraph("sub", called)
	g.AddEdge(superstep.Start, "first")
	g.AddConditionalEdges("first", func(ctx context.Context, _ rig.Counter) ([]superstep.Target, error) {
		who, err := superstep.RunContext[tenant](ctx)
		return superstep.To(who.Name), err
	})
	g.AddEdge("routed", "sub")
	compiled := g.MustCompile()
	got, err := compiled.Invoke(t.Context(), rig.Counter{}, superstep.WithContext(tenant{"routed", 9007199254740993}))
	require.NoError(t, err)
	assert.Equal(t, []string{"first routed", "called 9007199254740993"}, got.Output.Log.Get())
	assert.Equal(t, int64(9007199254740993), got.Output.N.Get())
}

func TestARunContextThatIsAbsentOrOfAnotherShapeFailsTheNode(t *testing.T) {
	attempts := 0
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("reader", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		attempts++
		_, err := superstep.RunContext[tenant](ctx)
		return s, err
	}, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: -1, NoJitter: true}))
	g.AddEdge(superstep.Start, "reader")
	compiled := g.MustCompile()
	for want, options := range map[string][]superstep.RunOption{
		"cannot read the run's context as graph_test.tenant: the run was given none: start it with superstep.WithContext": nil,
		"cannot read the run's context as graph_test.tenant: the run was given none":                                      {superstep.WithContext(nil)},
		"expected int64, found a string": {superstep.WithContext(map[string]string{"limit": "x"})},
		`unknown field "nmae"`:           {superstep.WithContext(map[string]string{"nmae": "x"})},
		"expected graph_test.tenant":     {superstep.WithContext("ann")},
	} {
		attempts = 0
		_, err := compiled.Invoke(t.Context(), rig.Counter{}, options...)
		require.ErrorContains(t, err, want)
		var failed *superstep.NodeError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, superstep.NodeError{Type: "StateError", Message: failed.Message, Graph: "g", Node: "reader"}, *failed)
		assert.Equal(t, 1, attempts, "no attempt mends that")
	}
	_, err := superstep.RunContext[tenant](t.Context())
	assert.ErrorIs(t, err, superstep.ErrOutsideNode)
}

// LangGraph's IsLastStep and RemainingSteps: with the limit L, a run of fresh input has L−s left at superstep s.
func TestNodesSeeTheStepsThatAreLeft(t *testing.T) {
	var left []int
	var last []bool
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("loop", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		left, last = append(left, superstep.Info(ctx).StepsLeft), append(last, superstep.Info(ctx).LastStep)
		return s, nil
	})
	g.AddEdge(superstep.Start, "loop")
	g.AddConditionalEdges("loop", func(ctx context.Context, _ rig.Counter) ([]superstep.Target, error) {
		if superstep.Info(ctx).LastStep {
			return nil, nil
		}
		return superstep.To("loop"), nil
	}, "loop")
	got, err := g.MustCompile().Invoke(t.Context(), rig.Counter{}, superstep.WithRecursionLimit(4))
	require.NoError(t, err, "a node that heeds it finishes within the limit")
	assert.Equal(t, thread.StatusFinished, got.Status)
	assert.Equal(t, []int{3, 2, 1}, left)
	assert.Equal(t, []bool{false, false, true}, last)
}

func TestConditionalEdgesMayReadASchemaOfTheirOwn(t *testing.T) {
	type hint struct {
		Way superstep.Value[string] `json:"way"`
	}
	g := superstep.NewStateGraph[rig.Counter]("g")
	superstep.AddInputNode(g, "a", func(context.Context, hint) (superstep.Command[rig.Counter], error) {
		return superstep.Command[rig.Counter]{}, nil
	})
	g.AddNode("b", rig.Appending("b"))
	g.AddNode("c", rig.Appending("c"))
	g.AddEdge(superstep.Start, "a")
	superstep.AddInputEdges(g, "a", func(_ context.Context, h hint) ([]superstep.Target, error) {
		return superstep.To(h.Way.Get()), nil
	}, "b", "c")
	superstep.AddInputEdges[rig.Counter, hint](g, "b", nil)
	call := before(here())
	_, err := g.Compile()
	got := problems(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, call, got[0].Call)

	g = superstep.NewStateGraph[rig.Counter]("g")
	superstep.AddInputEdges(g, superstep.Start, func(_ context.Context, h hint) ([]superstep.Target, error) {
		return superstep.To(h.Way.Get()), nil
	}, "b", "c")
	g.AddNode("b", rig.Appending("b"))
	g.AddNode("c", rig.Appending("c"))
	compiled := g.MustCompile(superstep.WithInput[hint]())
	ran, err := compiled.Invoke(t.Context(), map[string]any{"way": "c"})
	require.NoError(t, err)
	assert.Equal(t, []string{"c"}, ran.Output.Log.Get())
}
