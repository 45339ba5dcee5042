package superstep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
)

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

func (keep[T]) Name() string                   { return "test.keep/v1" }
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
