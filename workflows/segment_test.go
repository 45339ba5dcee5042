package workflows_test

import (
	"testing"

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
