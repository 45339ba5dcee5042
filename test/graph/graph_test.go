package graph_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

func TestInvokeRunsAGraph(t *testing.T) {
	g := rig.Chain("g", "a", "b").MustCompile()
	var in rig.Counter
	in.Log.Append("in")
	in.N.Set(9007199254740993)
	got, err := g.Invoke(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, got.Status)
	assert.Equal(t, []string{"in", "a", "b"}, got.Output.Log.Get())
	assert.Equal(t, int64(9007199254740993), got.Output.N.Get())

	_, err = g.Invoke(t.Context(), map[string]any{"lgo": []string{"x"}})
	require.ErrorIs(t, err, thread.ErrBadInput)
	assert.ErrorContains(t, err, `unknown field "lgo": did you mean "log"?`)
}

func TestRunOptions(t *testing.T) {
	g := rig.Chain("g", "a", "b").MustCompile()
	_, err := g.Invoke(t.Context(), rig.Counter{}, superstep.WithRecursionLimit(2))
	var limit *pregel.RecursionError
	require.ErrorAs(t, err, &limit)
	var failed *superstep.RunError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, thread.StatusOutOfBudget, failed.Status)
	assert.ErrorContains(t, err, `the run of graph "g" failed: GRAPH_RECURSION_LIMIT`)

	_, err = g.Invoke(t.Context(), rig.Counter{}, superstep.WithRecursionLimit(-1))
	assert.ErrorIs(t, err, thread.ErrBadInput)
	_, err = g.Invoke(t.Context(), rig.Counter{}, superstep.WithDurability("later"))
	assert.ErrorIs(t, err, thread.ErrBadInput)

	th := g.Thread(superstep.NewMemory(), "t")
	_, err = th.Invoke(t.Context(), rig.Counter{}, superstep.WithDurability(superstep.DurabilityExit))
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

	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("reader", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
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
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddSubgraph("sub", sub.MustCompile())
	g.AddNode("after", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
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
	g := superstep.NewStateGraph[rig.Counter]("g")
	superstep.AddInputNode(g, "write", func(_ context.Context, s secret) (superstep.Command[rig.Counter], error) {
		var update rig.Counter
		update.Log.Append("order " + s.Order.Get())
		update.N.Set(1)
		return superstep.Command[rig.Counter]{Update: update, Goto: superstep.To("done")}, nil
	})
	g.AddNode("done", rig.Appending("done"))
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

// TestInvokeInsideNode calls a graph from a node's code: its question is the node's, and what it had finished is not
// run again when the node is.
func TestInvokeInsideNode(t *testing.T) {
	type State struct {
		Log superstep.List[string] `json:"log"`
	}
	var first, caller int
	inner := superstep.NewStateGraph[State]("inner")
	inner.AddNode("first", func(_ context.Context, s State) (State, error) {
		first++
		s.Log.Append("first")
		return s, nil
	})
	inner.AddNode("ask", func(ctx context.Context, s State) (State, error) {
		name, err := superstep.Interrupt[string](ctx, "who?")
		if err != nil {
			return s, err
		}
		s.Log.Append(name)
		return s, nil
	})
	inner.AddEdge(superstep.Start, "first")
	inner.AddEdge("first", "ask")
	called := inner.MustCompile()

	outer := superstep.NewStateGraph[State]("outer")
	outer.AddNode("caller", func(ctx context.Context, s State) (State, error) {
		caller++
		for range 2 {
			result, err := called.Invoke(ctx, map[string]any{})
			if err != nil {
				return s, err
			}
			s.Log.Append(result.Output.Log.Get()...)
		}
		return s, nil
	})
	outer.AddEdge(superstep.Start, "caller")
	g := outer.MustCompile()

	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		first, caller = 0, 0
		thread := g.Thread(rt, graphtest.ThreadID(t))
		result, err := thread.Invoke(t.Context(), map[string]any{})
		require.NoError(t, err)
		require.Len(t, result.Questions, 1)
		one := result.Questions[0].ID

		result, err = thread.Resume(t.Context(), "ann")
		require.NoError(t, err)
		require.Len(t, result.Questions, 1)
		require.NotEqual(t, one, result.Questions[0].ID, "the second call asks a question of its own")

		result, err = thread.Resume(t.Context(), "bob")
		require.NoError(t, err)
		require.Equal(t, []string{"first", "ann", "first", "bob"}, result.Output.Log.Get())
		require.Equal(t, 2, first, "once for each call")
		require.Equal(t, 3, caller)
	}, g)
}

type patience struct {
	Log superstep.List[string] `json:"log"`
}

// A Send's own timeouts replace those of its node, also when the thread stood at a breakpoint between the two. A retry
// has them again, and what the others did is kept.
func TestSendWithin(t *testing.T) {
	var runs atomic.Int64
	g := superstep.NewStateGraph[patience]("patience")
	g.AddNode("fan", func(_ context.Context, s patience) (patience, error) { return s, nil })
	superstep.AddInputNode(g, "wait", func(ctx context.Context, forIt bool) (superstep.Command[patience], error) {
		runs.Add(1)
		var c superstep.Command[patience]
		if forIt {
			<-ctx.Done()
			return c, ctx.Err()
		}
		c.Update.Log.Append("done")
		return c, nil
	}, superstep.WithTimeout(0, time.Hour),
		superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 2, InitialInterval: -1, NoJitter: true}))
	superstep.AddInputErrorHandler(g, "wait",
		func(_ context.Context, _ bool, failure *superstep.NodeError) (superstep.Command[patience], error) {
			var c superstep.Command[patience]
			c.Update.Log.Append(failure.Type + ": " + failure.Message)
			return c, nil
		})
	g.AddEdge(superstep.Start, "fan")
	g.AddConditionalEdges("fan", func(context.Context, patience) ([]superstep.Target, error) {
		return append(superstep.SendWithin(50*time.Millisecond, 0, "wait", true), superstep.Send("wait", false)...), nil
	})
	compiled := g.MustCompile(superstep.WithInterruptBefore("wait"))
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		runs.Store(0)
		thread := compiled.Thread(rt, graphtest.ThreadID(t))
		_, err := thread.Invoke(t.Context(), patience{})
		require.NoError(t, err)
		require.Zero(t, runs.Load(), "the thread stands at the breakpoint")
		got, err := thread.Invoke(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, []string{
			`Timeout: node "wait" of graph "patience" ran longer than 50ms (its run timeout)`, "done",
		}, got.Output.Log.Get())
		assert.Equal(t, int64(3), runs.Load(), "the one out of time is retried once")
	}, compiled)
}
