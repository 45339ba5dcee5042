package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
)

// TestReconnectingBringsTheRest: two nodes emit beside each other. A reader that reconnects after any part, while they run or later,
// gets each part that it does not have once, and no other. It is so on a server in all modes, and in memory.
func TestReconnectingBringsTheRest(t *testing.T) {
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reconnects(t, func(g superstep.Runnable) *superstep.Client { return liveRuntime(t, &live.Local{}, g) }, opts...)
		})
	}
	t.Run("memory", func(t *testing.T) {
		reconnects(t, func(superstep.Runnable) *superstep.Client { return nil })
	})
}

const wordsOfEach = 4

// wordyGraph is a graph with two nodes beside each other that emit words. What they emit after half of them waits for half, and they end
// after end.
func wordyGraph(half, end <-chan struct{}, opts ...superstep.CompileOption) *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter]("wordy")
	for _, name := range []string{"a", "b"} {
		g.AddNode(name, func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
			for i := range wordsOfEach {
				if i == wordsOfEach/2 {
					if err := awaiting(ctx, half); err != nil {
						return s, err
					}
				}
				if err := superstep.Emit(ctx, fmt.Sprint(name, i)); err != nil {
					return s, err
				}
			}
			return s, awaiting(ctx, end)
		})
		g.AddEdge(superstep.Start, name)
	}
	return g.MustCompile(opts...)
}

func reconnects(t *testing.T, clientOf func(superstep.Runnable) *superstep.Client, opts ...superstep.CompileOption) {
	half, end := make(chan struct{}), make(chan struct{})
	g := wordyGraph(half, end, opts...)
	var th *superstep.Thread[rig.Counter]
	if c := clientOf(g); c != nil {
		th = g.Thread(c, graphtest.ThreadID(t))
	} else {
		th = g.Thread(superstep.NewMemory(), graphtest.ThreadID(t))
	}
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	var had []thread.Part
	var ended, whole sync.WaitGroup
	for p, err := range th.Stream(t.Context(), thread.StreamCustom) {
		require.NoError(t, err)
		had = append(had, p)
		if len(had) == 2 {
			close(half)
		}
		have := slices.Clone(had)
		whole.Add(1)
		ended.Go(func() {
			var once sync.Once
			done := func() { once.Do(whole.Done) }
			defer done()
			if len(have) == 2*wordsOfEach {
				done()
			}
			got := wordsOf(t, have)
			for p, err := range th.Stream(t.Context(), thread.StreamCustom, superstep.StreamFrom(have[len(have)-1].Offset)) {
				if !assert.NoError(t, err) {
					return
				}
				if got = append(got, wordsOf(t, []thread.Part{p})...); len(got) == 2*wordsOfEach {
					done()
				}
			}
			assertEachOnce(t, got, len(have))
		})
		if len(had) == 2*wordsOfEach {
			break
		}
	}
	whole.Wait() // all have all while the nodes run
	close(end)
	ended.Wait()
	_, err := th.Wait(t.Context())
	require.NoError(t, err)
	for i, p := range had {
		rest := rig.StreamOf(t, th, thread.StreamCustom, superstep.StreamFrom(p.Offset))
		assertEachOnce(t, append(wordsOf(t, had[:i+1]), wordsOf(t, rest)...), i+1)
	}
}

func wordsOf(t *testing.T, parts []thread.Part) []string {
	out := make([]string, len(parts))
	for i, p := range parts {
		assert.NoError(t, json.Unmarshal(p.Data, &out[i]), string(p.Data))
	}
	return out
}

// assertEachOnce holds that each word came once, and those of a node in order.
func assertEachOnce(t *testing.T, words []string, after int) {
	t.Helper()
	assert.Len(t, words, 2*wordsOfEach, "reconnected after part %d", after)
	for _, name := range []string{"a", "b"} {
		var got, want []string
		for _, w := range words {
			if w[:1] == name {
				got = append(got, w)
			}
		}
		for i := range wordsOfEach {
			want = append(want, fmt.Sprint(name, i))
		}
		assert.Equal(t, want, got, "reconnected after part %d", after)
	}
}
