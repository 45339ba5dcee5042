package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/history"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// windings is how often windingGraph runs its first node, and asksAt when it asks: far enough from either end for resume points.
const (
	windings = 640
	asksAt   = 330
)

// windingGraph is a long loop that leads through a subgraph, and through tasks side by side, now and then, and once to a
// question. Its state stays small.
func windingGraph() *graphadapter.Graph {
	counts := func(context.Context, graphadapter.Input) (pregel.Command, error) { return writes("turns", 1), nil }
	next := func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		var turns int
		if err := json.Unmarshal(s["turns"].Value(), &turns); err != nil {
			return nil, err
		}
		send := pregel.Target{Node: "side", Send: true, Arg: pregel.Value(`1`)}
		switch {
		case turns == windings:
			return []pregel.Target{{Node: pregel.End}}, nil
		case turns == asksAt:
			return []pregel.Target{{Node: "asker"}}, nil
		case turns%50 == 0:
			return []pregel.Target{{Node: "sub"}}, nil
		case turns%33 == 0:
			return []pregel.Target{{Node: "turn"}, send, send}, nil
		}
		return []pregel.Target{{Node: "turn"}}, nil
	}
	inner := graph("inner", map[string]graphadapter.Node{"first": says("first"), "second": says("second")},
		[]string{"first", "second"}, to(pregel.Start, "first"), to("first", "second"))
	inner.Spec.Input = []string{}
	g := graph("winding", map[string]graphadapter.Node{
		"turn": {Run: counts, Branches: []graphadapter.BranchFunc{next}}, "side": says("side"), "asker": asking("asker", "go on?"),
	}, []string{"turn", "side", "asker", "sub"}, to(pregel.Start, "turn"), to("asker", "turn"), to("sub", "turn"))
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "turns", Kind: pregel.KindReduce, Reducer: "sum/v1"})
	g.Spec.Branches = []pregel.Branch{{From: "turn", Targets: []string{"turn", "side", "asker", "sub", pregel.End}}}
	g.Spec.Nodes[3].Subgraph = "inner"
	g.Spec.Subgraphs = map[string]*pregel.Spec{"inner": inner.Spec}
	g.Subgraphs = map[string]*graphadapter.Graph{"inner": inner}
	return g
}

// isSegments reports whether a payload is a segment's result: those of other activities are JSON.
func isSegments(p *commonpb.Payload) bool {
	return len(p.GetData()) > 0 && string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingBinary
}

// returned is what an activity, or a local one, returned with the event.
func returned(e *historypb.HistoryEvent) []*commonpb.Payload {
	_, local := history.Local(converter.GetDefaultDataConverter(), e)
	return append(e.GetActivityTaskCompletedEventAttributes().GetResult().GetPayloads(), local.GetPayloads()...)
}

// passedOver is how many of the outcomes that segments brought back the run passed over, segment by segment.
func passedOver(t *testing.T, h *historypb.History) (passed []int) {
	t.Helper()
	for _, e := range h.Events {
		for _, p := range returned(e) {
			if !isSegments(p) {
				continue
			}
			result, err := segment.DecodeResult(p.GetData())
			if err != nil {
				t.Fatal(err)
			}
			if result.Resume != nil {
				passed = append(passed, result.Resume.Deliveries)
			}
		}
	}
	return passed
}

// TestPassedOverSameAsMemory: a run that goes on from the resume points of its segments has the checkpoints of one in memory, for
// whoever asks it and for the thread's next run, before a question as at its end.
func TestPassedOverSameAsMemory(t *testing.T) {
	for name, in := range fusedModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(windingGraph())
			thread := testserver.Queue(t)
			s := scenario{name: "winding", graph: windingGraph, inputs: []string{`{}`}, mode: mode{in.Fused, in.Durability}}
			s.sameAsMemory(r, thread)
			if passed := passedOver(t, r.history(thread)); len(passed) != 2 || slices.Min(passed) < 64 {
				t.Errorf("the run passed over %v outcomes, want many in each of two segments", passed)
			}
			var left protocol.GraphResult
			if err := r.client.GetWorkflow(r.ctx, thread, "").Get(r.ctx, &left); err != nil {
				t.Fatal(err)
			}
			all := s.inMemory(t, thread).lines
			if in.Durability == graphadapter.DurabilityExit {
				all = atEnds(all, left.Lines)
			}
			want := all[max(0, len(all)-protocol.CarriedLines):]
			for i := range left.Lines {
				if left.Lines[i].At == 0 {
					t.Fatalf("of the checkpoints that the run left, number %d has no time", i)
				}
				left.Lines[i].Run, left.Lines[i].At = "", 0 // in memory there is no run, and another time
				if i < len(want) && asJSON(t, left.Lines[i]) != asJSON(t, want[i]) {
					t.Fatalf("of the checkpoints that the run left, number %d is %+v, want %+v", i, left.Lines[i], want[i])
				}
			}
			if len(left.Lines) != len(want) {
				t.Errorf("the run left %d checkpoints, want %d", len(left.Lines), len(want))
			}
		})
	}
}

// TestRecordResumePoints records a run that passes over what two segments did.
func TestRecordResumePoints(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	r := newRig(t)
	r.work(windingGraph())
	s := scenario{graph: windingGraph, inputs: []string{`{}`}, mode: mode{durability: graphadapter.DurabilityAsync}}
	s.onServer(r, "marked")
	r.record("marked", "marked")
}

// TestAResumePointThatDoesNotFitStopsTheRun: what comes behind it has to be what the run's own engine asks for there.
func TestAResumePointThatDoesNotFitStopsTheRun(t *testing.T) {
	h := recorded(t, "marked")
	if passed := passedOver(t, h); len(passed) != 2 {
		t.Fatalf("it was recorded with resume points behind %v", passed)
	}
	if err := replay(t, h, windingGraph()); err != nil {
		t.Fatalf("as it was: %v", err)
	}
	for _, e := range h.Events {
		for _, p := range returned(e) {
			digest := []byte(`"digest":"`) // of the state
			if at := bytes.Index(p.GetData(), digest) + len(digest); at >= len(digest) && isSegments(p) {
				p.Data[at] ^= 1 // a hexadecimal digit becomes another
			}
		}
	}
	if err := replay(t, h, windingGraph()); err == nil || !strings.Contains(err.Error(), "outcome") {
		t.Errorf("with the resume point of another state the replay says %v", err)
	}
}
