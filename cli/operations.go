package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/uber-go/tally/v4"
	tallyprom "github.com/uber-go/tally/v4/prometheus"
	"go.temporal.io/sdk/client"
	contribtally "go.temporal.io/sdk/contrib/tally"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"superstep.dev/cli/screen"
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
		return nil, notBegun("--metrics-addr", err)
	}
	o.listener, o.source = listener, newMetrics(logger)
	o.metrics = o.source.handler
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
func newMetrics(logger *zap.Logger) *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
	}
}

// endpoint serves the metrics.
func (m *metrics) endpoint() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// newLogger returns a worker's logger. format and level are values of the flags.
func newLogger(w io.Writer, format, level string) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewConsoleEncoder(config)
	if format == "json" {
		encoder = zapcore.NewJSONEncoder(config)
	}
	lowest, _ := zapcore.ParseLevel(level) // info, if it were none
	return zap.New(discreetCore{zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), lowest)})
}

// discreetCore does not write values under a secret's name.
type discreetCore struct{ zapcore.Core }

// With implements zapcore.Core.
func (c discreetCore) With(fields []zapcore.Field) zapcore.Core {
	return discreetCore{c.Core.With(discreet(fields))}
}

// Check implements zapcore.Core.
func (c discreetCore) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return to.AddCore(entry, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c discreetCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return c.Core.Write(entry, discreet(fields))
}

// discreet replaces the values of secret fields.
func discreet(fields []zapcore.Field) []zapcore.Field {
	fields = slices.Clone(fields)
	for i, field := range fields {
		if screen.IsSecretName(field.Key) {
			fields[i] = zap.String(field.Key, screen.Redacted)
		}
	}
	return fields
}

// silentLogger is the SDK's logger of commands for people: what went wrong comes back as an error.
func silentLogger() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
