package graph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

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
		"the graph's": {rig.As(superstep.DurabilityExit), nil, superstep.DurabilityExit, false},
		"the call's":  {nil, options{superstep.WithDurability(superstep.DurabilityExit)}, superstep.DurabilityExit, false},
		"the call before the graph": {rig.As(superstep.DurabilityExit), options{superstep.WithDurability(superstep.DurabilitySync)},
			superstep.DurabilitySync, false},
		"fused by the graph": {[]superstep.CompileOption{superstep.WithFused()}, nil, superstep.DurabilitySync, true},
		"fused by the call":  {nil, options{superstep.WithFused()}, superstep.DurabilitySync, true},
		"not fused by a call that names a durability": {[]superstep.CompileOption{superstep.WithFused()},
			options{superstep.WithDurability(superstep.DurabilitySync)}, superstep.DurabilitySync, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := rig.Chain("g", "a", "b", "c").MustCompile(c.graph...)
			rig.OnRuntimes(t, g, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
				got := rig.Invoke(t, th, rig.Counter{}, c.call...)
				assert.Equal(t, []string{"a", "b", "c"}, got.Output.Log.Get())
				want := 5 // the input, step 0, and one for each node
				if c.mode == superstep.DurabilityExit {
					want = 1
				}
				assert.Len(t, rig.HistoryOf(t, th), want)
			})
			t.Run("shown", func(t *testing.T) {
				s := rig.NewServer(t)
				s.Work(g)
				segments := 0
				if c.fused { // in exit mode a short run does not outlast its opening
					segments = 1
				}
				openings := 1 // up to the first activity, or the end
				if c.mode == superstep.DurabilitySync && !c.fused {
					openings = 3 // a superstep each
				}
				var began, opened int
				for n := range 20 { // on a busy machine some openings take longer than they may, and go on in activities
					th := g.Thread(s.Client, fmt.Sprint(s.Queue, n))
					rig.Invoke(t, th, rig.Counter{}, c.call...)
					view, err := s.Show(t.Context(), th.ID())
					require.NoError(t, err)
					assert.Equal(t, c.mode, view.Durability)
					assert.Equal(t, c.fused, view.Fused)
					began, opened = s.Activities(th.ID(), segment.SegmentActivity), s.Activities(th.ID(), segment.OpeningActivity)
					if began <= segments {
						break
					}
				}
				assert.Equal(t, segments, began)
				assert.Equal(t, openings, opened)
			})
		})
	}
}

// TestTheModeOfAWaitingRunIsShown, and a run that goes on after its question stays in it.
func TestTheModeOfAWaitingRunIsShown(t *testing.T) {
	sg := superstep.NewStateGraph[rig.Counter]("g")
	sg.AddNode("a", rig.Asking("a"))
	sg.AddEdge(superstep.Start, "a")
	g := sg.MustCompile(superstep.WithFused())
	s := rig.NewServer(t)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	rig.Invoke(t, th, rig.Counter{})
	view, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusWaiting, view.Status)
	assert.Equal(t, superstep.DurabilitySync, view.Durability)
	assert.True(t, view.Fused)
	_, err = th.Resume(t.Context(), true)
	require.NoError(t, err)
	assert.Equal(t, 2, s.Activities(th.ID(), segment.OpeningActivity))
}

// TestTheModeInSpecs: a graph that says nothing has the Spec, and so the fingerprint, that it always had; that of a
// subgraph is the run's.
func TestTheModeInSpecs(t *testing.T) {
	plain, err := json.Marshal(rig.Chain("g", "a").MustCompile().Adapter().Spec)
	require.NoError(t, err)
	assert.NotContains(t, string(plain), "durability")
	assert.NotContains(t, string(plain), "fused")

	sub := rig.Chain("sub", "a").MustCompile(superstep.WithDurability(superstep.DurabilityExit), superstep.WithFused())
	outer := superstep.NewStateGraph[rig.Counter]("outer")
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

	_, err = rig.Chain("g", "a").Compile(superstep.WithDurability("later"))
	assert.ErrorContains(t, err, `unknown durability "later": there are sync, async and exit`)
}
