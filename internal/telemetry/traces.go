package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// Traces are a worker's spans on their way to a collector.
type Traces struct {
	// Provider takes spans; nil where nobody wants any.
	Provider trace.TracerProvider
	sdk      *sdktrace.TracerProvider
}

// OpenTraces opens what takes spans, for the collector that the environment names: ids makes their ids, and service is what the
// process is called unless OTEL_SERVICE_NAME says otherwise. Batches, the bound on spans that wait, samplers and limits are those
// of the environment too. The code of nodes finds the provider where OpenTelemetry has a program's own, and W3C's propagation.
//
// The error is an [*EnvironmentError], or says that an exporter cannot be made; a collector that does not answer is none.
func OpenTraces(service string, ids sdktrace.IDGenerator, logger *zap.Logger) (*Traces, error) {
	protocol, err := tracesSignal.protocol()
	if err != nil || protocol == "" {
		return &Traces{}, err
	}
	exporter, err := tracesExporter(protocol)
	if err != nil {
		return &Traces{}, err
	}
	sayOnce(logger)
	p := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids), sdktrace.WithResource(named(service)), sdktrace.WithBatcher(exporter))
	otel.SetTracerProvider(p)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	return &Traces{Provider: p, sdk: p}, nil
}

func tracesExporter(protocol string) (sdktrace.SpanExporter, error) {
	if protocol == overGRPC {
		return otlptracegrpc.New(context.Background())
	}
	return otlptracehttp.New(context.Background())
}

// Close exports what is left, within ctx.
func (t *Traces) Close(ctx context.Context) error {
	if t.sdk == nil {
		return nil
	}
	return t.sdk.Shutdown(ctx)
}
