package superstep

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

type parentState struct {
	Total Sum[int] `json:"total"`
}

type ticket struct {
	ID int64 `json:"id"`
}

func testRouter() *router {
	return &router{graph: "g", node: "n", known: map[string]bool{"n": true, "next": true},
		subgraphs: map[string]bool{"n": true}}
}

func TestANodeReadsItsStateAndReturnsItsWrites(t *testing.T) {
	run := nodeFunc(testRouter(), func(_ context.Context, s allChannels) (Command[allChannels], error) {
		s.Value.Set(s.Value.Get() + 1)
		return Command[allChannels]{Update: s, Goto: append(To("next", End), Send("next", ticket{7})...)}, nil
	})
	got, err := run(t.Context(), graphadapter.Input{State: graphadapter.State{"value": pregel.Value("4")}})
	require.NoError(t, err)
	assert.Equal(t, pregel.Command{
		Update: []pregel.Write{{Channel: "value", Value: pregel.Value("5")}},
		Goto:   []pregel.Target{{Node: "next"}, {Node: "__end__"}, {Node: "next", Send: true, Arg: pregel.Value(`{"id":7}`)}},
	}, got)
}

func TestANodeReachedByASendReadsTheArgument(t *testing.T) {
	t.Run("as fields of the state", func(t *testing.T) {
		run := nodeFunc(testRouter(), func(_ context.Context, s allChannels) (Command[allChannels], error) {
			assert.Equal(t, int64(9), s.Value.Get())
			assert.False(t, s.Any.IsSet(), "the state is not its input")
			return Command[allChannels]{}, nil
		})
		_, err := run(t.Context(), graphadapter.Input{State: graphadapter.State{"any": pregel.Value(`"x"`)}, Arg: pregel.Value(`{"value":9}`)})
		assert.NoError(t, err)
		_, err = run(t.Context(), graphadapter.Input{Arg: pregel.Value(`9`)})
		assert.ErrorContains(t, err, "cannot read the input as superstep.allChannels: the argument of the Send is the number 9, not an object")
	})
	t.Run("as a type of its own", func(t *testing.T) {
		run := nodeFunc(testRouter(), func(_ context.Context, in ticket) (Command[allChannels], error) {
			assert.Equal(t, int64(9007199254740993), in.ID)
			return Command[allChannels]{}, nil
		})
		_, err := run(t.Context(), graphadapter.Input{Arg: pregel.Value(`{"id":9007199254740993}`)})
		assert.NoError(t, err)
		_, err = run(t.Context(), graphadapter.Input{State: graphadapter.State{}})
		assert.ErrorContains(t, err, "its input superstep.ticket is the argument of a Send, but it was reached without one")
		_, err = run(t.Context(), graphadapter.Input{Arg: pregel.Value(`{"id":"x"}`)})
		assert.ErrorContains(t, err, "cannot read the input as superstep.ticket")
		assert.True(t, graphadapter.IsPermanent(err))
	})
}

func TestANodeWhoseStateDoesNotDecodeFailsForGood(t *testing.T) {
	run := nodeFunc(testRouter(), func(_ context.Context, s allChannels) (Command[allChannels], error) {
		if s.Value.Get() == 0 {
			return Command[allChannels]{}, assert.AnError
		}
		return Command[allChannels]{}, nil
	})
	_, err := run(t.Context(), graphadapter.Input{State: graphadapter.State{"value": pregel.Value(`"x"`)}})
	var wrong *StateError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "value", wrong.Field)
	assert.ErrorIs(t, err, assert.AnError, "what the node said is kept")
	assert.True(t, graphadapter.IsPermanent(err))
}

func TestANodesOwnErrorIsLeftAsItIs(t *testing.T) {
	run := nodeFunc(testRouter(), func(context.Context, allChannels) (Command[allChannels], error) {
		return Command[allChannels]{}, assert.AnError
	})
	_, err := run(t.Context(), graphadapter.Input{})
	assert.Equal(t, assert.AnError, err)
}

func TestCommandsToTheParent(t *testing.T) {
	var update parentState
	update.Total.Add(3)
	command := func(c Command[allChannels]) (pregel.Command, error) {
		return nodeFunc(testRouter(), func(context.Context, allChannels) (Command[allChannels], error) { return c, nil })(
			t.Context(), graphadapter.Input{})
	}
	got, err := command(Command[allChannels]{Parent: ToParent(update, To("anywhere"))})
	require.NoError(t, err)
	assert.Equal(t, &pregel.Command{
		Update: []pregel.Write{{Channel: "total", Value: pregel.Value("3")}},
		Goto:   []pregel.Target{{Node: "anywhere"}},
	}, got.Parent)

	_, err = command(Command[allChannels]{Goto: To("next"), Parent: ToParent(update, nil)})
	assert.ErrorContains(t, err, "must have neither Update nor Goto")
	_, err = command(Command[allChannels]{Parent: ToParent(struct{ Total int }{}, nil)})
	assert.ErrorContains(t, err, "Total is a plain int")
	_, err = command(Command[allChannels]{Parent: ToParent(update, Send("x", func() {}))})
	assert.ErrorContains(t, err, `the argument of the Send to "x" does not encode as JSON`)
}

func TestTargetsThatAreNotInTheGraphFailTheTask(t *testing.T) {
	tests := map[string]struct {
		targets  []Target
		declared []string
		want     string
	}{
		"an unknown node":       {To("nxt"), nil, `it goes to "nxt": there is no such node: did you mean "next"?`},
		"an unknown Send":       {Send("nobody", 1), nil, `it goes to "nobody": there is no such node: there is "n", "next"`},
		"the start":             {To(Start), nil, "the start of a graph is not a target"},
		"a Send to the end":     {Send(End, 1), nil, "a Send needs a node, not the end of the graph"},
		"an undeclared node":    {To("n"), []string{"next"}, `it goes to "n": the conditional edge declares only "next"`},
		"an undeclared end":     {To(End), []string{"next"}, `it goes to "__end__": the conditional edge declares only "next"`},
		"an undeclared Send":    {SendEach("n", []int{1}), []string{"next"}, "declares only"},
		"a negative timeout":    {SendWithin(-1, 0, "next", 1), nil, `the timeouts of the Send to "next" must not be negative`},
		"bounds for a subgraph": {SendWithin(1, 0, "n", 1), nil, "a subgraph's node has no timeouts"},
		"an argument of no use": {Send("next", func() {}), nil, `the argument of the Send to "next" does not encode as JSON`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := testRouter()
			if test.declared != nil {
				r.declared = map[string]bool{}
				for _, d := range test.declared {
					r.declared[d] = true
				}
			}
			_, err := branchFunc(r, func(context.Context, allChannels) ([]Target, error) { return test.targets, nil })(t.Context(), nil)
			assert.ErrorContains(t, err, test.want)
			assert.True(t, graphadapter.IsPermanent(err))
		})
	}
}

func TestBranchesReadTheState(t *testing.T) {
	route := branchFunc(testRouter(), func(_ context.Context, s allChannels) ([]Target, error) {
		if s.Value.Get() > 100 {
			return To("next"), nil
		}
		return nil, nil
	})
	got, err := route(t.Context(), graphadapter.State{"value": pregel.Value("250")})
	require.NoError(t, err)
	assert.Equal(t, []pregel.Target{{Node: "next"}}, got)
	got, err = route(t.Context(), graphadapter.State{"value": pregel.Value("1")})
	require.NoError(t, err)
	assert.Empty(t, got)
	_, err = route(t.Context(), graphadapter.State{"value": pregel.Value(`"x"`)})
	assert.ErrorContains(t, err, `field "value"`)
}

func TestASendOfAStateSendsTheFieldsWithAValue(t *testing.T) {
	s, _ := bound(t, `{"value":4,"list":["a"]}`)
	s.List.Append("b")
	s.Any.Set("x")
	for name, arg := range map[string]any{"by value": s, "by address": &s} {
		t.Run(name, func(t *testing.T) {
			targets := Send("next", arg)
			assert.Equal(t, `next({"value":4,"list":["a","b"],"any":"x"})`, targets[0].String())
		})
	}
	assert.Equal(t, "next", To("next")[0].String())
	assert.Equal(t, "next(null)", Send("next", nil)[0].String())
}

type longest struct{}

func (longest) Name() string { return "test.longest/v1" }

func (longest) Reduce(current, update string) (string, error) {
	if update == "boom" {
		return "", assert.AnError
	}
	if len(update) > len(current) {
		return update, nil
	}
	return current, nil
}

// appendItems changes its argument's backing array where there is room, as a careless reducer would.
type appendItems struct{}

func (appendItems) Name() string { return "test.items/v1" }

func (appendItems) Reduce(current, update []string) ([]string, error) {
	return append(current, update...), nil
}

func TestReducersOfUsersRunInTheEngine(t *testing.T) {
	r := reducerOf[string, longest]{}
	assert.Equal(t, pregel.Value(`""`), r.Zero())
	out, err := r.Reduce(pregel.Value(`"ab"`), []pregel.Value{pregel.Value(`"a"`), pregel.Value(`"abc"`)})
	require.NoError(t, err)
	assert.Equal(t, `"abc"`, string(out))
	out, err = r.Reduce(nil, []pregel.Value{pregel.Value(`"a"`)})
	require.NoError(t, err)
	assert.Equal(t, `"a"`, string(out), "the first update of a channel without a value is taken as it is")
	_, err = r.Reduce(pregel.Value(`1`), nil)
	assert.ErrorContains(t, err, "cannot read the current value as string")
	_, err = r.Reduce(pregel.Value(`""`), []pregel.Value{pregel.Value(`1`)})
	assert.ErrorContains(t, err, "cannot read the update the number 1 as string")
	_, err = r.Reduce(pregel.Value(`""`), []pregel.Value{pregel.Value(`"boom"`)})
	assert.ErrorIs(t, err, assert.AnError)
}

func TestALocalReducerErrorIsReportedToTheTask(t *testing.T) {
	s, sc := bound(t, `{"longest":"abc"}`)
	s.Longest.Write("boom")
	assert.Empty(t, s.Longest.Get())
	assert.ErrorIs(t, sc.failure(), assert.AnError)
}

type keep[T any] struct{}

func (keep[T]) Name() string { return "test.keep/v1" }

func (keep[T]) Reduce(current, _ T) (T, error) { return current, nil }

func TestTypesWithAnObviousEmptyValueStartWithIt(t *testing.T) {
	tests := map[string]pregel.Reducer{
		`[]`:    reducerOf[[]int, keep[[]int]]{},
		`{}`:    reducerOf[map[string]int, keep[map[string]int]]{},
		`""`:    reducerOf[string, keep[string]]{},
		`0`:     reducerOf[float64, keep[float64]]{},
		`false`: reducerOf[bool, keep[bool]]{},
	}
	for want, r := range tests {
		assert.Equal(t, want, string(r.Zero()))
	}
	assert.Equal(t, `""`, string(reducerOf[[]byte, keep[[]byte]]{}.Zero()))
	assert.Nil(t, reducerOf[order, keep[order]]{}.Zero(), "a struct starts without a value")
	assert.Nil(t, reducerOf[*int, keep[*int]]{}.Zero())
	var unset Reduced[time.Time, keep[time.Time]]
	text, err := unset.MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, "null", string(text))
}
