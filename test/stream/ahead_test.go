package stream_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
)

// TestFusedSuperstepsStreamAsTheyAreStored: what a segment under way has stored is streamed before it ends, and what the
// superstep behind that emits is live. The reader gets everything once, as who reads later does.
func TestFusedSuperstepsStreamAsTheyAreStored(t *testing.T) {
	for name, opts := range map[string][]superstep.CompileOption{
		"fused": {superstep.WithFused()},
		"async": {superstep.WithDurability(superstep.DurabilityAsync)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streamsAsStored(t, opts...)
		})
	}
}

// awaiting waits until something has happened.
func awaiting(ctx context.Context, happened <-chan struct{}) error {
	select {
	case <-happened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func streamsAsStored(t *testing.T, opts ...superstep.CompileOption) {
	there, seen := make(chan struct{}), make(chan struct{})
	says := func(words ...string) func(context.Context, rig.Counter) (rig.Counter, error) {
		return func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
			for _, w := range words {
				if err := superstep.Emit(ctx, w); err != nil {
					return s, err
				}
			}
			s.N.Set(s.N.Get() + 1)
			return s, nil
		}
	}
	g := superstep.NewStateGraph[rig.Counter]("ahead")
	g.AddNode("first", says("one"))
	g.AddNode("second", says("two"))
	g.AddNode("third", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		if err := awaiting(ctx, there); err != nil { // what is live is for those who listen
			return s, err
		}
		if err := superstep.Emit(ctx, "three"); err != nil {
			return s, err
		}
		if err := awaiting(ctx, seen); err != nil {
			return s, err
		}
		return says("four")(ctx, s)
	})
	g.AddNode("fourth", says())
	g.AddEdge(superstep.Start, "first")
	g.AddEdge("first", "second")
	g.AddEdge("second", "third")
	g.AddEdge("third", "fourth")
	graph := g.MustCompile(opts...)
	th := graph.Thread(liveRuntime(t, &live.Local{}, graph), graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	wanted := []superstep.StreamOption{thread.StreamValues, thread.StreamUpdates, thread.StreamCustom}
	var parts []thread.Part
	before := 0
	for p, err := range th.Stream(t.Context(), wanted...) {
		require.NoError(t, err)
		parts = append(parts, p)
		if len(parts) == 1 {
			close(there)
		}
		if strings.Contains(string(p.Data), "three") {
			before = len(parts)
			close(seen) // the third node has waited for its reader, and so has the end of the activity
		}
	}
	all := rig.StreamOf(t, th, wanted...)
	assert.Equal(t, rig.Lines(all), rig.Lines(parts))
	assert.Equal(t, all[len(all)-1].Offset, parts[len(parts)-1].Offset)
	for i, p := range parts {
		again := rig.StreamOf(t, th, append(wanted, superstep.StreamFrom(p.Offset))...)
		assert.Equal(t, rig.Lines(all[i+1:]), rig.Lines(again), "after part %d of %d, of which %d came before the history told them", i, len(parts), before)
	}
}
