package graphtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

func paid(context.Context, string, Refund) (string, error) { return "rf-1", nil }

func TestAnswersGoInOrderWhateverNamesTheQuestion(t *testing.T) {
	ctx := graphtest.Context(t, graphtest.Answer("first"), graphtest.Answer(2), graphtest.Answer([]string{"third"}))
	first, err := superstep.Interrupt[string](ctx, "1?", superstep.WithKey("business-key"))
	require.NoError(t, err)
	second, err := superstep.Task(ctx, "inner", func(ctx context.Context) (int, error) {
		return superstep.Interrupt[int](ctx, "2?")
	})
	require.NoError(t, err)
	third, err := superstep.Interrupt[[]string](ctx, "3?")
	require.NoError(t, err)
	require.Equal(t, []any{"first", 2, []string{"third"}}, []any{first, second, third})

	_, err = superstep.Interrupt[string](ctx, "4?")
	require.ErrorIs(t, err, superstep.ErrInterrupted)
	asked := graphtest.Asked(ctx)
	require.Len(t, asked, 4)
	require.JSONEq(t, `"4?"`, string(asked[3].Value))
	require.NotEqual(t, asked[0].ID, asked[2].ID)
}

func TestAnswersStayGivenWhenTheNodeRunsAgain(t *testing.T) {
	ctx := graphtest.Context(t, graphtest.Answer(1), graphtest.Answer(2))
	for range 3 {
		one, err := superstep.Interrupt[int](ctx, "one?")
		require.NoError(t, err)
		two, err := superstep.Interrupt[int](ctx, "two?")
		require.NoError(t, err)
		require.Equal(t, []int{1, 2}, []int{one, two})
		ctx = graphtest.Again(ctx)
	}
}

func TestTasksAreRememberedAndAttemptsCounted(t *testing.T) {
	ctx := graphtest.Context(t, graphtest.Info(superstep.TaskInfo{Graph: "refund", Node: "pay", Thread: "r-7", Step: 3}))
	require.Equal(t, superstep.TaskInfo{Graph: "refund", Node: "pay", Thread: "r-7", Step: 3, Attempt: 1, StepsLeft: 10_007,
		Path: "pay"}, superstep.Info(ctx))
	calls := 0
	call := func(context.Context) (int, error) {
		calls++
		return calls, nil
	}
	for attempt := 1; attempt <= 3; attempt++ {
		require.Equal(t, attempt, superstep.Info(ctx).Attempt)
		got, err := superstep.Task(ctx, "dice", call)
		require.NoError(t, err)
		require.Equal(t, 1, got)
		ctx = graphtest.Again(ctx)
	}
}

func TestEmittedBelongsToItsAttempt(t *testing.T) {
	first := graphtest.Context(t)
	require.NoError(t, superstep.Emit(first, "a"))
	require.NoError(t, superstep.Emit(first, 2))
	second := graphtest.Again(first)
	require.NoError(t, superstep.Emit(second, "b"))
	require.Error(t, superstep.Emit(first, "too late"))
	require.Equal(t, []json.RawMessage{json.RawMessage(`"a"`), json.RawMessage(`2`)}, graphtest.Emitted(first))
	require.Equal(t, []json.RawMessage{json.RawMessage(`"b"`)}, graphtest.Emitted(second))
}

func TestACrashedAttemptHasNoEffectAnyMore(t *testing.T) {
	sent := 0
	do := func(context.Context, string, Refund) (string, error) {
		sent++
		return "rf-1", nil
	}
	// The crash is named before the stub: the order of options does not matter.
	first := graphtest.Context(t, graphtest.CrashAfterSend(refund), graphtest.Stub(refund, do), graphtest.Answer(true))
	_, err := pay(first, order())
	require.ErrorIs(t, err, graphtest.ErrCrashed)
	require.ErrorIs(t, context.Cause(first), graphtest.ErrCrashed)

	// A node that swallows the error goes on as a worker that lost its task does.
	_, err = pay(first, order())
	require.Error(t, err)
	_, err = superstep.Interrupt[bool](first, "still there?")
	require.ErrorIs(t, err, graphtest.ErrCrashed)
	_ = superstep.Emit(first, "still there")
	require.Empty(t, graphtest.Emitted(first))
	require.Empty(t, graphtest.Asked(first))
	require.Len(t, graphtest.Calls(first, refund), 1)

	second := graphtest.Again(first)
	require.Equal(t, 1, superstep.Info(second).Attempt, "a lost worker is no attempt of the node's")
	s, err := pay(second, order())
	require.NoError(t, err)
	require.Equal(t, "rf-1", s.Receipt.Get())
	require.Equal(t, []graphtest.Call[Refund]{{Op: graphtest.OpLookup, Key: graphtest.Calls(first, refund)[0].Key,
		Params: Refund{"o-7", 250}}}, graphtest.Calls(second, refund))

	// And once more: the receipt is on record.
	third := graphtest.Again(second)
	_, err = pay(third, order())
	require.NoError(t, err)
	require.Empty(t, graphtest.Calls(third, refund))
	require.Equal(t, 1, sent)
}

func TestAWriteThatNeverArrivedIsSentAgain(t *testing.T) {
	var keys []string
	do := func(_ context.Context, key string, _ Refund) (string, error) {
		if keys = append(keys, key); len(keys) == 1 {
			return "", errors.New("connection lost before the bank had it")
		}
		return "rf-2", nil
	}
	first := graphtest.Context(t, graphtest.Stub(refund, do), graphtest.CrashAfterSend(refund))
	_, err := pay(first, order())
	require.ErrorIs(t, err, graphtest.ErrCrashed)
	second := graphtest.Again(first)
	_, err = pay(second, order())
	require.NoError(t, err)
	require.Len(t, keys, 2)
	require.Equal(t, keys[0], keys[1])
	ops := graphtest.Calls(second, refund)
	require.Equal(t, []graphtest.Op{graphtest.OpLookup, graphtest.OpDo}, []graphtest.Op{ops[0].Op, ops[1].Op})
}

// A target that cannot be asked stays one when it is stubbed: after the crash a person is asked.
func TestAnEffectWithoutLookupAsksAPerson(t *testing.T) {
	blind := &superstep.Effect[Refund, string]{Name: "letters.send", Target: superstep.TargetNone, Do: paid}
	send := func(ctx context.Context) (string, error) { return blind.Call(ctx, Refund{Order: "o-7"}) }
	first := graphtest.Context(t, graphtest.Stub(blind, paid), graphtest.CrashAfterSend(blind))
	_, err := send(first)
	require.ErrorIs(t, err, graphtest.ErrCrashed)
	second := graphtest.Again(first)
	_, err = send(second)
	require.ErrorIs(t, err, superstep.ErrInterrupted)
	require.Len(t, graphtest.Asked(second), 1)
}

func TestStubLookupTellsWhatItIsTold(t *testing.T) {
	lookup := func(context.Context, string, Refund) (superstep.Finding[string], error) {
		return superstep.Finding[string]{Status: superstep.FindingPartial, Note: "half of it"}, nil
	}
	first := graphtest.Context(t, graphtest.StubLookup(refund, paid, lookup), graphtest.CrashAfterSend(refund))
	_, err := pay(first, order())
	require.ErrorIs(t, err, graphtest.ErrCrashed)
	second := graphtest.Again(first)
	_, err = pay(second, order())
	require.ErrorIs(t, err, superstep.ErrInterrupted)
	require.Contains(t, string(graphtest.Asked(second)[0].Value), "half of it")
}

func TestEffectsAreUsedAsTheyAre(t *testing.T) {
	real := &superstep.Effect[Refund, string]{Name: "real", Target: superstep.TargetKeyed, Do: paid}
	ctx := graphtest.Context(t, graphtest.Effects(real))
	receipt, err := real.Call(ctx, Refund{})
	require.NoError(t, err)
	require.Equal(t, "rf-1", receipt)
	_, err = refund.Call(ctx, Refund{})
	require.ErrorContains(t, err, "not registered")
}

func TestGoroutinesOfANode(t *testing.T) {
	ctx := graphtest.Context(t)
	var futures []*superstep.Future[int]
	for i := range 8 {
		futures = append(futures, superstep.Go(ctx, "part", func(context.Context) (int, error) { return i, nil }))
	}
	for i, f := range futures {
		got, err := f.Get(ctx)
		require.NoError(t, err)
		require.Equal(t, i, got)
	}
}

// refusing is a test that keeps what failed.
type refusing struct {
	testing.TB
	failed *string
}

func (r refusing) Helper() {}

func (r refusing) Fatalf(format string, args ...any) {
	*r.failed = fmt.Sprintf(format, args...)
	panic(r)
}

func TestWrongOptionsFailTheTest(t *testing.T) {
	for name, c := range map[string]struct {
		option graphtest.Option
		says   string
	}{
		"answer":  {graphtest.Answer(make(chan int)), "the answer, a chan int, does not encode as JSON"},
		"effect":  {graphtest.Effects(&superstep.Effect[Refund, string]{Name: "x"}), `effect "x" has no Do`},
		"stub":    {graphtest.Stub[Refund, string](nil, paid), "needs an effect"},
		"crash":   {graphtest.CrashAfterSend[Refund, string](nil), "needs an effect"},
		"place":   {graphtest.Info(superstep.TaskInfo{Node: "a.b"}), "a.b"},
		"no stub": {graphtest.Stub(refund, nil), "a function to stand in"},
	} {
		t.Run(name, func(t *testing.T) {
			var failed string
			require.Panics(t, func() { graphtest.Context(refusing{t, &failed}, c.option) })
			require.Contains(t, failed, c.says)
		})
	}
	require.Panics(t, func() { graphtest.Again(t.Context()) })
	require.Panics(t, func() { graphtest.Asked(t.Context()) })
}

func TestANodeReadsTheRunsContext(t *testing.T) {
	ctx := graphtest.Context(t, graphtest.RunContext(map[string]string{"tenant": "ann"}))
	got, err := superstep.RunContext[map[string]string](ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"tenant": "ann"}, got)
	got, err = superstep.RunContext[map[string]string](graphtest.Again(ctx))
	require.NoError(t, err)
	require.Equal(t, "ann", got["tenant"])
	_, err = superstep.RunContext[string](graphtest.Context(t))
	require.ErrorContains(t, err, "the run was given none")
}
