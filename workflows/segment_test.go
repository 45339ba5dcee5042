package workflows_test

import (
	"context"
	"os"
	"testing"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// fusedModes are the modes in which supersteps run in segments.
var fusedModes = map[string]protocol.GraphInput{
	"fused": {Fused: true},
	"async": {Durability: graphadapter.DurabilityAsync},
	"exit":  {Durability: graphadapter.DurabilityExit},
}

// allModes are those, and sync, by what is to follow a name.
func allModes() map[string]protocol.GraphInput {
	all := map[string]protocol.GraphInput{"": {}}
	for name, in := range fusedModes {
		all["-"+name] = in
	}
	return all
}

// fusedScenarios are the lives of threads with questions, failures, subgraphs and error handlers in each of those modes.
func fusedScenarios() []scenario {
	var all []scenario
	for _, s := range scenarios {
		switch s.name {
		case "questions", "failed", "nested", "handled", "fan-out", "metered":
		default:
			continue
		}
		for _, name := range []string{"fused", "async", "exit"} {
			in, fused := fusedModes[name], s
			fused.name, fused.mode = s.name+"-"+name, mode{in.Fused, in.Durability}
			all = append(all, fused)
		}
	}
	return all
}

// TestRecordSegments records runs whose supersteps are fused.
func TestRecordSegments(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	for _, s := range fusedScenarios() {
		t.Run(s.name, func(t *testing.T) {
			r := newRig(t)
			r.work(s.graph())
			s.onServer(r, s.name)
			r.record(s.name, s.name)
		})
	}
}

// TestRecordRounds records a run of more supersteps than come back unpacked.
func TestRecordRounds(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	r := newRig(t)
	r.work(roundsGraph())
	r.finished(r.start("rounds", protocol.GraphInput{Graph: "rounds", Input: input(`{}`), Durability: graphadapter.DurabilityAsync}))
	r.record("rounds", "rounds")
}

// TestRecordedRoundsCameBack: what was recorded is what it was recorded for.
func TestRecordedRoundsCameBack(t *testing.T) {
	brought := 0
	for _, e := range recorded(t, "rounds").Events {
		for _, p := range returned(e) {
			if !isSegments(p) {
				continue
			}
			result, err := segment.DecodeWhole(p.GetData())
			if err != nil {
				t.Fatal(err)
			}
			brought += len(result.Deliveries)
		}
	}
	if brought != manyRounds {
		t.Errorf("%d outcomes came back, want %d", brought, manyRounds)
	}
}

func TestSegmentsRunTheChain(t *testing.T) {
	for mode, in := range fusedModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(chainGraph())
			in.Graph, in.Input = "chain", protocol.Input{Value: pregel.Value(`{}`)}
			run := r.start(testserver.Queue(t), in)
			if log := string(r.finished(run).Output["log"]); log != `["a","b","c"]` {
				t.Errorf("it ended with %s", log)
			}
		})
	}
}

// TestCancelEndsASegment at once: its nodes' contexts end, and what had run is in the state that a retry goes on from.
func TestCancelEndsASegment(t *testing.T) {
	for mode, in := range fusedModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			began := make(chan struct{})
			g := chainGraph()
			g.Nodes["b"] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
				close(began)
				<-ctx.Done()
				return pregel.Command{}, context.Cause(ctx)
			}}
			r.work(g)
			thread := testserver.Queue(t)
			in.Graph, in.Input = "chain", input(`{}`)
			run := r.start(thread, in)
			<-began
			if err := r.client.CancelWorkflow(r.ctx, thread, ""); err != nil {
				t.Fatal(err)
			}
			if err := run.Get(r.ctx, nil); !temporal.IsCanceledError(err) {
				t.Errorf("cancelled, the run ended with %v", err)
			}
			s, err := r.state(thread)
			if log := string(s.Snapshot.Values["log"]); err != nil || log != `["a"]` {
				t.Errorf("cancelled, its log is %s, %v", log, err)
			}
		})
	}
}

// TestSegmentsWithoutCache are the same as in memory too when every workflow task replays the run from its beginning.
func TestSegmentsWithoutCache(t *testing.T) {
	t.Parallel()
	if os.Getenv(uncachedEnv) != "" {
		t.Skip("this is that process")
	}
	uncached(t, "^(TestSameAsMemory|TestCancelEndsASegment)$/.*(fused|async|exit)$")
}
