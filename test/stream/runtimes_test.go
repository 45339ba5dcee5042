package stream_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestStreamsAreTheSameOnEveryRuntime: in all modes, with a retry, a fan-out, a question inside a subgraph, a failure
// and a retried thread: the same parts in the same order, those of one reader who was there from the start and those of
// one who comes late, and from every offset exactly the rest.
func TestStreamsAreTheSameOnEveryRuntime(t *testing.T) {
	served := rig.StreamingGraph("streaming")
	id := graphtest.ThreadID(t)
	seen := map[string][][]string{}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		_, remote := rt.(*superstep.Client)
		g := served
		if !remote {
			g = rig.StreamingGraph("streaming") // it fails at its own times
		}
		th := g.Thread(rt, id)
		phase := func(want thread.Status, from superstep.StreamOption, act func() error) []thread.Part {
			var readers [2][]thread.Part
			require.NoError(t, act())
			var done sync.WaitGroup
			for i := range readers {
				done.Go(func() { readers[i] = rig.StreamOf(t, th, rig.EveryMode(from)...) })
			}
			done.Wait()
			assert.Equal(t, rig.Lines(readers[0]), rig.Lines(readers[1]), "two readers")
			state, err := th.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, state.Status)
			seen[t.Name()] = append(seen[t.Name()], rig.SettledLines(readers[0]))
			return readers[0]
		}
		start := func(input any) func() error { return func() error { return th.Start(t.Context(), input) } }
		first := phase(thread.StatusWaiting, superstep.StreamFrom(""), start(map[string]any{"messages": []map[string]string{{"id": "u", "role": "user", "content": "hi"}}}))
		second := phase(thread.StatusFailed, superstep.StreamFrom(first[len(first)-1].Offset), func() error {
			_, err := th.Resume(t.Context(), true)
			assert.Error(t, err)
			return nil
		})
		third := phase(thread.StatusFinished, superstep.StreamFrom(second[len(second)-1].Offset), start(nil))

		all := slices.Concat(first, second, third)
		t.Logf("%d parts", len(all))
		offsets := map[string]bool{}
		for i, p := range all {
			require.False(t, offsets[p.Offset], "the offset %s of part %d comes twice", p.Offset, i)
			offsets[p.Offset] = true
		}
		step := 1
		if remote {
			step = 7 // each is a replay
		}
		for i := 0; i < len(all); i += step {
			require.Equal(t, all[i+1:], append([]thread.Part{}, rig.StreamOf(t, th, rig.EveryMode(superstep.StreamFrom(all[i].Offset))...)...), "from part %d", i)
		}
		// Whoever asks for one mode gets the parts of that mode, at the same offsets.
		var updates []thread.Part
		for _, p := range all[len(first):] {
			if p.Mode == thread.StreamUpdates && len(p.Namespace) == 0 {
				updates = append(updates, p)
			}
		}
		assert.Equal(t, updates, rig.StreamOf(t, th, superstep.StreamFrom(first[len(first)-1].Offset)))
	}, served)
	memory, temporal := seen[t.Name()+"/memory"], seen[t.Name()+"/temporal"]
	require.Len(t, memory, 3)
	if temporal == nil {
		t.Skip("without a server there is nothing to compare with")
	}
	for i := range memory {
		assert.Equal(t, memory[i], temporal[i], "phase %d", i)
	}
	text := strings.Join(slices.Concat(memory...), "\n")
	for _, part := range []string{
		`1 reset {"id":"1/write","name":"write","attempt":2}`, `1 custom {"at":"<half>"}`, `custom 49`, `1 messages [{"id":"m","role":"assistant","content":"he"}`,
		`3/review 1 updates {"__interrupt__":[{"value":"publish?"`, `"type":"checkpoint"`, `4 updates {"end":{"log":["end"]}}`,
	} {
		assert.True(t, strings.Contains(text, part), part)
	}
}
