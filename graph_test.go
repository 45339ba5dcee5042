package superstep_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
)

func TestInvokeRunsAGraph(t *testing.T) {
	g := chain("g", "a", "b").MustCompile()
	var in counter
	in.Log.Append("in")
	in.N.Set(9007199254740993)
	got, err := g.Invoke(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFinished, got.Status)
	assert.Equal(t, []string{"in", "a", "b"}, got.Output.Log.Get())
	assert.Equal(t, int64(9007199254740993), got.Output.N.Get())

	_, err = g.Invoke(t.Context(), map[string]any{"lgo": []string{"x"}})
	require.ErrorIs(t, err, superstep.ErrBadInput)
	assert.ErrorContains(t, err, `unknown field "lgo": did you mean "log"?`)
}

func TestRunOptions(t *testing.T) {
	g := chain("g", "a", "b").MustCompile()
	_, err := g.Invoke(t.Context(), counter{}, superstep.WithRecursionLimit(2))
	var limit *pregel.RecursionError
	require.ErrorAs(t, err, &limit)
	var failed *superstep.RunError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, superstep.StatusOutOfBudget, failed.Status)
	assert.ErrorContains(t, err, `the run of graph "g" failed: GRAPH_RECURSION_LIMIT`)

	_, err = g.Invoke(t.Context(), counter{}, superstep.WithRecursionLimit(-1))
	assert.ErrorIs(t, err, superstep.ErrBadInput)
	_, err = g.Invoke(t.Context(), counter{}, superstep.WithDurability("later"))
	assert.ErrorIs(t, err, superstep.ErrBadInput)

	th := g.Thread(superstep.NewMemory(), "t")
	_, err = th.Invoke(t.Context(), counter{}, superstep.WithDurability(superstep.DurabilityExit))
	require.NoError(t, err)
	history, err := th.History(t.Context())
	require.NoError(t, err)
	assert.Len(t, history, 1)
}

func TestAnUnreadableStateFailsTheNodeByName(t *testing.T) {
	type before struct {
		Log superstep.List[string]  `json:"log"`
		N   superstep.Value[string] `json:"n"`
	}
	rt := superstep.NewMemory()
	old := superstep.NewStateGraph[before]("g")
	old.AddNode("reader", func(_ context.Context, s before) (before, error) { return s, nil })
	old.AddEdge(superstep.Start, "reader")
	_, err := old.MustCompile().Thread(rt, "t").Invoke(t.Context(), map[string]any{"n": "x"})
	require.NoError(t, err)

	g := superstep.NewStateGraph[counter]("g")
	g.AddNode("reader", func(_ context.Context, s counter) (counter, error) {
		s.Log.Append(strconv.FormatInt(s.N.Get(), 10))
		return s, nil
	})
	g.AddEdge(superstep.Start, "reader")
	th := g.MustCompile().Thread(rt, "t")
	_, err = th.Invoke(t.Context(), map[string]any{"log": []string{}})
	assert.ErrorContains(t, err, `node reader of graph g: cannot read field "n" as int64`)
	_, err = th.State(t.Context())
	var wrong *superstep.StateError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "n", wrong.Field)
}

func TestSubgraphsShareFieldsByName(t *testing.T) {
	type inner struct {
		N      superstep.Value[int64]  `json:"n"`
		Secret superstep.Value[string] `json:"secret"`
	}
	sub := superstep.NewStateGraph[inner]("sub")
	sub.AddNode("double", func(_ context.Context, s inner) (inner, error) {
		s.N.Set(s.N.Get() * 2)
		s.Secret.Set("not for the parent")
		return s, nil
	})
	sub.AddEdge(superstep.Start, "double")
	g := superstep.NewStateGraph[counter]("g")
	g.AddSubgraph("sub", sub.MustCompile())
	g.AddNode("after", func(_ context.Context, s counter) (counter, error) {
		s.Log.Append("n is " + s.N.String())
		return s, nil
	})
	g.AddEdge(superstep.Start, "sub")
	g.AddEdge("sub", "after")
	got, err := g.MustCompile().Invoke(t.Context(), map[string]any{"n": 21})
	require.NoError(t, err)
	assert.Equal(t, int64(42), got.Output.N.Get())
	assert.Equal(t, []string{"n is 42"}, got.Output.Log.Get())
}

func TestInputAndOutputSchemasAndPrivateFields(t *testing.T) {
	type in struct {
		Order superstep.Value[string] `json:"order"`
	}
	type secret struct {
		Order superstep.Value[string] `json:"order"`
		Draft superstep.Value[string] `json:"draft"`
	}
	type out struct {
		Log superstep.List[string] `json:"log"`
	}
	g := superstep.NewStateGraph[counter]("g")
	superstep.AddInputNode(g, "write", func(_ context.Context, s secret) (superstep.Command[counter], error) {
		var update counter
		update.Log.Append("order " + s.Order.Get())
		update.N.Set(1)
		return superstep.Command[counter]{Update: update, Goto: superstep.To("done")}, nil
	})
	g.AddNode("done", appending("done"))
	g.AddEdge(superstep.Start, "write")
	compiled, err := g.Compile(superstep.WithInput[in](), superstep.WithOutput[out]())
	require.NoError(t, err)
	got, err := compiled.Invoke(t.Context(), map[string]any{"order": "o-7"})
	require.NoError(t, err)
	assert.Equal(t, []string{"order o-7", "done"}, got.Output.Log.Get())
	assert.False(t, got.Output.N.IsSet(), "not part of the output")
	_, err = compiled.Invoke(t.Context(), map[string]any{"n": 1})
	assert.ErrorContains(t, err, `unknown field "n"`)
	var typed in
	typed.Order.Set("o-8")
	got, err = compiled.Invoke(t.Context(), typed)
	require.NoError(t, err)
	assert.Equal(t, []string{"order o-8", "done"}, got.Output.Log.Get())
}

func TestReducersOfUsersRunInAGraph(t *testing.T) {
	type state struct {
		Word superstep.Reduced[string, longerWord] `json:"word"`
	}
	g := superstep.NewStateGraph[state]("g")
	for _, w := range []string{"bird", "elephant", "cat"} {
		g.AddNode(w, func(_ context.Context, s state) (state, error) {
			s.Word.Write(w)
			return s, nil
		})
		g.AddEdge(superstep.Start, w)
	}
	got, err := g.MustCompile().Invoke(t.Context(), state{})
	require.NoError(t, err)
	assert.Equal(t, "elephant", got.Output.Word.Get())
}

type longerWord struct{}

func (longerWord) Name() string { return "words.longer/v1" }

func (longerWord) Reduce(current, update string) (string, error) {
	if len(update) > len(current) {
		return update, nil
	}
	return current, nil
}
