package segment

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestASegmentLeaves when its host wants it to, when its time is up, and when a superstep is for other workers.
func TestASegmentLeaves(t *testing.T) {
	leave := make(chan struct{})
	close(leave)
	for name, host := range map[string]Host{"told": {Leave: leave}, "late": {MaxTime: time.Nanosecond}} {
		r := newFusedRun(t, countdown(10, nil), graphadapter.DurabilityAsync, input(`{}`))
		result, err := RunSegment(t.Context(), r.g, r.suspended(), host)
		if err != nil || len(result.Deliveries) != 0 || len(r.ready) != 1 {
			t.Errorf("%s, the segment ended with %+v, %v", name, result, err)
		}
	}
	for _, mode := range []graphadapter.Durability{graphadapter.DurabilitySync, graphadapter.DurabilityAsync, graphadapter.DurabilityExit} {
		r, heard := newFusedRun(t, countdown(10, nil), mode, input(`{}`)), make(chan struct{})
		host := Host{Leave: heard, Keep: func(context.Context) error { close(heard); return nil }}
		result, err := RunSegment(t.Context(), r.g, r.suspended(), host)
		if err != nil || len(result.Deliveries) != 1 {
			t.Errorf("told so before its second superstep, in mode %s, the segment ended with %+v, %v", mode, result, err)
		}
	}
	g := countdown(10, nil)
	g.Spec.Nodes[0].TaskQueue = "elsewhere"
	r := newFusedRun(t, g, graphadapter.DurabilityAsync, input(`{}`))
	if result, err := RunSegment(t.Context(), g, r.suspended(), Host{}); err != nil || len(result.Deliveries) != 0 {
		t.Errorf("the segment ended with %+v, %v", result, err)
	}
}

// TestASegmentLeavesBeforeItsHeartbeatsCarryTooMuch: each has all outcomes so far.
func TestASegmentLeavesBeforeItsHeartbeatsCarryTooMuch(t *testing.T) {
	for name, c := range map[string]struct{ steps, text, most int }{
		"small outcomes": {1000, 0, 1000},
		"large outcomes": {1000, 2 << 10, 60},
	} {
		g := countdown(c.steps, nil)
		g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "text", Kind: pregel.KindLast})
		tick := g.Nodes["tick"]
		g.Nodes["tick"] = graphadapter.Node{Branches: tick.Branches, Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			out, err := tick.Run(ctx, in)
			out.Update = append(out.Update, pregel.Write{Channel: "text", Value: pregel.Value(strconv.Quote(randomText(c.text)))})
			return out, err
		}}
		r := newFusedRun(t, g, graphadapter.DurabilitySync, input(`{}`))
		s, err := OpenSegment(g, r.suspended(), false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		carried := 0
		result, err := s.Run(t.Context(), Host{Keep: func(context.Context) error {
			record, _ := s.Record()
			carried += len(record)
			return nil
		}})
		if err == nil {
			result, err = result.asStored()
		}
		if n := len(result.Deliveries); err != nil || n > c.most || n < c.most*2/3 || carried > maxCarried*11/10 {
			t.Errorf("%s: %d, at most %d, with heartbeats of %d bytes together, %v", name, n, c.most, carried, err)
		}
	}
}

// TestASegmentBringsBackWhatItsHostHasRoomFor: of tasks that end together those come back without their outcome for which there is none.
func TestASegmentBringsBackWhatItsHostHasRoomFor(t *testing.T) {
	const tasks = 5
	value := pregel.Value(strconv.Quote(randomText(maxOutcomeBytes / 3)))
	for most, want := range map[int]int{0: 2, 4 * len(value) / 3: 1, graphadapter.MaxResultBytes: tasks} {
		var begun sync.WaitGroup
		begun.Add(tasks)
		g := &graphadapter.Graph{Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "wide"}, Nodes: map[string]graphadapter.Node{}}
		for i := range tasks {
			name := "n" + strconv.Itoa(i)
			g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "c" + name, Kind: pregel.KindLast})
			g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: name})
			g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: pregel.Start, To: name})
			g.Nodes[name] = graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
				begun.Done()
				begun.Wait()
				return pregel.Command{Update: []pregel.Write{{Channel: "c" + name, Value: value}}}, nil
			}}
		}
		r := newFusedRun(t, g, graphadapter.DurabilityAsync, input(`{}`))
		result, err := RunSegment(t.Context(), g, r.suspended(), Host{MostBytes: most})
		if err != nil || len(result.Deliveries) != want || result.Apart != (want < tasks) {
			t.Errorf("with room for %d bytes: %d outcomes, apart %v, %v", most, len(result.Deliveries), result.Apart, err)
		}
	}
}
