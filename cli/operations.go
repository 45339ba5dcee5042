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

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/internal/telemetry"
)

// operations is what a worker offers to those who operate it: its health and its metrics, over HTTP when an address
// is given.
type operations struct {
	health   *health
	metrics  *telemetry.Metrics
	traces   *telemetry.Traces
	listener net.Listener
	server   *http.Server
	served   chan struct{}
}

// startOperations listens at addr; "" means nowhere. It starts before the worker does, so that a probe is told
// "starting" and not refused. program is the service that a collector is told of.
func startOperations(addr, program string, logger *zap.Logger) (o *operations, err error) {
	o = &operations{health: &health{}, traces: &telemetry.Traces{}}
	if _, port, err := net.SplitHostPort(addr); addr != "" && (err != nil || port == "") {
		return nil, usagef("--metrics-addr %s is not HOST:PORT, for instance 127.0.0.1:9090", quoted(addr))
	}
	if o.metrics, err = telemetry.OpenMetrics(addr != "", program, logger); err != nil {
		return nil, usagef("metrics: %w", err)
	}
	if o.traces, err = telemetry.OpenTraces(program, superstep.SpanIDs{}, logger); err != nil {
		o.close()
		return nil, usagef("traces: %w", err)
	}
	if addr == "" {
		return o, nil
	}
	if o.listener, err = net.Listen("tcp", addr); err != nil {
		o.close()
		return nil, notBegun("--metrics-addr", err)
	}
	o.serve(logger)
	return o, nil
}

func (o *operations) serve(logger *zap.Logger) {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", o.health)
	mux.Handle("GET /metrics", o.metrics)
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

// closeWithin bounds what a worker that ends waits for whoever takes its measurements.
const closeWithin = time.Second

// close exports what is left, ends the listener, and lets a scrape in progress finish.
func (o *operations) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = errors.Join(o.traces.Close(ctx), o.metrics.Close(ctx)) // a collector that is gone gets nothing
	if o.server == nil {
		return
	}
	if o.server.Shutdown(ctx) != nil {
		o.server.Close() // a client that does not read; the process is about to end
	}
	<-o.served
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
