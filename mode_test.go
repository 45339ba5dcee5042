package superstep_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev"
	"superstep.dev/graphadapter/segment"
)

// modes are all of them, as a graph asks for them.
var modes = map[string][]superstep.CompileOption{
	"sync": nil, "fused": {superstep.WithFused()}, "async": compiledAs(superstep.DurabilityAsync), "exit": compiledAs(superstep.DurabilityExit),
}

// inModes runs one test of a graph in every mode, on every runtime.
func inModes[Out any](t *testing.T, b *superstep.StateGraph[Out], body func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[Out])) {
	t.Helper()
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) { onRuntimes(t, b.MustCompile(opts...), body) })
	}
}

// TestARunsModeIsTheCallsElseItsGraphs: the durability decides how many checkpoints a run of three supersteps leaves.
func TestARunsModeIsTheCallsElseItsGraphs(t *testing.T) {
	type options = []superstep.RunOption
	for name, c := range map[string]struct {
		graph []superstep.CompileOption
		call  options
		mode  superstep.Durability
		fused bool
	}{
		"neither":     {nil, nil, superstep.DurabilitySync, false},
		"the graph's": {compiledAs(superstep.DurabilityExit), nil, superstep.DurabilityExit, false},
		"the call's":  {nil, options{superstep.WithDurability(superstep.DurabilityExit)}, superstep.DurabilityExit, false},
		"the call before the graph": {compiledAs(superstep.DurabilityExit), options{superstep.WithDurability(superstep.DurabilitySync)},
			superstep.DurabilitySync, false},
		"fused by the graph": {[]superstep.CompileOption{superstep.WithFused()}, nil, superstep.DurabilitySync, true},
		"fused by the call":  {nil, options{superstep.WithFused()}, superstep.DurabilitySync, true},
		"not fused by a call that names a durability": {[]superstep.CompileOption{superstep.WithFused()},
			options{superstep.WithDurability(superstep.DurabilitySync)}, superstep.DurabilitySync, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := chain("g", "a", "b", "c").MustCompile(c.graph...)
			onRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
				got := invoke(t, th, counter{}, c.call...)
				assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
				want := 5 // the input, step 0, and one for each node
				if c.mode == superstep.DurabilityExit {
					want = 1
				}
				assert.Len(t, historyOf(t, th), want)
			})
			t.Run("shown", func(t *testing.T) {
				s := newServer(t)
				s.work(g)
				th := g.Thread(s.Client, s.queue)
				invoke(t, th, counter{}, c.call...)
				view, err := s.Show(t.Context(), th.ID())
				require.NoError(t, err)
				assert.Equal(t, c.mode, view.Durability)
				assert.Equal(t, c.fused, view.Fused)
				segments := 0
				if c.fused || c.mode == superstep.DurabilityExit {
					segments = 1
				}
				assert.Equal(t, segments, s.activities(th.ID(), segment.SegmentActivity))
			})
		})
	}
}

func compiledAs(d superstep.Durability) []superstep.CompileOption {
	return []superstep.CompileOption{superstep.WithDurability(d)}
}

// activities counts the activities of a type that a thread's newest run scheduled.
func (s *server) activities(thread, kind string) (n int) {
	s.t.Helper()
	events := s.temporal.GetWorkflowHistory(s.t.Context(), thread, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.t, err)
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == kind {
			n++
		}
	}
	return n
}

// TestTheModeOfAWaitingRunIsShown, and a run that goes on after its question stays in it.
func TestTheModeOfAWaitingRunIsShown(t *testing.T) {
	sg := superstep.NewStateGraph[counter]("g")
	sg.AddNode("a", asking("a"))
	sg.AddEdge(superstep.Start, "a")
	g := sg.MustCompile(superstep.WithFused())
	s := newServer(t)
	s.work(g)
	th := g.Thread(s.Client, s.queue)
	invoke(t, th, counter{})
	view, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, superstep.StatusWaiting, view.Status)
	assert.Equal(t, superstep.DurabilitySync, view.Durability)
	assert.True(t, view.Fused)
	_, err = th.Resume(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, 2, s.activities(th.ID(), segment.SegmentActivity))
}

// TestTheModeInSpecs: a graph that says nothing has the Spec, and so the fingerprint, that it always had; that of a
// subgraph is the run's.
func TestTheModeInSpecs(t *testing.T) {
	plain, err := json.Marshal(chain("g", "a").MustCompile().Adapter().Spec)
	require.NoError(t, err)
	assert.NotContains(t, string(plain), "durability")
	assert.NotContains(t, string(plain), "fused")

	sub := chain("sub", "a").MustCompile(superstep.WithDurability(superstep.DurabilityExit), superstep.WithFused())
	outer := superstep.NewStateGraph[counter]("outer")
	outer.AddSubgraph("s", sub)
	outer.AddEdge(superstep.Start, "s")
	spec, err := json.Marshal(outer.MustCompile().Adapter().Spec)
	require.NoError(t, err)
	assert.NotContains(t, string(spec), "durability")
	assert.NotContains(t, string(spec), "fused")

	e := superstep.NewEntrypoint("e", func(context.Context, string) (string, error) { return "", nil },
		superstep.WithDurability(superstep.DurabilityAsync), superstep.WithFused())
	assert.Equal(t, "async", e.Adapter().Spec.Durability)
	assert.True(t, e.Adapter().Spec.Fused)

	_, err = chain("g", "a").Compile(superstep.WithDurability("later"))
	assert.ErrorContains(t, err, `unknown durability "later": there are sync, async and exit`)
}
