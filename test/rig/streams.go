package rig

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

	"github.com/stretchr/testify/require"
	"superstep.dev/message"
	"superstep.dev/thread"

	"superstep.dev"
)

// EveryMode are all the modes that can be asked for, and subgraphs.
func EveryMode(opts ...superstep.StreamOption) []superstep.StreamOption {
	return append([]superstep.StreamOption{thread.StreamValues, thread.StreamUpdates, thread.StreamMessages, thread.StreamCustom,
		thread.StreamTasks, thread.StreamCheckpoints, thread.StreamDebug, superstep.StreamSubgraphs()}, opts...)
}

// StreamOf collects a stream, which must end without an error.
func StreamOf[Out any](t *testing.T, th *superstep.Thread[Out], opts ...superstep.StreamOption) []thread.Part {
	t.Helper()
	var parts []thread.Part
	for p, err := range th.Stream(t.Context(), opts...) {
		require.NoError(t, err)
		parts = append(parts, p)
	}
	return parts
}

// Lines are parts as lines, without what differs from run to run.
func Lines(parts []thread.Part) []string {
	var out []string
	for _, p := range parts {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %d %s", strings.Join(p.Namespace, "|"), p.Step, p.Mode))+" "+string(p.Data))
	}
	return out
}

var timestamps = regexp.MustCompile(`"timestamp":"[^"]*"`)

// SettledLines are the lines of a stream, with those of each superstep in a fixed order: its tasks end in any.
func SettledLines(parts []thread.Part) []string {
	lines := Lines(parts)
	from := 0
	for i, p := range parts {
		lines[i] = timestamps.ReplaceAllString(lines[i], `"timestamp":""`)
		asks := strings.Contains(lines[i], `"__interrupt__"`)
		if p.Mode == thread.StreamValues && !asks || p.Mode == thread.StreamCheckpoints {
			slices.Sort(lines[from:i])
			from = i + 1
		}
	}
	slices.Sort(lines[from:])
	return lines
}

// Story is the state of the graph that streams everything.
type Story struct {
	Messages superstep.Messages     `json:"messages"`
	Log      superstep.List[string] `json:"log"`
	Ready    superstep.Value[bool]  `json:"ready"`
}

// item is what one of many is given.
type item struct {
	N superstep.Value[int] `json:"n"`
}

// Flaky says whether a node is to fail now; each thread's attempts count on their own.
type Flaky struct{ seen sync.Map }

// Fails reports whether the node is to fail now: so many times for each thread.
func (f *Flaky) Fails(ctx context.Context, times int) bool {
	info := superstep.Info(ctx)
	n, _ := f.seen.LoadOrStore(info.Thread+info.Namespace+info.Path, new(int))
	count := n.(*int)
	*count++
	return *count <= times
}

// StreamingGraph has what streams differ by: messages and values emitted, an attempt that is repeated, a fan-out, a
// subgraph that asks, and a node that fails for good once.
func StreamingGraph(name string) *superstep.Graph[Story] {
	var once, dead Flaky
	review := superstep.NewStateGraph[Story](name + "_review")
	review.AddNode("ask", func(ctx context.Context, s Story) (Story, error) {
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

	g := superstep.NewStateGraph[Story](name)
	g.AddNode("write", func(ctx context.Context, s Story) (Story, error) {
		if err := superstep.EmitMessage(ctx, message.Message{ID: "m", Role: message.RoleAssistant, Content: message.Text("he")}); err != nil {
			return s, err
		}
		if once.Fails(ctx, 1) {
			return s, errors.New("hiccup")
		}
		if err := superstep.Emit(ctx, map[string]any{"at": "<half>"}); err != nil {
			return s, err
		}
		s.Messages.Append(message.Message{ID: "m", Role: message.RoleAssistant, Content: message.Text("hello")},
			message.Message{ID: "n", Role: message.RoleAssistant, Content: message.Text("more")})
		return s, nil
	}, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: time.Millisecond, NoJitter: true}))
	superstep.AddInputNode(g, "many", func(ctx context.Context, in item) (superstep.Command[Story], error) {
		var c superstep.Command[Story]
		c.Update.Log.Append(fmt.Sprintf("item %02d", in.N.Get()))
		return c, superstep.Emit(ctx, in.N.Get())
	})
	g.AddSubgraph("review", review.MustCompile())
	g.AddNode("end", func(ctx context.Context, s Story) (Story, error) {
		if dead.Fails(ctx, 1) {
			return s, errors.New("for good")
		}
		s.Log.Append("end")
		return s, nil
	})
	g.AddEdge(superstep.Start, "write")
	g.AddConditionalEdges("write", func(context.Context, Story) ([]superstep.Target, error) {
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

func appendingTo(word string) func(context.Context, Story) (Story, error) {
	return func(_ context.Context, s Story) (Story, error) {
		s.Log.Append(word)
		return s, nil
	}
}
