package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"superstep.dev/examples/refund/payments"
)

// stopTimeout is how long requests may take to end once the service stops.
const stopTimeout = 5 * time.Second

type serveConfig struct {
	addr      string
	db        string
	readyFile string
	hosts     []string
	log       io.Writer
}

// serve runs the service until ctx ends, and then lets the requests in flight
// finish. A port in use and a database that cannot be opened are errors.
func serve(ctx context.Context, config serveConfig) (err error) {
	// A ready file of an earlier process would send its readers to the wrong
	// address, and would be there before anything is ready.
	if err := removeReadyFile(config.readyFile); err != nil {
		return err
	}
	store, err := payments.OpenStore(ctx, config.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", config.addr)
	if err != nil {
		return fmt.Errorf("payments: %w", err)
	}
	log := slog.New(slog.NewTextHandler(config.log, nil))
	server := payments.NewServer(store, payments.ServerConfig{Logger: log, Hosts: config.hosts})
	return run(ctx, config, listener, server, log)
}

// run serves on the listener until ctx ends or serving fails.
func run(ctx context.Context, config serveConfig, listener net.Listener, server *payments.Server, log *slog.Logger) error {
	web := &http.Server{
		Handler:           server,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// No timeout on the whole request: hanging on purpose is a feature.
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	// The listener queues connections from here on, so the address is good.
	if err := writeReadyFile(config.readyFile, listener.Addr().String()); err != nil {
		return errors.Join(err, web.Close())
	}
	log.Info("payments serving", "addr", listener.Addr().String(), "db", config.db)
	select {
	case err := <-failed:
		return errors.Join(fmt.Errorf("payments: serve: %w", err), removeReadyFile(config.readyFile))
	case <-ctx.Done():
	}
	return errors.Join(removeReadyFile(config.readyFile), shutDown(ctx, web, server, log))
}

// shutDown lets requests end. What faults hold back is released first.
func shutDown(ctx context.Context, web *http.Server, server *payments.Server, log *slog.Logger) error {
	log.Info("payments stopping")
	server.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("payments: stop: %w", err), web.Close())
	}
	return nil
}
