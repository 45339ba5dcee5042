package superstep_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

func TestTheMostTasksAtOnceAreBounded(t *testing.T) {
	var now, most atomic.Int64
	g := superstep.NewStateGraph[counter]("g")
	superstep.AddInputNode(g, "each", func(_ context.Context, i int) (superstep.Command[counter], error) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		var update counter
		update.Log.Append(fmt.Sprint(i))
		return superstep.Command[counter]{Update: update}, nil
	})
	g.AddConditionalEdges(superstep.Start, func(context.Context, counter) ([]superstep.Target, error) {
		return superstep.SendEach("each", []int{1, 2, 3, 4, 5, 6, 7, 8}), nil
	})
	got, err := g.MustCompile().Invoke(t.Context(), counter{}, superstep.WithMaxConcurrency(1))
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "2", "3", "4", "5", "6", "7", "8"}, got.Output.Log.Get())
	assert.Equal(t, int64(1), most.Load())
}

// What had finished when a superstep ran out of time does not run again.
func TestASuperstepOutOfTimeIsContinued(t *testing.T) {
	var quick, slow atomic.Int64
	g := superstep.NewStateGraph[counter]("g")
	g.AddNode("quick", func(_ context.Context, s counter) (counter, error) {
		quick.Add(1)
		s.Log.Append("quick")
		return s, nil
	})
	g.AddNode("slow", func(ctx context.Context, s counter) (counter, error) {
		if slow.Add(1) == 1 {
			<-ctx.Done()
			return s, context.Cause(ctx)
		}
		s.Log.Append("slow")
		return s, nil
	})
	g.AddEdge(superstep.Start, "quick")
	g.AddEdge(superstep.Start, "slow")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), counter{}, superstep.WithStepTimeout(50*time.Millisecond))
	var failed *superstep.RunError
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, failed.Message, `superstep 1 of graph "g" ran longer than 50ms (the run's step timeout)`)
	got, err := th.Invoke(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"quick", "slow"}, got.Output.Log.Get())
	assert.Equal(t, int64(1), quick.Load())
	assert.Equal(t, int64(2), slow.Load())
}
