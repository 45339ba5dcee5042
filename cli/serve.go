package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/internal/sdklog"
	"superstep.dev/serve"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	listen              string
	ready               readyFile
	hosts, origins      []string
	webhooksAnywhere    bool
	store               storeFlag
	logFormat, logLevel string
}

func (a operating) serveCommand() *cobra.Command {
	var f serveFlags
	return a.build(command{
		name: "serve",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.listen, "listen", "127.0.0.1:2024", "loopback `HOST:PORT` to listen at")
			flags.StringVar((*string)(&f.ready), "ready-file", "", "`FILE` to write the pid to while requests are answered")
			flags.StringSliceVar(&f.hosts, "host-name", nil, "further `NAME` under which requests may come, besides localhost")
			flags.StringSliceVar(&f.origins, "origin", nil, "`ORIGIN` of web pages that may use it (default: any)")
			flags.BoolVar(&f.webhooksAnywhere, "webhooks-anywhere", false, "let webhooks reach private addresses and this machine")
			f.store.register(flags)
			choiceVar(flags, &f.logFormat, "log-format", "console", []string{"console", "json"}, "`FORMAT`: console or json")
			choiceVar(flags, &f.logLevel, "log-level", "info", []string{"debug", "info", "warn", "error"}, "`LEVEL`: debug, info, warn or error")
		},
		run: func(ctx context.Context, _ []string) error { return a.answerClients(ctx, f) },
	})
}

// checkListen refuses an address that others can reach: there is no authentication yet.
func checkListen(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return usagef("--listen %s is not HOST:PORT", quoted(address))
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--listen %s can be reached by other machines, and there is no authentication yet: listen at a loopback address, "+
			"such as 127.0.0.1:%s, behind a proxy that knows who asks", quoted(address), port)
	}
	return nil
}

// answerClients serves until ctx ends.
func (a operating) answerClients(ctx context.Context, f serveFlags) error {
	if err := checkListen(f.listen); err != nil {
		return err
	}
	opts, err := a.clientOptions()
	if err != nil {
		return err
	}
	logger := newLogger(a.secrets.Writer(a.stderr), f.logFormat, f.logLevel)
	opts = superstep.Encoded(opts)
	opts.Logger = sdklog.New(logger.Named("temporal"))
	c, err := connecting{dial: a.backend.dial, timeout: 30 * time.Second, logger: logger}.connect(ctx, opts)
	if err == nil {
		c, opts, err = a.findStorage(ctx, c, opts)
	}
	if err != nil {
		return interrupted(ctx, err, "stopped before the server was ready")
	}
	defer c.Close()
	memory, err := a.findStore(ctx, f.store, c, opts)
	if err != nil {
		return interrupted(ctx, err, "stopped before the server was ready")
	}
	defer memory.Close()
	return a.listen(ctx, c, opts, memory, f, logger)
}

// listen answers requests over a connection until ctx ends; then those under way have some seconds.
func (a operating) listen(ctx context.Context, c client.Client, opts client.Options, memory *superstep.Store, f serveFlags, logger *zap.Logger) error {
	cfg := superstep.ClientConfig{TaskQueue: a.conn.taskQueue, Namespace: opts.Namespace, Graphs: a.graphs,
		DataConverter: opts.DataConverter, FailureConverter: opts.FailureConverter, Storage: a.storage}
	if tokens := a.liveTokens(ctx, c, opts, logger); tokens != nil {
		defer tokens.Close()
		cfg.Transport = tokens
	}
	threads, err := superstep.NewClient(c, cfg)
	if err != nil {
		return err
	}
	handler, err := serve.Handler(threads, serve.Config{Temporal: c, TaskQueue: a.conn.taskQueue, Namespace: opts.Namespace, DataConverter: opts.DataConverter,
		Hosts: f.hosts, Origins: f.origins, WebhooksAnywhere: f.webhooksAnywhere, Store: memory, Logger: logger})
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer handler.Close()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return notBegun("--listen", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	if err := serveUntil(ctx, server, listener, f.ready, func() { a.showServing(listener.Addr().String()) }); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// lastRequests bounds the time that requests under way have when a server of this program is told to end. Streams would stay open for as
// long as their clients do.
const lastRequests = 3 * time.Second

// serveUntil serves until ctx ends. shown runs when requests are answered and the ready file says so.
func serveUntil(ctx context.Context, server *http.Server, listener net.Listener, ready readyFile, shown func()) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer ready.remove(os.Getpid())
	if err := ready.write(os.Getpid()); err != nil {
		return errors.Join(err, server.Close())
	}
	shown()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, stop := context.WithTimeout(context.Background(), lastRequests)
	defer stop()
	if server.Shutdown(last) != nil {
		return server.Close()
	}
	return nil
}

// serveEvent is what a server tells programs.
type serveEvent struct {
	Event     string `json:"event"`
	PID       int    `json:"pid"`
	Address   string `json:"address"`
	TaskQueue string `json:"task_queue"`
}

func (a operating) showServing(address string) {
	e := serveEvent{Event: "ready", PID: os.Getpid(), Address: address, TaskQueue: a.conn.taskQueue}
	a.ShowLine(e, func() {
		a.Printf("serving  http://%s  task queue %s  pid %d\n", address, screen.Clean(e.TaskQueue), e.PID)
	})
}
