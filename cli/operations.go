package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"go.temporal.io/sdk/client"
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
