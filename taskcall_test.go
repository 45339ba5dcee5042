package superstep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
