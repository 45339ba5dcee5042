package telemetry

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace/noop"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"

	"superstep.dev/internal/tracing"
)

func TestNobodyWantsTraces(t *testing.T) {
	traces, err := OpenTraces("superstep", tracing.IDs{}, zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, traces.Provider)
	require.NoError(t, traces.Close(t.Context()))
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	_, err = OpenTraces("superstep", tracing.IDs{}, zap.NewNop())
	var bad *EnvironmentError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "OTEL_TRACES_EXPORTER", bad.Variable)
}

// received is a collector over gRPC.
type received struct {
	collector.UnimplementedTraceServiceServer
	requests chan *collector.ExportTraceServiceRequest
}

func (r received) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.requests <- req
	return &collector.ExportTraceServiceResponse{}, nil
}

// TestTracesOverGRPC reach a collector with their ids, and the name of the process.
func TestTracesOverGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server, to := grpc.NewServer(), received{requests: make(chan *collector.ExportTraceServiceRequest, 10)}
	collector.RegisterTraceServiceServer(server, to)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	traces, err := OpenTraces("refunds", tracing.IDs{}, zap.NewNop())
	require.NoError(t, err)
	tracer, err := tracing.NewTracer(traces.Provider)
	require.NoError(t, err)
	place := tracer.Of(tracing.RunID{Thread: "r-7"}, "")
	tracer.Tell(tracing.Span{In: place, ID: place.Run, Name: tracing.RunName, Began: time.Now(), Ended: time.Now()})
	require.NoError(t, traces.Close(t.Context()))
	got := (<-to.requests).ResourceSpans[0]
	require.Contains(t, got.Resource.String(), "refunds")
	require.Equal(t, place.Run[:], got.ScopeSpans[0].Spans[0].SpanId)
}

// TestACollectorOfTracesThatIsGone keeps nobody, fills no memory, and the log says so once. One that does not answer is as good.
func TestACollectorOfTracesThatIsGone(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	held := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(held)
	defer otel.SetTracerProvider(noop.NewTracerProvider())
	for name, at := range map[string]string{"gone": gone.URL, "slow": slow.URL} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", at)
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
			t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "20")
			core, lines := observer.New(zap.WarnLevel)
			traces, err := OpenTraces("superstep", tracing.IDs{}, zap.New(core))
			require.NoError(t, err)
			tracer, err := tracing.NewTracer(traces.Provider)
			require.NoError(t, err)
			place, began := tracer.Of(tracing.RunID{Thread: "r-7"}, ""), time.Now()
			for i := range 20_000 {
				_, end := tracer.Begin(t.Context(), tracing.Span{In: place, ID: place.Attempt("1/a", "x", i), Parent: place.Run, Name: tracing.AttemptName})
				end("")
			}
			require.Less(t, time.Since(began), time.Minute) // to wait for the collector with each would take more than five
			require.Eventually(t, func() bool { return lines.Len() > 0 }, time.Minute, time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began = time.Now()
			_ = traces.Close(ctx)
			require.Less(t, time.Since(began), 30*time.Second)
			require.Equal(t, 1, lines.Len())
		})
	}
}
