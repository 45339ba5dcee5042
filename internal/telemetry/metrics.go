package telemetry

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.uber.org/zap"

	"superstep.dev/internal/figures"
)

// latencies are the upper bounds of the SDK's histograms, in seconds.
var latencies = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60}

// mostSeries bounds the series of one metric in a process. What is above is one series more, marked otel_metric_overflow.
const mostSeries = 2000

// Metrics are a worker's measurements.
type Metrics struct {
	// Handler takes the SDK's, and the worker's own, see package figures. It drops them when nobody wants any.
	Handler  client.MetricsHandler
	registry *prometheus.Registry // nil: nobody scrapes
	provider *metric.MeterProvider
}

// OpenMetrics opens what takes measurements: for whoever scrapes, and for the collector that the environment names. service is
// what the process is called there unless OTEL_SERVICE_NAME says otherwise.
//
// The error is an [*EnvironmentError], or says that an exporter cannot be made; a collector that does not answer is none.
func OpenMetrics(scraped bool, service string, logger *zap.Logger) (*Metrics, error) {
	m := &Metrics{Handler: client.MetricsNopHandler}
	protocol, err := metricsSignal.protocol()
	if err != nil || !scraped && protocol == "" {
		return m, err
	}
	options := []metric.Option{metric.WithView(views()...), metric.WithCardinalityLimit(mostSeries),
		metric.WithExemplarFilter(exemplar.AlwaysOffFilter)}
	if scraped {
		// A registry of its own, so that several workers fit into one test process.
		m.registry = prometheus.NewRegistry()
		m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		reader, err := otelprom.New(otelprom.WithRegisterer(m.registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
		if err != nil {
			return m, err
		}
		options = append(options, metric.WithReader(reader))
	}
	if protocol != "" {
		exporter, err := metricsExporter(protocol)
		if err != nil {
			return m, err
		}
		sayOnce(logger)
		options = append(options, metric.WithResource(named(service)), metric.WithReader(metric.NewPeriodicReader(exporter)))
	}
	m.provider = metric.NewMeterProvider(options...)
	m.Handler = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: m.provider.Meter("superstep.dev"), UseMonotonicCounters: true,
		OnError: func(err error) { logger.Warn("a metric is not exported", zap.Error(err)) },
	})
	return m, nil
}

func metricsExporter(protocol string) (metric.Exporter, error) {
	if protocol == overGRPC {
		return otlpmetricgrpc.New(context.Background())
	}
	return otlpmetrichttp.New(context.Background())
}

// views give histograms their bounds: those of the worker's own figures, and the SDK's.
func views() []metric.View {
	bounds := map[string][]float64{}
	for _, f := range figures.All() {
		if f.Kind == figures.Seconds {
			bounds[f.Name] = f.Buckets
		}
	}
	return []metric.View{func(i metric.Instrument) (metric.Stream, bool) {
		if i.Kind != metric.InstrumentKindHistogram {
			return metric.Stream{}, false
		}
		buckets, own := bounds[i.Name]
		if !own {
			buckets = latencies
		}
		return metric.Stream{Name: i.Name, Unit: i.Unit, Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: buckets, NoMinMax: true}}, true
	}}
}

// named is the process as collectors know it. What the environment says comes later, and counts.
func named(service string) *resource.Resource {
	r, err := resource.New(context.Background(), resource.WithAttributes(attribute.String("service.name", service)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && r == nil {
		return resource.Default()
	}
	return r
}

// ServeHTTP serves the metrics to whoever scrapes. Nothing is found where nobody was to.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.registry == nil {
		http.NotFound(w, r)
		return
	}
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// Close exports what is left, within ctx.
func (m *Metrics) Close(ctx context.Context) error {
	if m.provider == nil {
		return nil
	}
	return m.provider.Shutdown(ctx)
}

// sayOnce has the first error of an exporter logged, and those that follow not: a collector that is gone fails every export.
func sayOnce(logger *zap.Logger) {
	var once sync.Once
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if errors.Is(err, context.Canceled) {
			return
		}
		once.Do(func() {
			logger.Warn("measurements or spans do not reach their collector and are dropped; the worker goes on, and does not say this again", zap.Error(err))
		})
	}))
}
