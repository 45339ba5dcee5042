package superstep_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// onRuntimes runs a body on every runtime with a thread of its own of the graph.
func onRuntimes[Out any](t *testing.T, g *superstep.Graph[Out], body func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[Out])) {
	t.Helper()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		body(t, rt, g.Thread(rt, graphtest.ThreadID(t)))
	}, g)
}

func invoke(t *testing.T, th *superstep.Thread[counter], input any, opts ...superstep.RunOption) superstep.Result[counter] {
	t.Helper()
	got, err := th.Invoke(t.Context(), input, opts...)
	require.NoError(t, err)
	return got
}

func logOf(t *testing.T, th *superstep.Thread[counter], opts ...superstep.StateOption) []string {
	t.Helper()
	state, err := th.State(t.Context(), opts...)
	require.NoError(t, err)
	return state.State.Log.Get()
}

func historyOf(t *testing.T, th *superstep.Thread[counter], opts ...superstep.HistoryOption) []superstep.CheckpointView {
	t.Helper()
	history, err := th.History(t.Context(), opts...)
	require.NoError(t, err)
	return history
}

// atStep is the newest checkpoint of a superstep.
func atStep(t *testing.T, th *superstep.Thread[counter], step int) superstep.CheckpointView {
	t.Helper()
	history := historyOf(t, th, superstep.AtStep(step), superstep.Limit(1))
	require.Len(t, history, 1)
	return history[0]
}

// wrote is a state to update with.
func wrote(words ...string) counter {
	var s counter
	s.Log.Append(words...)
	return s
}

func TestThePastOfAThread(t *testing.T) {
	onRuntimes(t, chain("past", "a", "b", "c").MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		invoke(t, th, counter{})
		invoke(t, th, wrote("again"))
		history := historyOf(t, th, superstep.WithValues())
		require.Len(t, history, 10, "two runs of five checkpoints: input, entry and three nodes")
		for i, c := range history {
			if i+1 < len(history) {
				assert.Equal(t, history[i+1].Checkpoint, c.Parent)
			}
			state, err := th.StateAt(t.Context(), c.Checkpoint)
			require.NoError(t, err)
			assert.Equal(t, c.Values["log"], state.Values["log"])
			assert.Equal(t, c.Next, state.Next)
			assert.Equal(t, c.Step, state.Step)
			assert.Equal(t, c.Parent, state.Parent)
		}
		assert.Empty(t, history[9].Parent)
		assert.Equal(t, []string{"c"}, history[0].Ran)
		assert.Equal(t, []string{"log"}, history[0].Wrote)
		assert.Equal(t, -1, history[9].Step)
		assert.JSONEq(t, `["a","b","c","again","a"]`, string(history[2].Values["log"]))

		bare := historyOf(t, th)
		for i := range history {
			history[i].Values = nil
		}
		assert.Equal(t, history, bare)
		assert.Equal(t, history[:2], historyOf(t, th, superstep.Limit(2)))
		assert.Equal(t, history[3:], historyOf(t, th, superstep.Before(history[2].Checkpoint)))
		inputs := historyOf(t, th, superstep.FromSource("input"))
		require.Len(t, inputs, 2)
		assert.Equal(t, []int{4, -1}, []int{inputs[0].Step, inputs[1].Step})
		assert.Equal(t, inputs[:1], historyOf(t, th, superstep.FromSource("input"), superstep.AtStep(4)))

		_, err := th.History(t.Context(), superstep.Before("c-nothing"))
		assert.ErrorIs(t, err, superstep.ErrNotFound)
		_, err = th.StateAt(t.Context(), "c-nothing")
		assert.ErrorIs(t, err, superstep.ErrNotFound)
		_, err = th.State(t.Context(), superstep.InSubgraph("a"))
		assert.ErrorIs(t, err, superstep.ErrNotFound)
		_, err = th.History(t.Context(), superstep.InSubgraph("a"))
		assert.ErrorIs(t, err, superstep.ErrNotFound)
	})
}

func TestForksOfAThread(t *testing.T) {
	onRuntimes(t, chain("forked", "a", "b", "c").MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		invoke(t, th, counter{})
		first := historyOf(t, th)
		afterA := atStep(t, th, 1)

		same, err := th.Fork(t.Context(), afterA.Checkpoint, "")
		require.NoError(t, err)
		got, err := same.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
		branched := historyOf(t, th)
		require.Len(t, branched, len(first)+3, "a fork, b and c")
		assert.Equal(t, first, branched[3:], "what was there stays")
		assert.Equal(t, "fork", branched[2].Source)
		assert.Equal(t, afterA.Checkpoint, branched[2].Parent)
		assert.NotEqual(t, branched[0].Checkpoint, branched[3].Checkpoint)

		as := graphtest.ThreadID(t)
		other, err := th.Fork(t.Context(), afterA.Checkpoint, as)
		require.NoError(t, err)
		assert.Equal(t, as, other.ID())
		got, err = other.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
		assert.Equal(t, branched, historyOf(t, th), "the old thread is left alone")
		theirs := historyOf(t, other)
		require.Len(t, theirs, 4)
		assert.Equal(t, afterA.Checkpoint, theirs[3].Checkpoint, "it begins with the checkpoint")
		assert.Equal(t, []string{"a"}, logOf(t, other, superstep.AtCheckpoint(afterA.Checkpoint)))

		_, err = th.Fork(t.Context(), afterA.Checkpoint, as)
		assert.ErrorIs(t, err, superstep.ErrBadInput, "that thread exists already")
		for _, checkpoint := range []string{"c-nothing", ""} {
			for _, as := range []string{"", graphtest.ThreadID(t)} {
				_, err = th.Fork(t.Context(), checkpoint, as)
				assert.ErrorIs(t, err, superstep.ErrNotFound)
			}
		}
		_, err = th.Invoke(t.Context(), nil, superstep.FromCheckpoint("c-nothing"))
		assert.ErrorIs(t, err, superstep.ErrNotFound)
		assert.Equal(t, branched, historyOf(t, th), "refused forks leave nothing")
	})
}

func TestNewInputAtAnEarlierCheckpoint(t *testing.T) {
	onRuntimes(t, chain("rebased", "a", "b").MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		invoke(t, th, counter{})
		afterA := atStep(t, th, 1)
		got := invoke(t, th, wrote("other"), superstep.FromCheckpoint(afterA.Checkpoint))
		assert.Equal(t, []string{"a", "other", "a", "b"}, got.Output.Log.Get(), "what was next there is discarded")
		assert.Equal(t, afterA.Checkpoint, historyOf(t, th, superstep.FromSource("input"), superstep.Limit(1))[0].Parent)
		got = invoke(t, th, nil)
		assert.Equal(t, []string{"a", "other", "a", "b"}, got.Output.Log.Get(), "the branch is the thread's state now")
	})
}

func TestUpdatesOfAState(t *testing.T) {
	g := chain("updated", "a", "b", "c").MustCompile(superstep.WithInterruptBefore("b"))
	onRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		require.Equal(t, superstep.StatusStopped, invoke(t, th, counter{}).Status)
		before := historyOf(t, th)

		for name, c := range map[string]struct {
			values any
			as     string
			want   string
		}{
			"unknown node":   {wrote("x"), "bb", `there is no node "bb"`},
			"unknown field":  {map[string]any{"lag": []string{"x"}}, "a", `unknown field "lag": did you mean "log"?`},
			"not an object":  {[]int{1}, "a", "JSON object"},
			"end and values": {wrote("x"), superstep.End, "takes no values"},
		} {
			_, err := th.Update(t.Context(), c.values, superstep.AsNode(c.as))
			require.ErrorIs(t, err, superstep.ErrBadInput, name)
			assert.ErrorContains(t, err, c.want, name)
		}
		_, err := th.Update(t.Context(), wrote("x"), superstep.AtCheckpoint("c-nothing"))
		assert.ErrorIs(t, err, superstep.ErrNotFound)
		_, err = th.Update(t.Context(), wrote("x"), superstep.InSubgraph("a"))
		assert.ErrorIs(t, err, superstep.ErrNotFound)
		_, err = th.BulkUpdate(t.Context(), nil)
		assert.ErrorIs(t, err, superstep.ErrBadInput)
		_, err = th.BulkUpdate(t.Context(), [][]superstep.StateUpdate{{{Values: wrote("x"), AsNode: "a"}}, {{AsNode: "nobody"}}})
		assert.ErrorIs(t, err, superstep.ErrBadInput)
		assert.Equal(t, before, historyOf(t, th), "refused updates leave nothing, not even the first of two")

		state, err := th.Update(t.Context(), wrote("by hand"))
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "by hand"}, state.State.Log.Get())
		assert.Equal(t, []string{"b"}, state.Next, "as if a, which ran last, had written it")
		assert.Equal(t, superstep.StatusStopped, state.Status)
		assert.Equal(t, "update", state.Source)

		state, err = th.Update(t.Context(), nil, superstep.AsNode("b"))
		require.NoError(t, err)
		assert.Equal(t, []string{"c"}, state.Next, "nothing written, b skipped")
		assert.Equal(t, []string{"a", "by hand", "c"}, invoke(t, th, nil).Output.Log.Get())

		state, err = th.Update(t.Context(), map[string]any{"log": map[string]any{"__overwrite__": []string{"new"}}}, superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Equal(t, []string{"new"}, state.State.Log.Get(), "a finished thread")
		assert.Equal(t, superstep.StatusStopped, state.Status)
		state, err = th.BulkUpdate(t.Context(), [][]superstep.StateUpdate{{{Values: wrote("1"), AsNode: "a"}}, {{Values: wrote("2"), AsNode: "b"}}})
		require.NoError(t, err)
		assert.Equal(t, []string{"new", "1", "2"}, state.State.Log.Get())
		assert.Equal(t, []string{"c"}, state.Next)
		state, err = th.Update(t.Context(), nil, superstep.AsNode(superstep.End))
		require.NoError(t, err)
		assert.Empty(t, state.Next)
		assert.Equal(t, superstep.StatusFinished, state.Status)

		state, err = th.Update(t.Context(), wrote("branch"), superstep.AtCheckpoint(before[0].Checkpoint), superstep.AsNode("b"))
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "branch"}, state.State.Log.Get())
		assert.Equal(t, before[0].Checkpoint, state.Parent)
		assert.Equal(t, []string{"a", "branch", "c"}, invoke(t, th, nil).Output.Log.Get())
		history := historyOf(t, th)
		assert.Equal(t, before, history[len(history)-len(before):])
	})
}

func TestAThreadBeginsWithAnUpdate(t *testing.T) {
	onRuntimes(t, chain("seeded", "a", "b").MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		_, err := th.Update(t.Context(), wrote("x"), superstep.AsNode("nobody"))
		require.ErrorIs(t, err, superstep.ErrBadInput)
		_, err = th.State(t.Context())
		require.ErrorIs(t, err, superstep.ErrNotFound, "nothing began")
		state, err := th.Update(t.Context(), wrote("seed"), superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Equal(t, []string{"seed"}, state.State.Log.Get())
		assert.Equal(t, []string{"b"}, state.Next)
		assert.Equal(t, []string{"seed", "b"}, invoke(t, th, nil).Output.Log.Get())
	})
}

func TestUpdatesEvaluateBranchesOrChangeNothing(t *testing.T) {
	var broken atomic.Bool
	g := superstep.NewStateGraph[counter]("routed")
	g.AddNode("a", appending("a"))
	g.AddNode("left", appending("left"))
	g.AddNode("right", appending("right"))
	g.AddEdge(superstep.Start, "a")
	g.AddConditionalEdges("a", func(_ context.Context, s counter) ([]superstep.Target, error) {
		if broken.Load() {
			return nil, errors.New("no signpost")
		}
		if log := s.Log.Get(); len(log) > 0 && log[len(log)-1] == "go left" {
			return superstep.To("left"), nil
		}
		return superstep.To("right"), nil
	}, "left", "right")
	onRuntimes(t, g.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		broken.Store(false)
		invoke(t, th, counter{})
		before := historyOf(t, th)
		broken.Store(true)
		_, err := th.Update(t.Context(), wrote("go left"), superstep.AsNode("a"))
		require.ErrorIs(t, err, superstep.ErrBadInput)
		assert.ErrorContains(t, err, "no signpost")
		assert.Equal(t, before, historyOf(t, th))
		assert.Equal(t, []string{"a", "right"}, logOf(t, th))
		broken.Store(false)
		state, err := th.Update(t.Context(), wrote("go left"), superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Equal(t, []string{"left"}, state.Next)
		assert.Equal(t, []string{"a", "right", "go left", "left"}, invoke(t, th, nil).Output.Log.Get())
	})
}

func TestUpdatesDropOpenQuestions(t *testing.T) {
	g := superstep.NewStateGraph[counter]("asks")
	g.AddNode("a", asking("a"))
	g.AddNode("b", appending("b"))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	onRuntimes(t, g.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		asked := invoke(t, th, counter{})
		require.Len(t, asked.Questions, 1)
		state, err := th.State(t.Context())
		require.NoError(t, err)
		require.Len(t, state.Tasks, 1)
		assert.Equal(t, "a", state.Tasks[0].Node)
		assert.Len(t, state.Tasks[0].Questions, 1)

		state, err = th.Update(t.Context(), wrote("instead"), superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Empty(t, state.Questions)
		_, err = th.ResumeByID(t.Context(), map[string]any{asked.Questions[0].ID: true})
		require.Error(t, err, "nobody asks any more")
		assert.Equal(t, []string{"instead", "b"}, invoke(t, th, nil).Output.Log.Get())

		// From before the question it is asked again, on the new branch.
		again := invoke(t, th, nil, superstep.FromCheckpoint(atStep(t, th, 0).Checkpoint))
		require.Equal(t, superstep.StatusWaiting, again.Status)
		assert.NotEqual(t, asked.Questions[0].ID, again.Questions[0].ID)
		got, err := th.Resume(t.Context(), true)
		require.NoError(t, err)
		assert.Equal(t, []string{"a true", "b"}, got.Output.Log.Get())

		// New input abandons a question.
		invoke(t, th, counter{})
		got = invoke(t, th, wrote("new"))
		assert.Equal(t, superstep.StatusWaiting, got.Status)
		assert.Len(t, got.Questions, 1)
	})
}

func TestCommandsFromOutside(t *testing.T) {
	g := superstep.NewStateGraph[counter]("commanded")
	g.AddNode("a", asking("a"))
	g.AddNode("b", asking("b"))
	g.AddNode("extra", appending("extra"))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge(superstep.Start, "b")
	onRuntimes(t, g.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		asked := invoke(t, th, counter{})
		require.Len(t, asked.Questions, 2)
		_, err := th.Command(t.Context(), superstep.Command[counter]{Goto: superstep.To("nobody")})
		require.ErrorIs(t, err, superstep.ErrBadInput)
		_, err = th.Command(t.Context(), superstep.Command[counter]{}, superstep.WithAnswers(map[string]any{"": true}))
		require.ErrorIs(t, err, superstep.ErrBadInput, "two questions are open")
		_, err = th.Command(t.Context(), superstep.Command[counter]{}, superstep.WithAnswers(map[string]any{asked.Questions[0].ID: "maybe"}))
		require.ErrorIs(t, err, superstep.ErrBadInput, "it does not fit")
		_, err = th.Invoke(t.Context(), counter{}, superstep.WithAnswers(map[string]any{asked.Questions[0].ID: true}))
		require.ErrorIs(t, err, superstep.ErrBadInput, "input abandons the question")

		got, err := th.Command(t.Context(), superstep.Command[counter]{Update: wrote("noted"), Goto: superstep.To("extra")},
			superstep.WithAnswers(map[string]any{asked.Questions[0].ID: true}))
		require.NoError(t, err)
		assert.Equal(t, superstep.StatusWaiting, got.Status)
		require.Len(t, got.Questions, 1)
		assert.Equal(t, asked.Questions[1].ID, got.Questions[0].ID, "the other one stays open")
		got, err = th.Resume(t.Context(), false)
		require.NoError(t, err)
		assert.Equal(t, []string{"noted", "a true", "b false", "extra"}, got.Output.Log.Get())
	})
}

func TestStatesOfSubgraphs(t *testing.T) {
	sub := superstep.NewStateGraph[counter]("inner-graph")
	sub.AddNode("x", appending("x"))
	sub.AddNode("y", asking("y"))
	sub.AddEdge(superstep.Start, "x")
	sub.AddEdge("x", "y")
	g := superstep.NewStateGraph[counter]("outer-graph")
	g.AddSubgraph("inner", sub.MustCompile())
	g.AddEdge(superstep.Start, "inner")
	onRuntimes(t, g.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
		require.Equal(t, superstep.StatusWaiting, invoke(t, th, counter{}).Status)
		state, err := th.State(t.Context())
		require.NoError(t, err)
		require.Len(t, state.Tasks, 1)
		assert.Nil(t, state.Tasks[0].State, "it was not asked for")
		state, err = th.State(t.Context(), superstep.WithSubgraphs())
		require.NoError(t, err)
		require.NotNil(t, state.Tasks[0].State)
		assert.Equal(t, []string{"y"}, state.Tasks[0].State.Next)
		assert.Equal(t, []string{"x"}, logOf(t, th, superstep.InSubgraph("inner")))
		history := historyOf(t, th, superstep.InSubgraph("inner"), superstep.WithValues())
		require.Len(t, history, 3)
		assert.JSONEq(t, `["x"]`, string(history[0].Values["log"]))

		_, err = th.Update(t.Context(), wrote("instead of y"), superstep.InSubgraph("inner"), superstep.AsNode("nobody"))
		require.ErrorIs(t, err, superstep.ErrBadInput)
		_, err = th.Update(t.Context(), wrote("instead of y"), superstep.InSubgraph("inner"), superstep.AsNode("y"))
		require.NoError(t, err)
		assert.Equal(t, []string{"x", "instead of y"}, logOf(t, th, superstep.InSubgraph("inner")))
		assert.Len(t, historyOf(t, th, superstep.InSubgraph("inner")), 4)
		assert.Equal(t, []string{"x", "instead of y"}, invoke(t, th, nil).Output.Log.Get())
	})
}
