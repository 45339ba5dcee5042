package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/thread"
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
	got, err := run(t.Context(), graphadapter.Input{State: graphadapter.State{"value": pregel.Hold(pregel.Value("4"))}})
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
		_, err := run(t.Context(), graphadapter.Input{State: graphadapter.State{"any": pregel.Hold(pregel.Value(`"x"`))}, Arg: pregel.Value(`{"value":9}`)})
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
	_, err := run(t.Context(), graphadapter.Input{State: graphadapter.State{"value": pregel.Hold(pregel.Value(`"x"`))}})
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
	got, err := route(t.Context(), graphadapter.State{"value": pregel.Hold(pregel.Value("250"))})
	require.NoError(t, err)
	assert.Equal(t, []pregel.Target{{Node: "next"}}, got)
	got, err = route(t.Context(), graphadapter.State{"value": pregel.Hold(pregel.Value("1"))})
	require.NoError(t, err)
	assert.Empty(t, got)
	_, err = route(t.Context(), graphadapter.State{"value": pregel.Hold(pregel.Value(`"x"`))})
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

type decision struct {
	Approved bool   `json:"approved"`
	Limit    int64  `json:"limit,omitempty"`
	Note     string `json:"note,omitempty"`
}

// asking is a graph whose node asks for an A and logs it.
func asking[A any](t *testing.T, opts ...CallOption) *Thread[refundState] {
	t.Helper()
	return oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		a, err := Interrupt[A](ctx, map[string]any{"ask": "Refund?", "amount": s.Amount.Get()}, opts...)
		if err != nil {
			return s, err
		}
		s.Log.Append(fmt.Sprintf("%+v", a))
		return s, nil
	}).Thread(NewMemory(), "t")
}

// TestInterruptAsksAndIsAnswered: a question carries the schema of its answer's type. A wrong answer is refused, and the
// question stays open under its id: the run does not fail, as LangGraph's does.
func TestInterruptAsksAndIsAnswered(t *testing.T) {
	th := asking[decision](t)
	got, err := th.Invoke(t.Context(), amount(250))
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	q := got.Questions[0]
	assert.JSONEq(t, `{"ask":"Refund?","amount":250}`, string(q.Value))
	assert.JSONEq(t, `{"type":"object","required":["approved"],"additionalProperties":false,"properties":{
		"approved":{"type":"boolean"},"limit":{"type":"integer"},"note":{"type":"string"}}}`, string(q.Schema))
	for _, bad := range []any{true, map[string]any{}, map[string]any{"approved": true, "typo": 1}, decision{}.Note} {
		_, err = th.Resume(t.Context(), bad)
		assert.ErrorIs(t, err, thread.ErrBadInput, "%v", bad)
	}
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusWaiting, state.Status)
	require.Len(t, state.Questions, 1)
	assert.Equal(t, q, state.Questions[0])
	got, err = th.Resume(t.Context(), decision{Approved: true, Limit: 9007199254740993})
	require.NoError(t, err)
	assert.Equal(t, []string{"{Approved:true Limit:9007199254740993 Note:}"}, got.Output.Log.Get())
}

func TestInterruptWithASchemaOfItsOwn(t *testing.T) {
	th := asking[string](t, WithAnswerSchema(`{"enum":["approve","reject"]}`), WithKey("decide"))
	_, err := th.Invoke(t.Context(), amount(250))
	require.NoError(t, err)
	_, err = th.Resume(t.Context(), "maybe")
	require.ErrorIs(t, err, thread.ErrBadInput)
	got, err := th.Resume(t.Context(), "reject")
	require.NoError(t, err)
	assert.Equal(t, []string{"reject"}, got.Output.Log.Get())
}

func TestInterruptKeepsIntegersInAny(t *testing.T) {
	thread := asking[any](t)
	_, err := thread.Invoke(t.Context(), amount(250))
	require.NoError(t, err)
	got, err := thread.Resume(t.Context(), map[string]any{"n": int64(9007199254740993)})
	require.NoError(t, err)
	assert.Equal(t, []string{"map[n:9007199254740993]"}, got.Output.Log.Get())
}

func TestTwoQuestionsInOneNode(t *testing.T) {
	graph := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		ask := func(name string) func(context.Context) (string, error) {
			return func(ctx context.Context) (string, error) { return Interrupt[string](ctx, name) }
		}
		a, b := Go(ctx, "ask", ask("first")), Go(ctx, "ask", ask("second"))
		first, errA := a.Get(ctx)
		second, errB := b.Get(ctx)
		if errA != nil || errB != nil {
			return s, ErrInterrupted
		}
		s.Log.Append(first, second)
		return s, nil
	})
	thread := graph.Thread(NewMemory(), "t")
	got, err := thread.Invoke(t.Context(), amount(1))
	require.NoError(t, err)
	require.Len(t, got.Questions, 2)
	answers := map[string]any{}
	for _, q := range got.Questions {
		var name string
		require.NoError(t, json.Unmarshal(q.Value, &name))
		answers[q.ID] = "answer to " + name
	}
	got, err = thread.ResumeByID(t.Context(), answers)
	require.NoError(t, err)
	assert.Equal(t, []string{"answer to first", "answer to second"}, got.Output.Log.Get())
}

func TestInterruptMistakes(t *testing.T) {
	_, err := Interrupt[bool](t.Context(), "?")
	assert.ErrorIs(t, err, ErrOutsideNode)
	for name, c := range map[string]struct {
		ask  func(context.Context) error
		want string
	}{
		"question": {func(ctx context.Context) error { _, err := Interrupt[bool](ctx, func() {}); return err }, "does not encode"},
		"type":     {func(ctx context.Context) error { _, err := Interrupt[chan int](ctx, 1); return err }, "WithAnswerSchema"},
		"schema":   {func(ctx context.Context) error { _, err := Interrupt[int](ctx, 1, WithAnswerSchema("{")); return err }, "no usable JSON schema"},
		"key":      {func(ctx context.Context) error { _, err := Interrupt[int](ctx, 1, WithKey("")); return err }, "WithKey needs a key"},
	} {
		var got error
		_, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
			got = c.ask(ctx)
			return s, nil
		}).Invoke(t.Context(), amount(1))
		require.NoError(t, err, name)
		assert.ErrorContains(t, got, c.want)
		assert.True(t, graphadapter.IsPermanent(got), name)
	}
}

// TestAnswerThatGotInOtherwise: the engine was given an answer that nobody checked.
func TestAnswerThatGotInOtherwise(t *testing.T) {
	graph := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		_, err := Interrupt[int8](ctx, "how many?", WithAnswerSchema(`{"type":"integer"}`))
		return s, err
	}).Adapter()
	task := &pregel.Task{Step: 1, Path: "pay", Node: "pay"}
	out, err := taskrun.RunAttempt(t.Context(), graph, task, taskrun.Env{Thread: "r-7"})
	require.NoError(t, err)
	for answer, want := range map[string]string{`300`: "int8"} {
		task.Answers = []pregel.Answer{{QuestionID: out.Questions[0].ID, Value: pregel.Value(answer)}}
		_, err = taskrun.RunAttempt(t.Context(), graph, task, taskrun.Env{Thread: "r-7"})
		var wrong *AnswerError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, want, wrong.Want)
		assert.Equal(t, out.Questions[0].ID, wrong.Question)
		assert.True(t, graphadapter.IsPermanent(err))
		assert.ErrorContains(t, err, `"r-7"`)
	}
}

type celsius struct{ milli int64 } // decodes itself from a string

func (c *celsius) UnmarshalText(b []byte) error { _, err := fmt.Sscan(string(b), &c.milli); return err }

type either struct{ v any } // decodes itself from anything

func (e *either) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &e.v) }

type tree struct{ Children []tree }

func TestAnswerSchemaAcceptsWhatDecodes(t *testing.T) {
	type all struct {
		At      time.Time          `json:"at"`
		Raw     json.RawMessage    `json:"raw"`
		Number  json.Number        `json:"number"`
		Bytes   []byte             `json:"bytes"`
		Temp    celsius            `json:"temp"`
		TempPtr *celsius           `json:"temp_ptr"`
		Either  either             `json:"either"`
		Big     *big.Int           `json:"big"`
		List    []celsius          `json:"list"`
		Map     map[string]either  `json:"map"`
		Channel Value[int64]       `json:"channel"`
		Wait    time.Duration      `json:"wait"`
		Fixed   [2]int             `json:"fixed"`
		Skipped func()             `json:"-"`
		Text    map[string]float64 `json:"text"`
	}
	answer := `{"at":"2026-05-09T10:00:00Z","raw":[1,{}],"number":1.5,"bytes":"aGk=","temp":"12","temp_ptr":null,
		"either":[],"big":123456789012345678901234567890,"list":["1","2"],"map":{"a":1,"b":"x"},"channel":7,"wait":5,
		"fixed":[1,2],"text":{"x":1.25}}`
	var v all
	require.NoError(t, jsonfit.Decode([]byte(answer), &v))
	schema, err := jsonfit.Schema(reflect.TypeFor[all]())
	require.NoError(t, err)
	assert.NoError(t, graphadapter.CheckAnswer(pregel.Question{Schema: schema}, pregel.Value(answer)))
	for _, bad := range []string{`{"temp":12}`, `{"number":"1"}`, `{"bytes":[1]}`, `{"fixed":[1]}`} {
		assert.Error(t, graphadapter.CheckAnswer(pregel.Question{Schema: schema}, pregel.Value(bad)), bad)
	}
	again, err := jsonfit.Schema(reflect.TypeFor[all]())
	require.NoError(t, err)
	assert.Same(t, &schema[0], &again[0], "worked out once")
	_, err = jsonfit.Schema(reflect.TypeFor[tree]())
	assert.ErrorContains(t, err, "WithAnswerSchema")
	var parsed jsonschema.Schema
	assert.NoError(t, json.Unmarshal(schema, &parsed))
}

type priced struct {
	Price int64 `json:"price"`
}

func TestTaskIsRememberedAcrossAnAnswer(t *testing.T) {
	var calls atomic.Int32
	graph := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		q, err := Task(ctx, "price", func(context.Context) (priced, error) {
			calls.Add(1)
			return priced{math.MaxInt64}, nil
		})
		if err != nil {
			return s, err
		}
		sure, err := Interrupt[bool](ctx, fmt.Sprintf("Pay %d?", q.Price))
		if err != nil {
			return s, err
		}
		s.Log.Append(fmt.Sprint(q.Price, sure))
		return s, nil
	})
	thread := graph.Thread(NewMemory(), "t")
	_, err := thread.Invoke(t.Context(), amount(1))
	require.NoError(t, err)
	got, err := thread.Resume(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, []string{"9223372036854775807 true"}, got.Output.Log.Get())
	assert.EqualValues(t, 1, calls.Load())
}

func TestTaskErrorIsNotRemembered(t *testing.T) {
	calls := 0
	got, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		v, err := Task(ctx, "flaky", func(context.Context) (string, error) {
			if calls++; calls == 1 {
				return "", errors.New("try again")
			}
			return "ok", nil
		})
		s.Log.Append(v)
		return s, err
	}).Invoke(t.Context(), amount(1))
	require.NoError(t, err)
	assert.Equal(t, []string{"ok"}, got.Output.Log.Get())
}

func TestTasksInParallel(t *testing.T) {
	got, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		var futures []*Future[int]
		for i := range 20 {
			futures = append(futures, Go(ctx, "square", func(context.Context) (int, error) { return i * i, nil }))
		}
		for _, f := range futures {
			v, err := f.Get(ctx)
			if err != nil {
				return s, err
			}
			s.Amount.Set(s.Amount.Get() + int64(v))
		}
		return s, nil
	}).Invoke(t.Context(), amount(0))
	require.NoError(t, err)
	assert.EqualValues(t, 2470, got.Output.Amount.Get())
}

func TestTaskSeesTheSameValueEachTime(t *testing.T) {
	type lossy struct {
		Kept, dropped int
	}
	var first lossy
	_, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		var err error
		first, err = Task(ctx, "x", func(context.Context) (lossy, error) { return lossy{1, 2}, nil })
		return s, err
	}).Invoke(t.Context(), amount(1))
	require.NoError(t, err)
	assert.Equal(t, lossy{Kept: 1}, first, "as it will be when the node runs again")
}

func TestTaskMistakes(t *testing.T) {
	_, err := Task(t.Context(), "x", func(context.Context) (int, error) { return 1, nil })
	assert.ErrorIs(t, err, ErrOutsideNode)
	_, err = Go(t.Context(), "x", func(context.Context) (int, error) { return 1, nil }).Get(t.Context())
	assert.ErrorIs(t, err, ErrOutsideNode)

	node := func(call func(ctx context.Context) error) error {
		var got error
		_, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
			got = call(ctx)
			return s, nil
		}).Invoke(t.Context(), amount(1))
		require.NoError(t, err)
		return got
	}
	err = node(func(ctx context.Context) error {
		_, err := Task(ctx, "x", func(context.Context) (int, error) { return 1, nil }, WithKey(""))
		return err
	})
	assert.ErrorContains(t, err, "WithKey needs a key")
	var record *RecordError
	err = node(func(ctx context.Context) error {
		_, err := Task(ctx, "x", func(context.Context) (func(), error) { return nil, nil })
		return err
	})
	require.ErrorAs(t, err, &record)
	assert.True(t, record.Write && record.Permanent())
	err = node(func(ctx context.Context) error {
		if _, err := Task(ctx, "x", func(context.Context) (string, error) { return "a", nil }, WithKey("k")); err != nil {
			return err
		}
		_, err := Task(ctx, "x", func(context.Context) (int, error) { return 1, nil }, WithKey("k"))
		return err
	})
	require.ErrorAs(t, err, &record)
	assert.False(t, record.Write)
	assert.ErrorContains(t, err, `task "x" of node "pay", graph "refund"`)
}

func TestInfo(t *testing.T) {
	assert.Zero(t, Info(t.Context()))
	Heartbeat(t.Context()) // does nothing
	assert.ErrorIs(t, Emit(t.Context(), 1), ErrOutsideNode)
	var got TaskInfo
	var attempts []int
	_, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		got = Info(ctx)
		Heartbeat(ctx)
		attempts = append(attempts, got.Attempt)
		if got.Attempt == 1 {
			return s, errors.New("once more")
		}
		if Emit(ctx, map[string]int{"percent": 50}) != nil || Emit(ctx, func() {}) == nil {
			return s, Permanent(errors.New("emit"))
		}
		return s, nil
	}).Thread(NewMemory(), "r-7").Invoke(t.Context(), amount(1), WithRecursionLimit(5))
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, attempts)
	assert.Equal(t, TaskInfo{Graph: "refund", Node: "pay", Thread: "r-7", Step: 1, Attempt: 2, StepsLeft: got.StepsLeft, Path: "pay"}, got)
	assert.Positive(t, got.StepsLeft)
}
