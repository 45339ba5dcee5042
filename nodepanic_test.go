package superstep_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
)

// breakDown panics in the way of that name.
func breakDown(how string) {
	switch how {
	case "value":
		panic("no paper")
	case "error":
		panic(errors.New("no ink"))
	case "nil":
		var s *struct{ count int }
		s.count++
	case "index":
		var none []int
		_ = none[len(how)]
	case "library":
		_ = strings.Repeat("x", -len(how))
	}
}

// TestPanicsSayWhere: the error of a node that panicked names the function, its file and the line, and no directory of the
// machine, on every runtime.
func TestPanicsSayWhere(t *testing.T) {
	b := superstep.NewStateGraph[counter]("panics")
	b.AddNode("break", func(_ context.Context, s counter) (counter, error) {
		breakDown(s.Log.Get()[0])
		return s, nil
	})
	b.AddEdge(superstep.Start, "break")
	onRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, _ *superstep.Thread[counter]) {
		g := b.MustCompile()
		for how, what := range map[string]string{"value": "no paper", "error": "no ink", "nil": "nil pointer dereference",
			"index": "index out of range", "library": "negative Repeat count"} {
			_, err := g.Thread(rt, strings.ReplaceAll(t.Name(), "/", "-")+"-"+how).Invoke(t.Context(), map[string]any{"log": []string{how}})
			require.ErrorContains(t, err, what)
			assert.Regexp(t, `, in superstep\.dev_test\.breakDown \(nodepanic_test\.go:[0-9]+\)`, err.Error(), how)
			assert.NotContains(t, err.Error(), "/", how)
		}
	})
}

// TestConflictsNameTheNodes: the error of writes that a field cannot take together names who wrote them.
func TestConflictsNameTheNodes(t *testing.T) {
	type state struct {
		Winner superstep.Value[string] `json:"winner"`
		Log    superstep.List[string]  `json:"log"`
	}
	b := superstep.NewStateGraph[state]("race")
	for _, node := range []string{"red", "blue", "green"} {
		b.AddNode(node, func(_ context.Context, s state) (state, error) {
			if s.Log.Append(node); node != "green" {
				s.Winner.Set(node)
			}
			return s, nil
		})
		b.AddEdge(superstep.Start, node)
	}
	onRuntimes(t, b.MustCompile(), func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[state]) {
		_, err := th.Invoke(t.Context(), state{})
		require.ErrorContains(t, err, `INVALID_CONCURRENT_GRAPH_UPDATE: channel "winner" of graph "race": written by blue, red: `)
		var conflict *pregel.InvalidUpdateError
		if errors.As(err, &conflict) {
			assert.Equal(t, []string{"blue", "red"}, conflict.Nodes)
		}
	})
}
