package main

import (
	"flag"
	"os"
	"testing"

	"go.temporal.io/sdk/worker"

	"superstep.dev/internal/testserver"
)

// all runs every recorded case on Temporal too; without it a sample of them is, which differs by nothing but size.
var all = flag.Bool("all", false, "run all recorded cases on Temporal, not a sample")

func TestMain(m *testing.M) {
	// No workflow is kept between two of its tasks: each replays its history from the beginning, so that whatever is not
	// deterministic shows. The command keeps them, as workers do.
	worker.SetStickyWorkflowCacheSize(0)
	os.Exit(m.Run())
}

// sampled is one in how many cases is run on Temporal, and sampledInMode in each mode in which supersteps are fused.
const sampled, sampledInMode = 8, 20

// oneIn makes a sample a fifth as large for go test -short.
func oneIn(n int) int {
	if testing.Short() {
		return 5 * n
	}
	return n
}

// TestRecordedTracesOnTemporal runs cases as workflows on a real server: they do what they do in memory.
func TestRecordedTracesOnTemporal(t *testing.T) {
	var cases []source
	for i, c := range recordedCases(t) {
		if *all || i%oneIn(sampled) == 0 {
			cases = append(cases, *c)
		}
	}
	judgeCases(t, temporalForTests(t), cases, "")
}

// TestRecordedTracesInEachModeOnTemporal runs other cases in each mode in which consecutive supersteps are one activity.
func TestRecordedTracesInEachModeOnTemporal(t *testing.T) {
	for k, mode := range []string{modeFused, "async", modeExit} {
		t.Run(mode, func(t *testing.T) {
			var cases []source
			for i, c := range recordedCases(t) {
				if *all || i%oneIn(sampledInMode) == 5*k+1 {
					cases = append(cases, *c)
				}
			}
			judgeCases(t, temporalEngineForTests(t, mode == modeFused), cases, (&settings{durability: mode}).mode())
		})
	}
}

// judgeCases runs cases, and fails the test with those that fail.
func judgeCases(t *testing.T, e engine, cases []source, durability string) {
	t.Helper()
	trials := newTrials(cases, durability)
	serve(t, e, trials...)
	judgeAll(t.Context(), e, trials, 0, func(c *trial, v verdict) {
		if v.failure != "" {
			t.Errorf("%s: %s", c.source.name(), v.failure)
		}
	})
}

// temporalForTests is an engine on the server that all tests share; it is closed with the test.
func temporalForTests(t *testing.T) engine {
	t.Helper()
	return temporalEngineForTests(t, false)
}

func temporalEngineForTests(t *testing.T, fused bool) engine {
	t.Helper()
	e, err := newTemporalEngine(testserver.Address(t), fused, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	return e
}
