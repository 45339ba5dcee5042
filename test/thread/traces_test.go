package thread_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// TestTheTraceOfAContinuedRun: runs that are continued as new ones all the time are one run to who looks at its trace, with the same
// spans as that of a run which is not.
func TestTheTraceOfAContinuedRun(t *testing.T) {
	t.Parallel()
	var told []map[string]int
	for _, at := range []protocol.ContinueAt{{}, {Events: 1, Life: 1}} {
		spans := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(superstep.SpanIDs{}), sdktrace.WithSyncer(spans))
		s := rig.NewServerThatContinues(t, at)
		g := rig.StreamingGraph("traced")
		stop := s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Traces: provider})
		th := g.Thread(s.Client, s.Queue)
		continued := 0
		twoPhases(t, th, func() { continued += s.Continued(th.ID()) })
		stop()
		require.Equal(t, at.Events > 0, continued > 0)
		ids, names := map[trace.SpanID]string{}, map[string]int{}
		for _, span := range spans.GetSpans() {
			assert.Empty(t, ids[span.SpanContext.SpanID()], "told twice: %s", span.Name)
			ids[span.SpanContext.SpanID()] = span.Name
			names[span.Name]++
			assert.False(t, span.EndTime.Before(span.StartTime), span)
		}
		for _, span := range spans.GetSpans() {
			if span.Parent.IsValid() {
				assert.NotEmpty(t, ids[span.Parent.SpanID()], "the parent of %s is not told", span.Name)
			}
		}
		assert.GreaterOrEqual(t, names["attempt"], names["task"]) // one more where the machine stood still
		delete(names, "attempt")
		told = append(told, names)
	}
	require.Equal(t, told[0], told[1])
	require.Positive(t, told[0]["question"])
}

// TestTracesNeedIDs: a provider with ids of its own would tell each span of a replayed run anew.
func TestTracesNeedIDs(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	_, err := superstep.NewWorker(s.Temporal, superstep.WorkerConfig{Graphs: []superstep.Runnable{rig.StreamingGraph("ids")},
		Traces: sdktrace.NewTracerProvider()})
	require.ErrorIs(t, err, thread.ErrBadInput)
	require.ErrorContains(t, err, "superstep.SpanIDs{}")
}
