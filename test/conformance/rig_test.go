package main

import (
	"fmt"
	"sync/atomic"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

type (
	graph    = graphadapter.Graph
	snapshot = pregel.Snapshot
	outcome  = pregel.Command
)

// runOnEngines runs a test on each engine.
func runOnEngines(t *testing.T, test func(t *testing.T, e engine)) {
	t.Helper()
	t.Run(engineMemory, func(t *testing.T) { test(t, memoryEngine{}) })
	t.Run(engineTemporal, func(t *testing.T) { test(t, temporalForTests(t)) })
}

// serve makes a trial's graph known to an engine.
func serve(t *testing.T, e engine, trials ...*trial) {
	t.Helper()
	stop, err := e.serve(t.Context(), graphsOf(trials))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

var graphs atomic.Int64

// graphName is a name that no other graph of this process has.
func graphName(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%s-%d", rootName, graphs.Add(1))
}
