package rig

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

// OnRuntimes runs a body on every runtime with a thread of its own of the graph.
func OnRuntimes[Out any](t *testing.T, g *superstep.Graph[Out], body func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[Out])) {
	t.Helper()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		body(t, rt, g.Thread(rt, graphtest.ThreadID(t)))
	}, g)
}

// Modes are all of them, as a graph asks for them.
var Modes = map[string][]superstep.CompileOption{
	"sync": nil, "fused": {superstep.WithFused()}, "async": As(superstep.DurabilityAsync), "exit": As(superstep.DurabilityExit),
}

// As is the option by which a graph runs in a mode.
func As(d superstep.Durability) []superstep.CompileOption {
	return []superstep.CompileOption{superstep.WithDurability(d)}
}

// InModes runs one test of a graph in every mode, on every runtime.
func InModes[Out any](t *testing.T, b *superstep.StateGraph[Out], body func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[Out])) {
	t.Helper()
	for name, opts := range Modes {
		t.Run(name, func(t *testing.T) { OnRuntimes(t, b.MustCompile(opts...), body) })
	}
}

// Invoke runs a thread, which must not fail.
func Invoke(t *testing.T, th *superstep.Thread[Counter], input any, opts ...superstep.RunOption) superstep.Result[Counter] {
	t.Helper()
	got, err := th.Invoke(t.Context(), input, opts...)
	require.NoError(t, err)
	return got
}

// LogOf is the log of a thread's state.
func LogOf(t *testing.T, th *superstep.Thread[Counter], opts ...superstep.ReadOption) []string {
	t.Helper()
	state, err := th.State(t.Context(), opts...)
	require.NoError(t, err)
	return state.State.Log.Get()
}

// HistoryOf are the checkpoints of a thread, newest first.
func HistoryOf(t *testing.T, th *superstep.Thread[Counter], opts ...superstep.ReadOption) []thread.CheckpointView {
	t.Helper()
	history, err := th.History(t.Context(), opts...)
	require.NoError(t, err)
	return history
}

// AtStep is the newest checkpoint of a superstep.
func AtStep(t *testing.T, th *superstep.Thread[Counter], step int) thread.CheckpointView {
	t.Helper()
	history := HistoryOf(t, th, superstep.AtStep(step), superstep.Limit(1))
	require.Len(t, history, 1)
	return history[0]
}

// Wrote is a state to update with.
func Wrote(words ...string) Counter {
	var s Counter
	s.Log.Append(words...)
	return s
}

// AwaitFinished waits until a thread's run is over: Wait returns when it waits for an event.
func AwaitFinished[Out any](t *testing.T, th *superstep.Thread[Out]) (got superstep.Result[Out]) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		got, err = th.Wait(t.Context())
		require.NoError(t, err)
		return got.Status == thread.StatusFinished
	}, 2*time.Minute, 20*time.Millisecond)
	return got
}
