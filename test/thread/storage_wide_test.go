package thread_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/test/rig"
)

// spreading is a graph of which one superstep has Sends, each of which says that many bytes, all of them at the same time.
func spreading(name string, sends, bytes int, opts ...superstep.CompileOption) *superstep.Graph[rig.Counter] {
	var begun sync.Map
	var left atomic.Int64
	all := make(chan struct{})
	left.Store(int64(sends))
	g := superstep.NewStateGraph[rig.Counter](name)
	g.AddNode("plan", func(_ context.Context, s rig.Counter) (rig.Counter, error) { return s, nil })
	superstep.AddInputNode(g, "say", func(ctx context.Context, n int) (superstep.Command[rig.Counter], error) {
		if _, again := begun.LoadOrStore(n, true); !again && left.Add(-1) == 0 { // one that a worker loses comes again
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
			return superstep.Command[rig.Counter]{}, ctx.Err()
		}
		var update rig.Counter
		update.Log.Append(said(bytes, uint64(n)))
		return superstep.Command[rig.Counter]{Update: update}, nil
	})
	g.AddEdge(superstep.Start, "plan")
	g.AddConditionalEdges("plan", func(context.Context, rig.Counter) ([]superstep.Target, error) {
		numbers := make([]int, sends)
		for i := range numbers {
			numbers[i] = i
		}
		return superstep.SendEach("say", numbers), nil
	}, "say")
	return g.MustCompile(opts...)
}

// TestLargeResultsOfOneSuperstep: what does not fit a history finishes where results go by reference: 60 results of 900 KB, in every mode.
func TestLargeResultsOfOneSuperstep(t *testing.T) {
	if testing.Short() {
		t.Skip("each of its values is held several times")
	}
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			s := newShared(t, rig.NewServer(t))
			g := spreading("spread-"+name, 60, 900_000, opts...)
			s.work(g)
			th := g.Thread(s.Client, s.Queue)
			began := time.Now()
			got, err := th.Invoke(t.Context(), rig.Counter{})
			require.NoError(t, err)
			t.Logf("%v, %d bytes of history, the longest workflow task took %v", time.Since(began), historyBytes(s.Server, th.ID()), s.longestTask(th.ID()))
			require.Len(t, got.Output.Log.Get(), 60)
			for i, text := range got.Output.Log.Get() {
				require.Equal(t, said(900_000, uint64(i)), text)
			}
			assert.Less(t, historyBytes(s.Server, th.ID()), int64(1_000_000))
		})
	}
}

// longestTask is how long the longest workflow task of a thread's newest run took.
func (s *shared) longestTask(id string) (longest time.Duration) {
	s.T.Helper()
	events := s.Temporal.GetWorkflowHistory(s.T.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	began := map[int64]time.Time{}
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.T, err)
		switch {
		case e.GetWorkflowTaskStartedEventAttributes() != nil:
			began[e.GetEventId()] = e.GetEventTime().AsTime()
		case e.GetWorkflowTaskCompletedEventAttributes() != nil:
			at := began[e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId()]
			longest = max(longest, e.GetEventTime().AsTime().Sub(at))
		}
	}
	return longest
}

// TestAResultAboveAPayload: a node returns more than the server takes in one payload, and no more than a worker is to hold.
func TestAResultAboveAPayload(t *testing.T) {
	if testing.Short() {
		t.Skip("each of its values is held several times")
	}
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			s := newShared(t, rig.NewServer(t))
			g := superstep.NewStateGraph[rig.Counter]("lengthy-" + name)
			g.AddNode("say", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
				s.Log.Append(strings.Repeat("0123456789abcdef", int(s.N.Get())/16))
				return s, nil
			})
			g.AddNode("read", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
				s.N.Set(int64(len(s.Log.Get()[0])))
				return s, nil
			})
			g.AddEdge(superstep.Start, "say")
			g.AddEdge("say", "read")
			graph := g.MustCompile(opts...)
			s.work(graph)
			var in rig.Counter
			in.N.Set(5 << 20)
			got, err := graph.Thread(s.Client, s.Queue).Invoke(t.Context(), in)
			require.NoError(t, err)
			require.Equal(t, []string{strings.Repeat("0123456789abcdef", 5<<16)}, got.Output.Log.Get())
			require.Equal(t, int64(5<<20), got.Output.N.Get())

			in.N.Set(65 << 20)
			_, err = graph.Thread(s.Client, s.Queue+"-more").Invoke(t.Context(), in)
			require.ErrorContains(t, err, "at most 67108864 can be stored")
		})
	}
}
