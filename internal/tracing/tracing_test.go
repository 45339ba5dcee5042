package tracing

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// opened is a tracer, and what it told.
func opened(t *testing.T, options ...sdktrace.TracerProviderOption) (*Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	told := tracetest.NewInMemoryExporter()
	tracer, err := NewTracer(sdktrace.NewTracerProvider(append(options, sdktrace.WithIDGenerator(IDs{}), sdktrace.WithSyncer(told))...))
	require.NoError(t, err)
	return tracer, told
}

var run = RunID{Namespace: "default", Thread: "r-7", First: "0190"}

// TestAPlaceIsTheSameForAll: who tells of a run puts it into the same place, and a message has all of that.
func TestAPlaceIsTheSameForAll(t *testing.T) {
	one, _ := opened(t)
	other, _ := opened(t)
	const asked = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 vendor=7"
	for _, carried := range []string{"", asked} {
		place := one.Of(run, carried)
		require.True(t, place.Sampled())
		require.Equal(t, place, other.Of(run, carried))
		require.Equal(t, place, Read(place.String()))
		require.NotEqual(t, place.Task("1/a"), place.Task("1/b"))
		require.NotEqual(t, place.Task("1/a"), one.Of(RunID{"default", "r-7", "0191"}, carried).Task("1/a"))
		require.NotEqual(t, place.Superstep("", "", 1), place.Superstep("", "", 2))
	}
	place := one.Of(run, asked)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", place.ID.String())
	require.Equal(t, "7", place.State.Get("vendor"))
	require.Equal(t, one.Of(run, "").Run, place.Run)
}

// TestWhatIsNoPlace: nobody can make a run fail, or hold much, by what they send as its place in a trace.
func TestWhatIsNoPlace(t *testing.T) {
	tracer, _ := opened(t)
	root := tracer.Of(run, "")
	for _, bad := range []string{"x", "00-0-0-01", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", strings.Repeat("a", 1<<20),
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"} {
		require.Equal(t, root, tracer.Of(run, bad), bad)
	}
	require.False(t, SpanOf("").IsValid())
	require.False(t, Read("").On())
}

// TestASpanIsToldOnce, with its own id and parent, when workflow code decides the same again.
func TestASpanIsToldOnce(t *testing.T) {
	tracer, told := opened(t)
	place := tracer.Of(run, "")
	began := time.UnixMilli(1_000)
	for range 2 {
		tracer.Tell(Span{In: place, ID: place.Task("1/a"), Parent: place.Superstep("", "", 1), Name: TaskName, Began: began,
			Ended: began.Add(time.Second), From: []string{"", place.String()}, Failed: "Panic"})
	}
	require.Len(t, told.GetSpans(), 1)
	s := told.GetSpans()[0]
	require.Equal(t, place.Task("1/a"), s.SpanContext.SpanID())
	require.Equal(t, place.Superstep("", "", 1), s.Parent.SpanID())
	require.Equal(t, time.Second, s.EndTime.Sub(s.StartTime))
	require.Len(t, s.Links, 1)
	require.Empty(t, s.Status.Description)
}

// TestSpansOfANode: spans that a node makes have ids of their own, under the attempt.
func TestSpansOfANode(t *testing.T) {
	tracer, told := opened(t)
	place := tracer.Of(run, "")
	attempt := place.Attempt("1/a", "x/1", 1)
	ctx, end := tracer.Begin(t.Context(), Span{In: place, ID: attempt, Parent: place.Task("1/a"), Name: AttemptName})
	_, first := tracer.tracer.Start(ctx, "own")
	_, second := tracer.tracer.Start(ctx, "own")
	require.NotEqual(t, first.SpanContext().SpanID(), second.SpanContext().SpanID())
	first.End()
	second.End()
	end("")
	spans := told.GetSpans()
	require.Len(t, spans, 3)
	require.Equal(t, attempt, spans[0].Parent.SpanID())
	require.Equal(t, attempt, spans[2].SpanContext.SpanID())
}

// TestASamplerDecidesForTheRun: all of it is told of, or nothing, and who is called outside is told which.
func TestASamplerDecidesForTheRun(t *testing.T) {
	tracer, told := opened(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0))))
	place := tracer.Of(run, "")
	require.True(t, place.On())
	require.False(t, place.Sampled())
	tracer.Tell(Span{In: place, ID: place.Run, Name: RunName})
	ctx, end := tracer.Begin(t.Context(), Span{In: Read(place.String()), ID: place.Task("1/a"), Parent: place.Run, Name: TaskName})
	require.True(t, strings.HasSuffix(Carried(ctx), "-00"))
	end("")
	require.Empty(t, told.GetSpans())
}

// TestProvidersThatAreNone trace nothing, and one with ids of its own is refused.
func TestProvidersThatAreNone(t *testing.T) {
	for _, p := range []trace.TracerProvider{nil, noop.NewTracerProvider()} {
		tracer, err := NewTracer(p)
		require.NoError(t, err)
		require.Nil(t, tracer)
		require.False(t, tracer.Of(run, "").On())
		tracer.Tell(Span{})
	}
	_, err := NewTracer(sdktrace.NewTracerProvider())
	require.ErrorIs(t, err, ErrIDs)
	require.Empty(t, Carried(context.Background()))
}
