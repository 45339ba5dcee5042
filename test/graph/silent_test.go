package graph_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// A run in which nobody writes anything shows what the thread has, whether it waits, stops or finishes.
func TestARunThatWritesNothingShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	wait := func(name string, node func(context.Context, rig.Counter) (rig.Counter, error), options ...superstep.CompileOption) *superstep.Graph[rig.Counter] {
		b := superstep.NewStateGraph[rig.Counter](name)
		b.AddNode("node", node)
		b.AddEdge(superstep.Start, "node")
		return b.MustCompile(options...)
	}
	silent := func(context.Context, rig.Counter) (rig.Counter, error) { return rig.Counter{}, nil }
	graphs := map[thread.Status]*superstep.Graph[rig.Counter]{
		thread.StatusWaiting: wait("silent-asks", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
			_, err := superstep.Interrupt[bool](ctx, "go on?")
			return rig.Counter{}, err
		}),
		thread.StatusStopped:  wait("silent-stops", silent, superstep.WithInterruptBefore("node")),
		thread.StatusFinished: wait("silent", silent),
	}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for status, g := range graphs {
			t.Run(string(status), func(t *testing.T) {
				th := g.Thread(rt, graphtest.ThreadID(t))
				got, err := th.Invoke(t.Context(), rig.Wrote("first"))
				require.NoError(t, err)
				require.Equal(t, []string{"first"}, got.Output.Log.Get())
				got, err = th.Invoke(t.Context(), rig.Counter{})
				require.NoError(t, err)
				assert.Equal(t, status, got.Status)
				assert.Equal(t, []string{"first"}, got.Output.Log.Get())
			})
		}
	}, graphs[thread.StatusWaiting], graphs[thread.StatusStopped], graphs[thread.StatusFinished])
}
