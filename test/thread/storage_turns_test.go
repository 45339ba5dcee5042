package thread_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/test/rig"
)

// TestARunForEachTurnStoresNoMoreAsItGrows: of a conversation that has a run for each turn, a turn takes as much of histories and storage
// when the conversation is long as when it is short, not a state for each.
func TestARunForEachTurnStoresNoMoreAsItGrows(t *testing.T) {
	if testing.Short() {
		t.Skip("it has 120 turns")
	}
	const turns, each = 40, 10 << 10
	s := newShared(t, rig.NewServer(t))
	b := superstep.NewStateGraph[rig.Counter]("said")
	b.AddNode("hear", func(_ context.Context, s rig.Counter) (rig.Counter, error) { return s, nil })
	b.AddEdge(superstep.Start, "hear")
	g := b.MustCompile(superstep.WithDurability(superstep.DurabilityExit))
	s.work(g)
	th := g.Thread(s.Client, s.Queue)
	var took []int64
	before := int64(0)
	for part := range 3 {
		for turn := range turns {
			var in rig.Counter
			in.Log.Append(said(each, uint64(part*turns+turn)))
			_, err := th.Invoke(t.Context(), in, superstep.WithKeepOpen(-time.Second))
			require.NoError(t, err)
		}
		_, stored := s.objects()
		took, before = append(took, stored-before), stored
	}
	state, err := th.State(t.Context())
	require.NoError(t, err)
	require.Len(t, state.State.Log.Get(), 3*turns)
	t.Logf("%d turns of %d bytes each took %v bytes, the last run %d bytes of history", turns, each, took, historyBytes(s.Server, th.ID()))
	assert.Less(t, took[2], took[1]*8/5)
	assert.Less(t, took[2], int64(turns*150<<10), "the state has 1.2 MB by then")
	assert.Less(t, historyBytes(s.Server, th.ID()), int64(20<<10))
}
