package thread_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// TestValuesInMemoryAreNoWarning: what a process remembers of a storage is read without an operation on it.
func TestValuesInMemoryAreNoWarning(t *testing.T) {
	t.Parallel()
	s := withOptions(t, rig.NewServer(t), t.TempDir(), storage.Options{})
	b := superstep.NewStateGraph[rig.Counter]("wide")
	for _, name := range []string{"a", "b", "c"} {
		b.AddNode(name, func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
			text, err := superstep.Task(ctx, "say", func(context.Context) (string, error) { return said(60_000, 1), nil })
			s.Log.Append(text)
			return s, err
		})
		b.AddEdge(superstep.Start, name)
	}
	g := b.MustCompile()
	core, warned := observer.New(zap.WarnLevel)
	defer s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Storage: s.storage, Logger: zap.New(core)})()
	got, err := g.Thread(s.Client, s.Queue).Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	require.Empty(t, warned.All())
}
