package workflows_test

import (
	"context"
	"testing"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows"
)

// fusedModes are the modes in which supersteps run in segments.
var fusedModes = map[string]workflows.GraphInput{
	"fused": {Segments: true, Fused: true},
	"async": {Segments: true, Durability: graphadapter.DurabilityAsync},
	"exit":  {Segments: true, Durability: graphadapter.DurabilityExit},
}

func TestSegmentsRunTheChain(t *testing.T) {
	for mode, in := range fusedModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.work(chainGraph())
			in.Graph, in.Input = "chain", pregel.Input{Value: pregel.Value(`{}`)}
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
