// Command service is a web server with threads for clients of the agent server's protocol, and the page of the chat example beside them:
//
//	go run ./examples/chat/service
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/approval/token"
	"superstep.dev/examples/chat/page"
	"superstep.dev/serve"
	"superstep.dev/thread/live/nats"
	"superstep.dev/thread/storage"
)

func main() { os.Exit(run(os.Args[1:])) }

// settings are the flags.
type settings struct{ listen, origins, key string }

func run(args []string) (exit int) {
	var s settings
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.StringVar(&s.listen, "listen", "127.0.0.1:2024", "`HOST:PORT` of this machine to listen at; nobody is asked who they are, so others must not reach it")
	flags.StringVar(&s.origins, "origin", "", "`ORIGINS` of further web pages that may use the threads, with commas between them: http://localhost:3000")
	flags.StringVar(&s.key, "key", "", "private key `FILE` of the person who approves at the page (default: nobody does)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.serve(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		return 1
	}
	return 0
}

// serve answers requests until ctx ends.
func (s settings) serve(ctx context.Context) error {
	host, _, err := net.SplitHostPort(s.listen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %q: want a HOST:PORT of this machine, such as 127.0.0.1:2024", s.listen)
	}
	var signer *token.Signer
	if s.key != "" {
		if signer, err = token.LoadSigner(s.key); err != nil {
			return fmt.Errorf("--key: %w", err)
		}
	}
	log, err := zap.NewProduction()
	if err != nil {
		return err
	}
	temporal, threads, done, err := connect(ctx, log)
	if err != nil {
		return err
	}
	defer done()
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	at := listener.Addr().(*net.TCPAddr)
	own := fmt.Sprintf("http://%s,http://localhost:%d", at, at.Port)

	agents, err := serve.Handler(threads, serve.Config{Temporal: temporal, Origins: strings.FieldsFunc(own+","+s.origins, comma), Logger: log})
	if err != nil {
		return err
	}
	defer agents.Close()
	mux := http.NewServeMux()
	mux.Handle("/", agents)
	mux.Handle("/chat/", page.Handler(page.Config{Threads: threads, Signer: signer}))

	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	server.RegisterOnShutdown(agents.Drain)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Printf("chat  http://%s/chat/\n", at)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, stop := context.WithTimeout(context.Background(), 3*time.Second) // streams would stay open for as long as their clients do
	defer stop()
	if server.Shutdown(last) != nil {
		return server.Close()
	}
	return nil
}

func comma(r rune) bool { return r == ',' || r == ' ' }

// connect reaches the Temporal server that TEMPORAL_ADDRESS and its like name, and what a devserver of this machine says of large values
// and live tokens.
func connect(ctx context.Context, log *zap.Logger) (temporal client.Client, threads *superstep.Client, done func(), err error) {
	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, nil, nil, err
	}
	namespace := cmp.Or(opts.Namespace, client.DefaultNamespace)
	opts.Logger = quiet{}
	first, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("connect to the Temporal server: %w", err)
	}
	values, err := storage.Announced(ctx, first, namespace, storage.Options{})
	if err != nil {
		first.Close()
		return nil, nil, nil, err
	}
	if values != nil {
		opts.ExternalStorage = values.External()
	}
	opts = superstep.Encoded(opts)
	temporal, err = client.NewClientFromExistingWithContext(ctx, first, opts)
	first.Close()
	if err != nil {
		return nil, nil, nil, err
	}
	cfg := superstep.ClientConfig{Namespace: namespace, Storage: values, DataConverter: opts.DataConverter, FailureConverter: opts.FailureConverter}
	done = temporal.Close
	url, err := nats.Announced(ctx, temporal, namespace)
	if err == nil && url != "" {
		tokens, err := nats.Open(nats.Config{URL: url, Namespace: namespace, DataConverter: opts.DataConverter, Logger: log})
		if err != nil {
			temporal.Close()
			return nil, nil, nil, err
		}
		cfg.Transport, done = tokens, func() { tokens.Close(); temporal.Close() }
	}
	if threads, err = superstep.NewClient(temporal, cfg); err != nil {
		done()
		return nil, nil, nil, err
	}
	return temporal, threads, done, nil
}

// quiet keeps Temporal's own lines out of the log: errors are returned.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
