// Package storetest proves a backend of a store: each behaviour that package store promises is a test.
//
//	func TestMine(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Opener {
//			place := newDatabase(t) // an empty one
//			return func(t *testing.T, opts store.Options) *store.Store { ... open it ... }
//		})
//	}
package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/store"
)

// Opener opens one database, the same each time, and closes it with the test.
type Opener func(t *testing.T, opts store.Options) *store.Store

// Run runs all tests, each on a database of its own, which fresh makes.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Opener)
	}{
		{"put get delete", putGetDelete}, {"values stay as they are", values}, {"names", names}, {"refused", refused},
		{"filters", filters}, {"prefixes and pages", pages}, {"pages have bounds", largePages}, {"namespaces", namespaces},
		{"time to live", timeToLive}, {"time to live on search", timeToLiveOnSearch}, {"sweep", sweep},
		{"a write with an id", writeOnce}, {"an id is forgotten", forgotten}, {"undo", undo}, {"undo what was replaced", undoReplaced},
		{"writers at once", writersAtOnce}, {"one id at once", oneIDAtOnce}, {"readers see whole items", wholeItems},
		{"meaning", meaning}, {"paths", paths}, {"vectors of other lengths", otherLengths}, {"embedder fails", embedderFails},
		{"a cancelled call", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, fresh(t)) })
	}
}

// clock is a clock that stands until it is told to go on.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) goOn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// put stores a value at a namespace written with periods.
func put(t *testing.T, s *store.Store, namespace, key string, value any, opts ...store.PutOption) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), store.ParseNamespace(namespace), key, value, opts...))
}

func get(t *testing.T, s *store.Store, namespace, key string) store.Item {
	t.Helper()
	item, err := s.Get(t.Context(), store.ParseNamespace(namespace), key)
	require.NoError(t, err)
	return item
}

// gone reports that there is no such item.
func gone(t *testing.T, s *store.Store, namespace, key string) {
	t.Helper()
	_, err := s.Get(t.Context(), store.ParseNamespace(namespace), key)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// found are the keys that a search finds, in their order.
func found(t *testing.T, s *store.Store, prefix string, q store.Query) []string {
	t.Helper()
	hits, err := s.Search(t.Context(), store.ParseNamespace(prefix), q)
	require.NoError(t, err)
	keys := []string{}
	for _, h := range hits {
		keys = append(keys, h.Key)
	}
	return keys
}

// object is a value.
type object = map[string]any

// words is an Embedder whose vectors count words.
type words struct {
	of   []string
	fail error

	mu    sync.Mutex
	calls [][]string
}

// Embed implements [store.Embedder].
func (w *words) Embed(_ context.Context, texts []string) ([][]float32, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, texts)
	var out [][]float32
	for _, text := range texts {
		v := make([]float32, len(w.of))
		for i, word := range w.of {
			v[i] = float32(strings.Count(text, word))
		}
		out = append(out, v)
	}
	return out, w.fail
}
