package superstep_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
)

func appending(word string) func(context.Context, counter) (counter, error) {
	return func(_ context.Context, s counter) (counter, error) {
		s.Log.Append(word)
		return s, nil
	}
}

func chain(name string, words ...string) *superstep.StateGraph[counter] {
	g := superstep.NewStateGraph[counter](name)
	last := superstep.Start
	for _, w := range words {
		g.AddNode(w, appending(w))
		g.AddEdge(last, w)
		last = w
	}
	return g
}

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
	assert.Equal(t, superstep.StatusFailed, failed.Status)
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

func TestThreadsRememberTheirState(t *testing.T) {
	rt := superstep.NewMemory()
	g := chain("g", "a").MustCompile()
	th := g.Thread(rt, "t")
	_, err := th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	got, err := g.Thread(rt, "t").Invoke(t.Context(), map[string]any{"log": []string{"again"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "again", "a"}, got.Output.Log.Get())

	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFinished, state.Status)
	assert.Equal(t, []string{"a", "again", "a"}, state.State.Log.Get())
	assert.Empty(t, state.Next)

	history, err := th.History(t.Context())
	require.NoError(t, err)
	require.Len(t, history, 6)
	assert.Equal(t, []string{"a"}, history[0].Ran)
	assert.Equal(t, []string{"log"}, history[0].Wrote)
	assert.Equal(t, []string{"a"}, history[1].Next)
	assert.Empty(t, history[1].Ran)
	assert.Equal(t, "input", history[2].Source)

	past, err := th.StateAt(t.Context(), history[3].Checkpoint)
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, past.State.Log.Get())
	_, err = th.StateAt(t.Context(), "nowhere")
	assert.ErrorIs(t, err, superstep.ErrNotFound)
	assert.Equal(t, "t", th.ID())
	assert.Equal(t, "g/t", th.String())
}

func TestThreadsThatDoNotExistAreNotFound(t *testing.T) {
	rt := superstep.NewMemory()
	th := chain("g", "a").MustCompile().Thread(rt, "t")
	_, err := th.Wait(t.Context())
	assert.ErrorIs(t, err, superstep.ErrNotFound)
	_, err = th.State(t.Context())
	assert.ErrorIs(t, err, superstep.ErrNotFound)
	_, err = th.History(t.Context())
	assert.ErrorIs(t, err, superstep.ErrNotFound)
	_, err = th.Resume(t.Context(), true)
	assert.ErrorIs(t, err, superstep.ErrNotFound)
	_, err = th.Retry(t.Context())
	assert.ErrorIs(t, err, superstep.ErrNotFound)
	assert.ErrorIs(t, th.Cancel(t.Context(), ""), superstep.ErrNotFound)
	_, err = th.Invoke(t.Context(), nil)
	assert.ErrorIs(t, err, superstep.ErrBadInput)

	_, err = th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	_, err = chain("other", "a").MustCompile().Thread(rt, "t").Invoke(t.Context(), counter{})
	assert.ErrorIs(t, err, superstep.ErrBadInput)
	assert.ErrorContains(t, err, `thread "t" belongs to graph "g", not to "other"`)
	_, err = chain("g", "a", "b").MustCompile().Thread(rt, "t").Invoke(t.Context(), counter{})
	assert.ErrorIs(t, err, superstep.ErrBadInput)
	assert.ErrorContains(t, err, `thread "t" began with another version of graph "g"`)
	_, err = chain("g", "a").MustCompile().Thread(rt, "").Invoke(t.Context(), counter{})
	assert.ErrorIs(t, err, superstep.ErrBadInput)
}

func asking(key string) func(context.Context, counter) (counter, error) {
	return func(ctx context.Context, s counter) (counter, error) {
		yes, err := superstep.Interrupt[bool](ctx, "really "+key+"?")
		if err != nil {
			return s, err
		}
		s.Log.Append(key + " " + strconv.FormatBool(yes))
		return s, nil
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	g := superstep.NewStateGraph[counter]("g")
	g.AddNode("a", asking("a"))
	g.AddNode("b", asking("b"))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge(superstep.Start, "b")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")

	got, err := th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusWaiting, got.Status)
	require.Len(t, got.Questions, 2)
	assert.Equal(t, "a", got.Questions[0].Node)
	assert.Equal(t, 1, got.Questions[0].Step)
	assert.JSONEq(t, `"really a?"`, string(got.Questions[0].Value))

	_, err = th.Resume(t.Context(), true)
	require.ErrorIs(t, err, superstep.ErrBadInput)
	assert.ErrorContains(t, err, "2 questions are open: answer by id")
	_, err = th.ResumeByID(t.Context(), map[string]any{"nobody": true})
	assert.ErrorIs(t, err, superstep.ErrAnswerRefused)
	_, err = th.ResumeByID(t.Context(), map[string]any{})
	assert.ErrorIs(t, err, superstep.ErrBadInput)
	_, err = th.ResumeByID(t.Context(), map[string]any{got.Questions[0].ID: true, got.Questions[1].ID: "maybe"})
	require.ErrorIs(t, err, superstep.ErrBadInput, "the second does not fit, so neither is taken")

	got, err = th.ResumeByID(t.Context(), map[string]any{got.Questions[1].ID: false})
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusWaiting, state.Status)
	require.Len(t, state.Questions, 1)

	got, err = th.Resume(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFinished, got.Status)
	assert.Equal(t, []string{"a true", "b false"}, got.Output.Log.Get())
	_, err = th.Resume(t.Context(), true)
	assert.ErrorIs(t, err, superstep.ErrAnswerRefused)
}

func TestQuestionsOfSubgraphsNameTheInnerNode(t *testing.T) {
	sub := superstep.NewStateGraph[counter]("sub")
	sub.AddNode("inner", asking("inner"))
	sub.AddEdge(superstep.Start, "inner")
	g := superstep.NewStateGraph[counter]("g")
	g.AddSubgraph("outer", sub.MustCompile())
	g.AddEdge(superstep.Start, "outer")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	got, err := th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	assert.Equal(t, "inner", got.Questions[0].Node)
	got, err = th.ResumeByID(t.Context(), map[string]any{got.Questions[0].ID[:len(got.Questions[0].ID)-1]: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"inner true"}, got.Output.Log.Get())
}

func TestBreakpointsStopTheRun(t *testing.T) {
	g, err := chain("g", "a", "b", "c").Compile(superstep.WithInterruptBefore("b"))
	require.NoError(t, err)
	th := g.Thread(superstep.NewMemory(), "t")
	got, err := th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusStopped, got.Status)
	assert.Equal(t, []string{"a"}, got.Output.Log.Get())
	got, err = th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFinished, got.Status)
	assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
}

func TestFailedRunsAreRetriedFromWhereTheyFailed(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	var ran atomic.Int32
	g := superstep.NewStateGraph[counter]("g")
	g.AddNode("a", func(_ context.Context, s counter) (counter, error) {
		ran.Add(1)
		s.Log.Append("a")
		return s, nil
	})
	g.AddNode("b", func(_ context.Context, s counter) (counter, error) {
		if broken.Load() {
			return s, errors.New("no connection")
		}
		s.Log.Append("b")
		return s, nil
	})
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), counter{})
	var failed *superstep.RunError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "b", failed.Node)
	assert.Equal(t, "t", failed.Thread)
	assert.ErrorContains(t, err, `the run of graph "g" on thread "t" failed: node b of graph g: no connection`)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusFailed, state.Status)

	broken.Store(false)
	got, err := th.Retry(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, got.Output.Log.Get())
	assert.Equal(t, int32(1), ran.Load())
	_, err = th.Retry(t.Context())
	assert.ErrorIs(t, err, superstep.ErrNotFailed)
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

func TestRunsAreCancelled(t *testing.T) {
	started := make(chan struct{})
	g := superstep.NewStateGraph[counter]("g")
	g.AddNode("slow", func(ctx context.Context, s counter) (counter, error) {
		close(started)
		<-ctx.Done()
		return s, context.Cause(ctx)
	})
	g.AddEdge(superstep.Start, "slow")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	require.NoError(t, th.Start(t.Context(), counter{}))
	<-started
	assert.ErrorIs(t, th.Start(t.Context(), counter{}), superstep.ErrRunning)
	_, err := th.Retry(t.Context())
	assert.ErrorIs(t, err, superstep.ErrRunning)

	short, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = th.Wait(short)
	assert.ErrorIs(t, err, context.Canceled, "the end of the caller's context ends the waiting, not the run")

	require.NoError(t, th.Cancel(t.Context(), "no longer needed"))
	got, err := th.Wait(t.Context())
	var cancelled *superstep.RunError
	require.ErrorAs(t, err, &cancelled)
	assert.Equal(t, superstep.StatusCancelled, cancelled.Status)
	assert.Equal(t, superstep.StatusCancelled, got.Status)
	assert.ErrorContains(t, err, `the run of graph "g" on thread "t" was cancelled: no longer needed`)
	require.NoError(t, th.Cancel(t.Context(), "again"), "a run that ended stays as it is")
	_, err = th.Wait(t.Context())
	assert.ErrorContains(t, err, "no longer needed")
}

func TestWaitingRunsAreCancelled(t *testing.T) {
	g := superstep.NewStateGraph[counter]("g")
	g.AddNode("a", asking("a"))
	g.AddEdge(superstep.Start, "a")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), counter{})
	require.NoError(t, err)
	require.NoError(t, th.Cancel(t.Context(), "late"))
	_, err = th.Resume(t.Context(), true)
	assert.ErrorIs(t, err, superstep.ErrAnswerRefused)
	got, err := th.Retry(t.Context())
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusWaiting, got.Status, "the question is asked again")
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
