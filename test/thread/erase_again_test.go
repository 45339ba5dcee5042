package thread_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestAThreadAfterAnErasurePaysUnderKeysOfItsOwn: the target still has the writes of the erased thread. With their keys it would answer
// a new payment with an old receipt. A later run of the same thread finds its own payment under the key of the whole thread.
func TestAThreadAfterAnErasurePaysUnderKeysOfItsOwn(t *testing.T) {
	t.Parallel()
	bank := rig.NewBank()
	each, once := bank.Effect("bank.each"), bank.Effect("bank.once")
	g := superstep.NewStateGraph[rig.Payment]("pays")
	g.AddEffect(each)
	g.AddEffect(once)
	g.AddNode("each", rig.Paying(each, "ann"))
	g.AddNode("once", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		_, err := once.Call(ctx, rig.Transfer{To: "bob", Amount: 1}, superstep.WithThreadKey("once"))
		return s, err
	})
	g.AddEdge(superstep.Start, "each")
	g.AddEdge("each", "once")
	graph := g.MustCompile()
	runs := func(rt superstep.Runtime, times int) {
		for range times {
			_, err := graph.Thread(rt, "mine").Invoke(t.Context(), rig.Payment{}, superstep.WithKeepOpen(-1))
			require.NoError(t, err)
		}
	}

	e := newErasing(t)
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{graph}})
	runs(e.Client, 2)
	assert.Equal(t, []string{"ann", "ann", "bob"}, bank.Paid())
	_, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
	require.NoError(t, err)
	runs(e.Client, 2)
	assert.Equal(t, []string{"ann", "ann", "ann", "ann", "bob", "bob"}, bank.Paid())

	runs(superstep.NewMemory(), 2)
	runs(superstep.NewMemory(), 1)
	assert.Equal(t, []string{"ann", "ann", "ann", "ann", "ann", "ann", "ann", "bob", "bob", "bob", "bob"}, bank.Paid())
}
