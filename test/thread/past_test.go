package thread_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

func TestThePastOfAThread(t *testing.T) {
	t.Parallel()
	rig.OnRuntimes(t, rig.Chain("past", "a", "b", "c").MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		rig.Invoke(t, th, rig.Wrote("again"))
		history := rig.HistoryOf(t, th, superstep.WithValues())
		require.Len(t, history, 10, "two runs of five checkpoints: input, entry and three nodes")
		for i, c := range history {
			if i+1 < len(history) {
				assert.Equal(t, history[i+1].Checkpoint, c.Parent)
			}
			state, err := th.State(t.Context(), superstep.AtCheckpoint(c.Checkpoint))
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

		bare := rig.HistoryOf(t, th)
		for i := range history {
			if next := history[i].Next; len(next) > 0 && assert.Len(t, history[i].Tasks, len(next)) {
				assert.Equal(t, next[0], history[i].Tasks[0].Node)
			}
			history[i].Values, history[i].Tasks = nil, nil // both come only when values are asked for
		}
		assert.Equal(t, history, bare)
		assert.Equal(t, history[:2], rig.HistoryOf(t, th, superstep.Limit(2)))
		assert.Equal(t, history[3:], rig.HistoryOf(t, th, superstep.Before(history[2].Checkpoint)))
		inputs := rig.HistoryOf(t, th, superstep.FromSource("input"))
		require.Len(t, inputs, 2)
		assert.Equal(t, []int{4, -1}, []int{inputs[0].Step, inputs[1].Step})
		assert.Equal(t, inputs[:1], rig.HistoryOf(t, th, superstep.FromSource("input"), superstep.AtStep(4)))

		_, err := th.History(t.Context(), superstep.Before("c-nothing"))
		assert.ErrorIs(t, err, thread.ErrNotFound)
		_, err = th.State(t.Context(), superstep.AtCheckpoint("c-nothing"))
		assert.ErrorIs(t, err, thread.ErrNotFound)
		_, err = th.State(t.Context(), superstep.InSubgraph("a"))
		assert.ErrorIs(t, err, thread.ErrNotFound)
		_, err = th.History(t.Context(), superstep.InSubgraph("a"))
		assert.ErrorIs(t, err, thread.ErrNotFound)
	})
}

func TestForksOfAThread(t *testing.T) {
	t.Parallel()
	rig.OnRuntimes(t, rig.Chain("forked", "a", "b", "c").MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		first := rig.HistoryOf(t, th)
		afterA := rig.AtStep(t, th, 1)

		same, err := th.Fork(t.Context(), afterA.Checkpoint, "")
		require.NoError(t, err)
		got, err := same.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
		branched := rig.HistoryOf(t, th)
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
		assert.Equal(t, branched, rig.HistoryOf(t, th), "the old thread is left alone")
		theirs := rig.HistoryOf(t, other)
		require.Len(t, theirs, 6)
		assert.Equal(t, first[2:], theirs[3:], "it begins with the checkpoint, and what led to it")
		assert.Equal(t, []string{"a"}, rig.LogOf(t, other, superstep.AtCheckpoint(afterA.Checkpoint)))

		_, err = th.Fork(t.Context(), afterA.Checkpoint, as)
		assert.ErrorIs(t, err, thread.ErrBadInput, "that thread exists already")
		for _, checkpoint := range []string{"c-nothing", ""} {
			for _, as := range []string{"", graphtest.ThreadID(t)} {
				_, err = th.Fork(t.Context(), checkpoint, as)
				assert.ErrorIs(t, err, thread.ErrNotFound)
			}
		}
		_, err = th.Invoke(t.Context(), nil, superstep.FromCheckpoint("c-nothing"))
		assert.ErrorIs(t, err, thread.ErrNotFound)
		assert.Equal(t, branched, rig.HistoryOf(t, th), "refused forks leave nothing")
	})
}

func TestNewInputAtAnEarlierCheckpoint(t *testing.T) {
	t.Parallel()
	rig.OnRuntimes(t, rig.Chain("rebased", "a", "b").MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		afterA := rig.AtStep(t, th, 1)
		got := rig.Invoke(t, th, rig.Wrote("other"), superstep.FromCheckpoint(afterA.Checkpoint))
		assert.Equal(t, []string{"a", "other", "a", "b"}, got.Output.Log.Get(), "what was next there is discarded")
		assert.Equal(t, afterA.Checkpoint, rig.HistoryOf(t, th, superstep.FromSource("input"), superstep.Limit(1))[0].Parent)
		got = rig.Invoke(t, th, nil)
		assert.Equal(t, []string{"a", "other", "a", "b"}, got.Output.Log.Get(), "the branch is the thread's state now")
	})
}

func TestUpdatesOfAState(t *testing.T) {
	t.Parallel()
	g := rig.Chain("updated", "a", "b", "c").MustCompile(superstep.WithInterruptBefore("b"))
	rig.OnRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		require.Equal(t, thread.StatusStopped, rig.Invoke(t, th, rig.Counter{}).Status)
		before := rig.HistoryOf(t, th)

		for name, c := range map[string]struct {
			values any
			as     string
			want   string
		}{
			"unknown node":   {rig.Wrote("x"), "bb", `there is no node "bb"`},
			"unknown field":  {map[string]any{"lag": []string{"x"}}, "a", `unknown field "lag": did you mean "log"?`},
			"not an object":  {[]int{1}, "a", "JSON object"},
			"end and values": {rig.Wrote("x"), superstep.End, "takes no values"},
		} {
			_, err := th.Update(t.Context(), c.values, superstep.AsNode(c.as))
			require.ErrorIs(t, err, thread.ErrBadInput, name)
			assert.ErrorContains(t, err, c.want, name)
		}
		_, err := th.Update(t.Context(), rig.Wrote("x"), superstep.AtCheckpoint("c-nothing"))
		assert.ErrorIs(t, err, thread.ErrNotFound)
		_, err = th.Update(t.Context(), rig.Wrote("x"), superstep.InSubgraph("a"))
		assert.ErrorIs(t, err, thread.ErrNotFound)
		_, err = th.BulkUpdate(t.Context(), nil)
		assert.ErrorIs(t, err, thread.ErrBadInput)
		_, err = th.BulkUpdate(t.Context(), [][]superstep.StateUpdate{{{Values: rig.Wrote("x"), AsNode: "a"}}, {{AsNode: "nobody"}}})
		assert.ErrorIs(t, err, thread.ErrBadInput)
		assert.Equal(t, before, rig.HistoryOf(t, th), "refused updates leave nothing, not even the first of two")

		state, err := th.Update(t.Context(), rig.Wrote("by hand"))
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "by hand"}, state.State.Log.Get())
		assert.Equal(t, []string{"b"}, state.Next, "as if a, which ran last, had written it")
		assert.Equal(t, thread.StatusStopped, state.Status)
		assert.Equal(t, "update", state.Source)

		state, err = th.Update(t.Context(), nil, superstep.AsNode("b"))
		require.NoError(t, err)
		assert.Equal(t, []string{"c"}, state.Next, "nothing written, b skipped")
		assert.Equal(t, []string{"a", "by hand", "c"}, rig.Invoke(t, th, nil).Output.Log.Get())

		state, err = th.Update(t.Context(), map[string]any{"log": map[string]any{"__overwrite__": []string{"new"}}}, superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Equal(t, []string{"new"}, state.State.Log.Get(), "a finished thread")
		assert.Equal(t, thread.StatusStopped, state.Status)
		state, err = th.BulkUpdate(t.Context(), [][]superstep.StateUpdate{{{Values: rig.Wrote("1"), AsNode: "a"}}, {{Values: rig.Wrote("2"), AsNode: "b"}}})
		require.NoError(t, err)
		assert.Equal(t, []string{"new", "1", "2"}, state.State.Log.Get())
		assert.Equal(t, []string{"c"}, state.Next)
		state, err = th.Update(t.Context(), nil, superstep.AsNode(superstep.End))
		require.NoError(t, err)
		assert.Empty(t, state.Next)
		assert.Equal(t, thread.StatusFinished, state.Status)

		state, err = th.Update(t.Context(), rig.Wrote("branch"), superstep.AtCheckpoint(before[0].Checkpoint), superstep.AsNode("b"))
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "branch"}, state.State.Log.Get())
		assert.Equal(t, before[0].Checkpoint, state.Parent)
		assert.Equal(t, []string{"a", "branch", "c"}, rig.Invoke(t, th, nil).Output.Log.Get())
		history := rig.HistoryOf(t, th)
		assert.Equal(t, before, history[len(history)-len(before):])
	})
}

func TestAThreadBeginsWithAnUpdate(t *testing.T) {
	t.Parallel()
	rig.OnRuntimes(t, rig.Chain("seeded", "a", "b").MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		_, err := th.Update(t.Context(), rig.Wrote("x"), superstep.AsNode("nobody"))
		require.ErrorIs(t, err, thread.ErrBadInput)
		_, err = th.State(t.Context())
		require.ErrorIs(t, err, thread.ErrNotFound, "nothing began")
		state, err := th.Update(t.Context(), rig.Wrote("seed"), superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Equal(t, []string{"seed"}, state.State.Log.Get())
		assert.Equal(t, []string{"b"}, state.Next)
		assert.Equal(t, []string{"seed", "b"}, rig.Invoke(t, th, nil).Output.Log.Get())
	})
}

func TestUpdatesEvaluateBranchesOrChangeNothing(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	g := superstep.NewStateGraph[rig.Counter]("routed")
	g.AddNode("a", rig.Appending("a"))
	g.AddNode("left", rig.Appending("left"))
	g.AddNode("right", rig.Appending("right"))
	g.AddEdge(superstep.Start, "a")
	g.AddConditionalEdges("a", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
		if broken.Load() {
			return nil, errors.New("no signpost")
		}
		if log := s.Log.Get(); len(log) > 0 && log[len(log)-1] == "go left" {
			return superstep.To("left"), nil
		}
		return superstep.To("right"), nil
	}, "left", "right")
	rig.OnRuntimes(t, g.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		broken.Store(false)
		rig.Invoke(t, th, rig.Counter{})
		before := rig.HistoryOf(t, th)
		broken.Store(true)
		_, err := th.Update(t.Context(), rig.Wrote("go left"), superstep.AsNode("a"))
		require.ErrorIs(t, err, thread.ErrBadInput)
		assert.ErrorContains(t, err, "no signpost")
		assert.Equal(t, before, rig.HistoryOf(t, th))
		assert.Equal(t, []string{"a", "right"}, rig.LogOf(t, th))
		broken.Store(false)
		state, err := th.Update(t.Context(), rig.Wrote("go left"), superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Equal(t, []string{"left"}, state.Next)
		assert.Equal(t, []string{"a", "right", "go left", "left"}, rig.Invoke(t, th, nil).Output.Log.Get())
	})
}

func TestUpdatesDropOpenQuestions(t *testing.T) {
	t.Parallel()
	g := superstep.NewStateGraph[rig.Counter]("asks")
	g.AddNode("a", rig.Asking("a"))
	g.AddNode("b", rig.Appending("b"))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "b")
	rig.OnRuntimes(t, g.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		asked := rig.Invoke(t, th, rig.Counter{})
		require.Len(t, asked.Questions, 1)
		state, err := th.State(t.Context())
		require.NoError(t, err)
		require.Len(t, state.Tasks, 1)
		assert.Equal(t, "a", state.Tasks[0].Node)
		assert.Len(t, state.Tasks[0].Questions, 1)

		state, err = th.Update(t.Context(), rig.Wrote("instead"), superstep.AsNode("a"))
		require.NoError(t, err)
		assert.Empty(t, state.Questions)
		_, err = th.ResumeByID(t.Context(), map[string]any{asked.Questions[0].ID: true})
		require.Error(t, err, "nobody asks any more")
		assert.Equal(t, []string{"instead", "b"}, rig.Invoke(t, th, nil).Output.Log.Get())

		// From before the question it is asked again, on the new branch.
		again := rig.Invoke(t, th, nil, superstep.FromCheckpoint(rig.AtStep(t, th, 0).Checkpoint))
		require.Equal(t, thread.StatusWaiting, again.Status)
		assert.NotEqual(t, asked.Questions[0].ID, again.Questions[0].ID)
		got, err := th.Resume(t.Context(), true)
		require.NoError(t, err)
		assert.Equal(t, []string{"a true", "b"}, got.Output.Log.Get())

		// New input abandons a question.
		rig.Invoke(t, th, rig.Counter{})
		got = rig.Invoke(t, th, rig.Wrote("new"))
		assert.Equal(t, thread.StatusWaiting, got.Status)
		assert.Len(t, got.Questions, 1)
	})
}

func TestCommandsFromOutside(t *testing.T) {
	t.Parallel()
	g := superstep.NewStateGraph[rig.Counter]("commanded")
	g.AddNode("a", rig.Asking("a"))
	g.AddNode("b", rig.Asking("b"))
	g.AddNode("extra", rig.Appending("extra"))
	g.AddEdge(superstep.Start, "a")
	g.AddEdge(superstep.Start, "b")
	rig.OnRuntimes(t, g.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		asked := rig.Invoke(t, th, rig.Counter{})
		require.Len(t, asked.Questions, 2)
		_, err := th.Command(t.Context(), superstep.Command[rig.Counter]{Goto: superstep.To("nobody")})
		require.ErrorIs(t, err, thread.ErrBadInput)
		_, err = th.Command(t.Context(), superstep.Command[rig.Counter]{}, superstep.WithAnswers(map[string]any{"": true}))
		require.ErrorIs(t, err, thread.ErrBadInput, "two questions are open")
		_, err = th.Command(t.Context(), superstep.Command[rig.Counter]{}, superstep.WithAnswers(map[string]any{asked.Questions[0].ID: "maybe"}))
		require.ErrorIs(t, err, thread.ErrBadInput, "it does not fit")
		_, err = th.Invoke(t.Context(), rig.Counter{}, superstep.WithAnswers(map[string]any{asked.Questions[0].ID: true}))
		require.ErrorIs(t, err, thread.ErrBadInput, "input abandons the question")

		got, err := th.Command(t.Context(), superstep.Command[rig.Counter]{Update: rig.Wrote("noted"), Goto: superstep.To("extra")},
			superstep.WithAnswers(map[string]any{asked.Questions[0].ID: true}))
		require.NoError(t, err)
		assert.Equal(t, thread.StatusWaiting, got.Status)
		require.Len(t, got.Questions, 1)
		assert.Equal(t, asked.Questions[1].ID, got.Questions[0].ID, "the other one stays open")
		got, err = th.Resume(t.Context(), false)
		require.NoError(t, err)
		assert.Equal(t, []string{"noted", "a true", "b false", "extra"}, got.Output.Log.Get())
	})
}

func TestStatesOfSubgraphs(t *testing.T) {
	t.Parallel()
	sub := superstep.NewStateGraph[rig.Counter]("inner-graph")
	sub.AddNode("x", rig.Appending("x"))
	sub.AddNode("y", rig.Asking("y"))
	sub.AddEdge(superstep.Start, "x")
	sub.AddEdge("x", "y")
	g := superstep.NewStateGraph[rig.Counter]("outer-graph")
	g.AddSubgraph("inner", sub.MustCompile())
	g.AddEdge(superstep.Start, "inner")
	rig.OnRuntimes(t, g.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		require.Equal(t, thread.StatusWaiting, rig.Invoke(t, th, rig.Counter{}).Status)
		state, err := th.State(t.Context())
		require.NoError(t, err)
		require.Len(t, state.Tasks, 1)
		assert.Nil(t, state.Tasks[0].State, "it was not asked for")
		state, err = th.State(t.Context(), superstep.WithSubgraphs())
		require.NoError(t, err)
		require.NotNil(t, state.Tasks[0].State)
		assert.Equal(t, []string{"y"}, state.Tasks[0].State.Next)
		assert.Equal(t, []string{"x"}, rig.LogOf(t, th, superstep.InSubgraph("inner")))
		history := rig.HistoryOf(t, th, superstep.InSubgraph("inner"), superstep.WithValues())
		require.Len(t, history, 3)
		assert.JSONEq(t, `["x"]`, string(history[0].Values["log"]))

		_, err = th.Update(t.Context(), rig.Wrote("instead of y"), superstep.InSubgraph("inner"), superstep.AsNode("nobody"))
		require.ErrorIs(t, err, thread.ErrBadInput)
		_, err = th.Update(t.Context(), rig.Wrote("instead of y"), superstep.InSubgraph("inner"), superstep.AsNode("y"))
		require.NoError(t, err)
		assert.Equal(t, []string{"x", "instead of y"}, rig.LogOf(t, th, superstep.InSubgraph("inner")))
		assert.Len(t, rig.HistoryOf(t, th, superstep.InSubgraph("inner")), 4)
		assert.Equal(t, []string{"x", "instead of y"}, rig.Invoke(t, th, nil).Output.Log.Get())
	})
}

// TestAForkOfAnUpdate begins with that checkpoint, as a thread of its own: it is one that nobody ran from yet.
func TestAForkOfAnUpdate(t *testing.T) {
	t.Parallel()
	b := superstep.NewStateGraph[rig.Counter]("updated-fork")
	b.AddNode("a", rig.Appending("a"))
	b.AddNode("b", rig.Appending("b"))
	b.AddEdge(superstep.Start, "a")
	b.AddEdge("a", "b")
	rig.OnRuntimes(t, b.MustCompile(), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		at, err := th.Update(t.Context(), rig.Wrote("x"), superstep.AsNode("a"))
		require.NoError(t, err)
		v, err := th.Show(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"b"}, v.Nodes, "what would run next")
		fork, err := th.Fork(t.Context(), at.Checkpoint, th.ID()+"-fork")
		require.NoError(t, err)
		got, err := fork.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "x", "b"}, got.Output.Log.Get())
		made := rig.HistoryOf(t, fork)
		assert.Len(t, made, len(rig.HistoryOf(t, th))+1, "what b made, and no checkpoint of the fork beside")
	})
}
