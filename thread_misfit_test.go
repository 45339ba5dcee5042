package superstep_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// TestUpdatesThatDoNotFitAreRefused, with the field's name and before anything is stored: of a thread that does not exist,
// stands still, waits inside a subgraph or has finished, and on a branch from an earlier checkpoint.
func TestUpdatesThatDoNotFitAreRefused(t *testing.T) {
	sub := superstep.NewStateGraph[counter]("inside")
	sub.AddNode("x", appending("x"))
	sub.AddNode("y", asking("y"))
	sub.AddEdge(superstep.Start, "x")
	sub.AddEdge("x", "y")
	g := superstep.NewStateGraph[counter]("outside")
	g.AddNode("a", appending("a"))
	g.AddSubgraph("inner", sub.MustCompile())
	g.AddEdge(superstep.Start, "a")
	g.AddEdge("a", "inner")
	onRuntimes(t, g.MustCompile(superstep.WithInterruptBefore("inner")), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[counter]) {
		bad := map[string]string{
			`{"n":"seven"}`:                       `field "n": expected int64, found a string`,
			`{"n":7.5}`:                           `field "n"`,
			`{"log":"no list"}`:                   `field "log"`,
			`{"log":[1],"n":null}`:                `field "n"`,
			`{"log":{"__overwrite__":"no list"}}`: `field "log"`,
		}
		refused := func(opts ...superstep.UpdateOption) {
			t.Helper()
			for values, want := range bad {
				_, err := th.Update(t.Context(), json.RawMessage(values), opts...)
				require.ErrorIs(t, err, superstep.ErrBadInput, values)
				assert.ErrorContains(t, err, want, values)
			}
		}
		same := func(opts ...superstep.UpdateOption) {
			t.Helper()
			before := historyOf(t, th)
			refused(opts...)
			assert.Equal(t, before, historyOf(t, th), "nothing was stored")
		}
		refused(superstep.AsNode("a"))
		_, err := th.State(t.Context())
		require.ErrorIs(t, err, superstep.ErrNotFound)

		invoke(t, th, counter{})
		same(superstep.AsNode("a"))
		invoke(t, th, nil)
		same(superstep.InSubgraph("inner"), superstep.AsNode("x"))
		assert.Equal(t, []string{"x"}, logOf(t, th, superstep.InSubgraph("inner"))[1:])

		_, err = th.Update(t.Context(), json.RawMessage(`{"n":7,"log":{"__overwrite__":["new"]}}`), superstep.AsNode("inner"))
		require.NoError(t, err)
		assert.Equal(t, []string{"new"}, logOf(t, th))
		same(superstep.AsNode("inner"))
		same(superstep.AsNode("a"), superstep.AtCheckpoint(atStep(t, th, 1).Checkpoint))
	})
}
