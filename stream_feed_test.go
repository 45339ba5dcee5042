package superstep_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// heldGraph has a node that waits for let.
func heldGraph(name string, let <-chan struct{}) *superstep.Graph[counter] {
	g := superstep.NewStateGraph[counter](name)
	g.AddNode("held", func(ctx context.Context, s counter) (counter, error) {
		select {
		case <-let:
		case <-ctx.Done():
		}
		s.Log.Append("held")
		return s, ctx.Err()
	})
	g.AddEdge(superstep.Start, "held")
	return g.MustCompile()
}

// TestReadersShareOneTail: of one run, however many they are; and nobody follows it when they are gone.
func TestReadersShareOneTail(t *testing.T) {
	const readers = 20
	let := make(chan struct{})
	g := heldGraph("shared_tail", let)
	rt := graphtest.Temporal(t, g)
	th := g.Thread(rt, graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), counter{}))
	var begun, done sync.WaitGroup
	begun.Add(readers)
	var parts [readers][]superstep.StreamPart
	for i := range readers {
		done.Go(func() {
			for p, err := range th.Stream(t.Context(), superstep.StreamTasks) {
				if assert.NoError(t, err) && len(parts[i]) == 0 {
					begun.Done()
				}
				parts[i] = append(parts[i], p)
			}
		})
	}
	begun.Wait()
	assert.Equal(t, 1, superstep.Followed(rt))
	close(let)
	done.Wait()
	for i := range readers {
		assert.Len(t, parts[i], 2)
		assert.Equal(t, parts[0], parts[i])
	}
	assert.Equal(t, 0, superstep.Followed(rt))
}

// TestReadersBeyondTheTails look once a second instead.
func TestReadersBeyondTheTails(t *testing.T) {
	let := make(chan struct{})
	g := heldGraph("beyond_tails", let)
	th := g.Thread(graphtest.Temporal(t, g), graphtest.ThreadID(t))
	defer superstep.OccupyTails()()
	require.NoError(t, th.Start(t.Context(), counter{}))
	var modes []string
	for p, err := range th.Stream(t.Context(), superstep.StreamTasks, superstep.StreamUpdates) {
		require.NoError(t, err)
		if len(modes) == 0 {
			close(let)
		}
		modes = append(modes, string(p.Mode))
	}
	assert.Equal(t, []string{"tasks", "updates", "tasks"}, modes)
}
