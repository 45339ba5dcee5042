package superstep_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// everyMode are all the modes that can be asked for, and subgraphs.
func everyMode(opts ...superstep.StreamOption) []superstep.StreamOption {
	return append([]superstep.StreamOption{superstep.StreamValues, superstep.StreamUpdates, superstep.StreamMessages, superstep.StreamCustom,
		superstep.StreamTasks, superstep.StreamCheckpoints, superstep.StreamDebug, superstep.StreamSubgraphs()}, opts...)
}

var timestamps = regexp.MustCompile(`"timestamp":"[^"]*"`)

// settled are the lines of a stream, with those of each superstep in a fixed order: its tasks end in any.
func settled(parts []superstep.StreamPart) []string {
	lines := shown(parts)
	from := 0
	for i, p := range parts {
		lines[i] = timestamps.ReplaceAllString(lines[i], `"timestamp":""`)
		asks := strings.Contains(lines[i], `"__interrupt__"`)
		if p.Mode == superstep.StreamValues && !asks || p.Mode == superstep.StreamCheckpoints {
			slices.Sort(lines[from:i])
			from = i + 1
		}
	}
	slices.Sort(lines[from:])
	return lines
}

// story is the state of the graph that streams everything.
type story struct {
	Messages superstep.Messages     `json:"messages"`
	Log      superstep.List[string] `json:"log"`
	Ready    superstep.Value[bool]  `json:"ready"`
}

// item is what one of many is given.
type item struct {
	N superstep.Value[int] `json:"n"`
}

// flaky says whether a node is to fail now; each thread's attempts count on their own.
type flaky struct{ seen sync.Map }

func (f *flaky) fails(ctx context.Context, times int) bool {
	info := superstep.Info(ctx)
	n, _ := f.seen.LoadOrStore(info.Thread+info.Namespace+info.Path, new(int))
	count := n.(*int)
	*count++
	return *count <= times
}

// streamingGraph has what streams differ by: messages and values emitted, an attempt that is repeated, a fan-out, a
// subgraph that asks, and a node that fails for good once.
func streamingGraph(name string) *superstep.Graph[story] {
	var once, dead flaky
	review := superstep.NewStateGraph[story](name + "_review")
	review.AddNode("ask", func(ctx context.Context, s story) (story, error) {
		ok, err := superstep.Interrupt[bool](ctx, "publish?")
		if err != nil {
			return s, err
		}
		s.Ready.Set(ok)
		return s, nil
	})
	review.AddNode("beside", appendingTo("beside"))
	review.AddEdge(superstep.Start, "ask")
	review.AddEdge(superstep.Start, "beside")

	g := superstep.NewStateGraph[story](name)
	g.AddNode("write", func(ctx context.Context, s story) (story, error) {
		if err := superstep.EmitMessage(ctx, superstep.Message{ID: "m", Role: superstep.RoleAssistant, Content: superstep.Text("he")}); err != nil {
			return s, err
		}
		if once.fails(ctx, 1) {
			return s, errors.New("hiccup")
		}
		if err := superstep.Emit(ctx, map[string]any{"at": "<half>"}); err != nil {
			return s, err
		}
		s.Messages.Append(superstep.Message{ID: "m", Role: superstep.RoleAssistant, Content: superstep.Text("hello")},
			superstep.Message{ID: "n", Role: superstep.RoleAssistant, Content: superstep.Text("more")})
		return s, nil
	}, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: time.Millisecond, NoJitter: true}))
	superstep.AddInputNode(g, "many", func(ctx context.Context, in item) (superstep.Command[story], error) {
		var c superstep.Command[story]
		c.Update.Log.Append(fmt.Sprintf("item %02d", in.N.Get()))
		return c, superstep.Emit(ctx, in.N.Get())
	})
	g.AddSubgraph("review", review.MustCompile())
	g.AddNode("end", func(ctx context.Context, s story) (story, error) {
		if dead.fails(ctx, 1) {
			return s, errors.New("for good")
		}
		s.Log.Append("end")
		return s, nil
	})
	g.AddEdge(superstep.Start, "write")
	g.AddConditionalEdges("write", func(context.Context, story) ([]superstep.Target, error) {
		items := make([]item, 50)
		for i := range items {
			items[i].N.Set(i)
		}
		return superstep.SendEach("many", items), nil
	}, "many")
	g.AddEdge("many", "review")
	g.AddEdge("review", "end")
	return g.MustCompile()
}

func appendingTo(word string) func(context.Context, story) (story, error) {
	return func(_ context.Context, s story) (story, error) {
		s.Log.Append(word)
		return s, nil
	}
}

// TestStreamsAreTheSameOnEveryRuntime: in all modes, with a retry, a fan-out, a question inside a subgraph, a failure
// and a retried thread: the same parts in the same order, those of one reader who was there from the start and those of
// one who comes late, and from every offset exactly the rest.
func TestStreamsAreTheSameOnEveryRuntime(t *testing.T) {
	served := streamingGraph("streaming")
	id := graphtest.ThreadID(t)
	seen := map[string][][]string{}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		_, remote := rt.(*superstep.Client)
		g := served
		if !remote {
			g = streamingGraph("streaming") // it fails at its own times
		}
		th := g.Thread(rt, id)
		phase := func(want superstep.Status, from superstep.StreamOption, act func() error) []superstep.StreamPart {
			var readers [2][]superstep.StreamPart
			require.NoError(t, act())
			var done sync.WaitGroup
			for i := range readers {
				done.Go(func() { readers[i] = streamed(t, th, everyMode(from)...) })
			}
			done.Wait()
			assert.Equal(t, shown(readers[0]), shown(readers[1]), "two readers")
			state, err := th.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, state.Status)
			seen[t.Name()] = append(seen[t.Name()], settled(readers[0]))
			return readers[0]
		}
		start := func(input any) func() error { return func() error { return th.Start(t.Context(), input) } }
		first := phase(superstep.StatusWaiting, superstep.StreamFrom(""), start(map[string]any{"messages": []map[string]string{{"id": "u", "role": "user", "content": "hi"}}}))
		second := phase(superstep.StatusFailed, superstep.StreamFrom(first[len(first)-1].Offset), func() error {
			_, err := th.Resume(t.Context(), true)
			assert.Error(t, err)
			return nil
		})
		third := phase(superstep.StatusFinished, superstep.StreamFrom(second[len(second)-1].Offset), start(nil))

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
			require.Equal(t, all[i+1:], append([]superstep.StreamPart{}, streamed(t, th, everyMode(superstep.StreamFrom(all[i].Offset))...)...), "from part %d", i)
		}
		// Whoever asks for one mode gets the parts of that mode, at the same offsets.
		var updates []superstep.StreamPart
		for _, p := range all[len(first):] {
			if p.Mode == superstep.StreamUpdates && len(p.Namespace) == 0 {
				updates = append(updates, p)
			}
		}
		assert.Equal(t, updates, streamed(t, th, superstep.StreamFrom(first[len(first)-1].Offset)))
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
