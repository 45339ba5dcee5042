package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/message"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

// shelf is a cache that tells what was asked of it.
type shelf struct {
	mu      sync.Mutex
	results map[string]json.RawMessage
	ttl     time.Duration
	broken  error
}

func (s *shelf) Get(_ context.Context, graph, node, input string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.results[graph+" "+node+" "+input], s.broken
}

func (s *shelf) Set(_ context.Context, graph, node, input string, result json.RawMessage, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[graph+" "+node+" "+input], s.ttl = result, ttl
	return s.broken
}

func (s *shelf) Clear(_ context.Context, graph, node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.results {
		if prefix := graph + " " + node; len(key) > len(prefix) && key[:len(prefix)] == prefix {
			delete(s.results, key)
		}
	}
	return s.broken
}

// squares is a graph whose node counts its runs.
func squares(runs *int) *superstep.StateGraph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter]("squares")
	g.AddCommandNode("square", func(_ context.Context, s rig.Counter) (superstep.Command[rig.Counter], error) {
		*runs++
		s.Log.Append(fmt.Sprint(s.N.Get() * s.N.Get()))
		return superstep.Command[rig.Counter]{Update: s, Goto: superstep.To("done")}, nil
	}, superstep.WithCache(superstep.CachePolicy{TTL: time.Hour, Key: superstep.CacheBy(byN)}))
	g.AddNode("done", rig.Appending("done"))
	g.AddEdge(superstep.Start, "square")
	return g
}

func TestACachedNodeIsNotRunAgainForAnEqualInput(t *testing.T) {
	for name, cache := range map[string]*shelf{"this process's own": nil, "a given one": {results: map[string]json.RawMessage{}}} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			var options []superstep.CompileOption
			if cache != nil {
				options = append(options, superstep.WithCacheBackend(cache))
			}
			g := squares(&runs).MustCompile(options...)
			square := func(n int, want ...string) {
				t.Helper()
				got, err := g.Invoke(t.Context(), map[string]any{"n": n})
				require.NoError(t, err)
				assert.Equal(t, want, got.Output.Log.Get(), "the way on is part of the result")
			}
			square(3, "9", "done")
			square(3, "9", "done")
			assert.Equal(t, 1, runs)
			square(4, "16", "done")
			assert.Equal(t, 2, runs)
			require.NoError(t, g.ClearCache(t.Context(), "done"))
			square(4, "16", "done")
			assert.Equal(t, 2, runs)
			require.NoError(t, g.ClearCache(t.Context(), "square"))
			square(3, "9", "done")
			require.NoError(t, g.ClearCache(t.Context()))
			square(3, "9", "done")
			assert.Equal(t, 4, runs)
			if cache != nil {
				assert.Equal(t, time.Hour, cache.ttl)
			}
			err := g.ClearCache(t.Context(), "sqare")
			assert.ErrorIs(t, err, thread.ErrBadInput)
			assert.ErrorContains(t, err, `graph "squares" has no such node: did you mean "square"?`)
		})
	}
}

func TestABrokenCacheCostsARunOfTheNode(t *testing.T) {
	runs := 0
	cache := &shelf{results: map[string]json.RawMessage{}, broken: errors.New("no connection")}
	g := squares(&runs).MustCompile(superstep.WithCacheBackend(cache))
	for range 2 {
		got, err := g.Invoke(t.Context(), map[string]any{"n": 3})
		require.NoError(t, err)
		assert.Equal(t, []string{"9", "done"}, got.Output.Log.Get())
	}
	assert.Equal(t, 2, runs)
	assert.ErrorContains(t, g.ClearCache(t.Context()), "no connection")
}

// A message that comes out of a cache is another message: it must not replace the one that was cached.
func TestCachedMessagesHaveIDsOfTheirOwn(t *testing.T) {
	runs := 0
	g := superstep.NewStateGraph[talk]("talk")
	superstep.AddInputNode(g, "tool", func(_ context.Context, call string) (superstep.Command[talk], error) {
		runs++
		var update talk
		update.Messages.Append(message.Message{Role: message.RoleTool, Content: message.Text("42")},
			message.Message{ID: "fixed", Role: message.RoleTool, Content: message.Text(call)})
		return superstep.Command[talk]{Update: update}, nil
	}, superstep.WithCache(superstep.CachePolicy{}))
	g.AddConditionalEdges(superstep.Start, func(context.Context, talk) ([]superstep.Target, error) {
		return superstep.Send("tool", "answer"), nil
	})
	compiled := g.MustCompile()
	th := compiled.Thread(superstep.NewMemory(), "t")
	for range 2 {
		_, err := th.Invoke(t.Context(), map[string]any{"turns": 1})
		require.NoError(t, err)
	}
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, runs, "the second came from the cache")
	messages := state.State.Messages.Get()
	require.Len(t, messages, 3, "two answers, and the one whose id is fixed")
	assert.NotEqual(t, messages[0].ID, messages[2].ID)
	assert.Equal(t, "fixed", messages[1].ID)
	assert.Equal(t, "42", messages[2].Content.String())
}
