package cli

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/uber-go/tally/v4"
	tallyprom "github.com/uber-go/tally/v4/prometheus"
	"go.temporal.io/sdk/client"
	contribtally "go.temporal.io/sdk/contrib/tally"
	"go.uber.org/zap"
)

// metricsInterval is how often the SDK's metrics reach the registry; far more often than anyone scrapes it.
const metricsInterval = time.Second

// metrics are a worker's measurements: the SDK's, the Go runtime's and the process's.
type metrics struct {
	registry *prometheus.Registry
	handler  client.MetricsHandler
	scope    io.Closer
}

// newMetrics returns metrics under a registry of their own, so that several workers fit into one test process.
func newMetrics(logger *zap.Logger) (*metrics, error) {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	reporter := tallyprom.NewReporter(tallyprom.Options{
		Registerer:       registry,
		Gatherer:         registry,
		DefaultTimerType: tallyprom.HistogramTimerType, // histograms add up over workers, summaries do not
		OnRegisterError: func(err error) {
			logger.Warn("a metric is not exported", zap.Error(err))
		},
	})
	scope, closer := tally.NewRootScope(tally.ScopeOptions{
		CachedReporter:         reporter,
		Separator:              tallyprom.DefaultSeparator,
		SanitizeOptions:        &contribtally.PrometheusSanitizeOptions,
		OmitCardinalityMetrics: true, // they describe tally, not the worker
	}, metricsInterval)
	return &metrics{
		registry: registry,
		handler:  contribtally.NewMetricsHandler(contribtally.NewPrometheusNamingScope(scope)),
		scope:    closer,
	}, nil
}

// endpoint serves the metrics.
func (m *metrics) endpoint() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
