package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// operations is what a worker offers to those who operate it: its health and its metrics, over HTTP when an address
// is given.
type operations struct {
	health  *health
	metrics client.MetricsHandler

	listener net.Listener
	server   *http.Server
	source   *metrics
	served   chan struct{}
}

// startOperations listens at addr; "" means nowhere. It starts before the worker does, so that a probe is told
// "starting" and not refused.
func startOperations(addr string, logger *zap.Logger) (*operations, error) {
	o := &operations{health: &health{}, metrics: client.MetricsNopHandler}
	if addr == "" {
		return o, nil
	}
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return nil, usagef("--metrics-addr %s is not HOST:PORT, for instance 127.0.0.1:9090", quoted(addr))
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, &notBegun{"--metrics-addr", err}
	}
	source, err := newMetrics(logger)
	if err != nil {
		listener.Close()
		return nil, err
	}
	o.listener, o.source, o.metrics = listener, source, source.handler
	o.serve(logger)
	return o, nil
}

func (o *operations) serve(logger *zap.Logger) {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", o.health)
	mux.Handle("GET /metrics", o.source.endpoint())
	o.server = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	o.served = make(chan struct{})
	go func() {
		defer close(o.served)
		if err := o.server.Serve(o.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("health and metrics are no longer served", zap.Error(err))
		}
	}()
}

// addr returns where it listens, "" when it does not.
func (o *operations) addr() string {
	if o.listener == nil {
		return ""
	}
	return o.listener.Addr().String()
}

// close ends the listener, and lets a scrape in progress finish.
func (o *operations) close() {
	if o.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if o.server.Shutdown(ctx) != nil {
		o.server.Close() // a client that does not read; the process is about to end
	}
	<-o.served
	o.source.scope.Close() // flushes into a registry that nobody reads any more
}

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
