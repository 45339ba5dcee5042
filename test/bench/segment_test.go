package main

import (
	"testing"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/workflows/protocol"
)

// BenchmarkFusedSteps is what 1,000 fused supersteps cost besides the one activity that runs them: in its worker, and where
// the run takes over what it brings.
func BenchmarkFusedSteps(b *testing.B) {
	g := loopGraph().Adapter()
	program, err := g.Program()
	if err != nil {
		b.Fatal(err)
	}
	begin := func() *pregel.Loop {
		input := pregel.Input{Value: pregel.Value(`{"note":"` + chainNote + `"}`)}
		options := pregel.Options{RecursionLimit: graphadapter.DefaultRecursionLimit}
		loop, err := program.Start(pregel.NewThread(), input, options, false, nil)
		if err != nil {
			b.Fatal(err)
		}
		return loop
	}
	suspended, err := begin().Suspend()
	if err != nil {
		b.Fatal(err)
	}
	before := map[graphadapter.Durability]int{graphadapter.DurabilityAsync: protocol.CarriedLines, graphadapter.DurabilityExit: 1}
	request := func(mode graphadapter.Durability) *segment.Request {
		return &segment.Request{Graph: loopName, Thread: "loop-1", Loop: suspended, Durability: mode, LedgerBytes: 128 << 10,
			ResumeBefore: before[mode]}
	}
	// The processor time of all threads, garbage collection included.
	perStep := func(b *testing.B, began time.Duration) {
		b.ReportMetric(float64((testbed.OwnCPU()-began).Nanoseconds())/float64(b.N)/manySteps, "cpu-ns/superstep")
	}
	stored := map[graphadapter.Durability][]byte{}
	for _, mode := range []graphadapter.Durability{graphadapter.DurabilityAsync, graphadapter.DurabilityExit} {
		b.Run(string(mode), func(b *testing.B) {
			b.ReportAllocs()
			began := testbed.OwnCPU()
			for b.Loop() {
				running, err := segment.OpenSegment(g, request(mode), false, nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				result, err := running.Run(b.Context(), segment.Host{})
				if err != nil {
					b.Fatal(err)
				}
				if stored[mode], err = result.Encode(); err != nil {
					b.Fatal(err)
				}
			}
			perStep(b, began)
		})
	}
	for _, mode := range []graphadapter.Durability{graphadapter.DurabilityAsync, graphadapter.DurabilityExit} {
		b.Run("run/"+string(mode), func(b *testing.B) {
			b.ReportAllocs()
			began := testbed.OwnCPU()
			for b.Loop() {
				brought, err := segment.DecodeResult(stored[mode])
				if err != nil {
					b.Fatal(err)
				}
				lines := 0
				loop, err := program.Restore(brought.Resume.Loop, func(e pregel.Event) {
					if e.Kind == pregel.EventCheckpoint {
						program.Made(e.Checkpoint)
						program.Next(e.Checkpoint)
						lines++
					}
				})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := segment.Redeliver(loop, loop.Ready(), brought.Deliveries, nil); err != nil || lines < before[mode] {
					b.Fatalf("%d checkpoints, error %v", lines, err)
				}
			}
			perStep(b, began)
		})
	}
}
