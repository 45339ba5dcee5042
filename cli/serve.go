package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/internal/sdklog"
	"superstep.dev/serve"
	"superstep.dev/serve/access"
	"superstep.dev/thread/secret/endpoint"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	listen              string
	ready               readyFile
	hosts, origins      []string
	webhooksAnywhere    bool
	store               storeFlag
	clientKeys          string
	issuer, jwks        string
	audience            []string
	rate                float64
	open                int
	connectTimeout      time.Duration
	logFormat, logLevel string
}

func (a operating) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := a.build(command{
		name: "serve",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.listen, "listen", "127.0.0.1:2024", "`HOST:PORT` to listen at; outside of this machine callers have to be known")
			flags.StringVar((*string)(&f.ready), "ready-file", "", "`FILE` to write the pid to while requests are answered")
			flags.StringSliceVar(&f.hosts, "host-name", nil, "further `NAME` under which requests may come, besides localhost")
			flags.StringSliceVar(&f.origins, "origin", nil, "`ORIGIN` of web pages that may use it, * for any (default: any; where callers are known only its own)")
			clientKeysVar(flags, &f.clientKeys)
			flags.StringVar(&f.issuer, "jwt-issuer", "", "`URL` of who issues the tokens of callers")
			flags.StringSliceVar(&f.audience, "jwt-audience", nil, "`NAME` of this server in such tokens")
			flags.StringVar(&f.jwks, "jwt-keys", "", "`URL` of the issuer's keys (default: where its discovery document says)")
			flags.Float64Var(&f.rate, "rate", 0, "requests a second of a caller, `N`, -1 for any (default 100 where callers are known, else any)")
			flags.IntVar(&f.open, "most-open", 0, "requests of a caller that are open at once, `N` (default 1000 where callers are known, else 4000)")
			flags.BoolVar(&f.webhooksAnywhere, "webhooks-anywhere", false, "let webhooks reach private addresses and this machine")
			flags.DurationVar(&f.connectTimeout, "connect-timeout", 30*time.Second, "`TIME` to wait for the server, its database, the storage and the store")
			f.store.register(flags)
			choiceVar(flags, &f.logFormat, "log-format", "console", []string{"console", "json"}, "`FORMAT`: console or json")
			choiceVar(flags, &f.logLevel, "log-level", "info", []string{"debug", "info", "warn", "error"}, "`LEVEL`: debug, info, warn or error")
		},
		run: func(ctx context.Context, _ []string) error { return a.answerClients(ctx, f) },
	})
	cmd.AddCommand(a.serveKeysCommand())
	return cmd
}

// checkListen refuses an address that others can reach, unless it is known who asks.
func checkListen(address string, known bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return usagef("--listen %s is not HOST:PORT", quoted(address))
	}
	if !known && !endpoint.Loopback(host) {
		return usagef("--listen %s can be reached by other machines, and nobody is asked who they are: give --client-keys FILE or --jwt-issuer URL, "+
			"or listen at a loopback address, such as 127.0.0.1:%s", quoted(address), port)
	}
	return nil
}

// checkLimits refuses limits that are none, and origins that no browser sends.
func (f *serveFlags) checkLimits() error {
	for _, origin := range f.origins {
		u, err := url.Parse(origin)
		if origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || !strings.EqualFold(origin, u.Scheme+"://"+u.Host)) {
			return usagef("--origin %s is neither of the form https://HOST nor *", quoted(origin))
		}
	}
	if f.rate != -1 && !(f.rate >= 0 && f.rate <= maxRate) { // also what is no number
		return usagef("--rate %v is not between 0 and %d, and not -1 for any", f.rate, maxRate)
	}
	if f.connectTimeout <= 0 {
		return usagef("--connect-timeout %v is not above 0", f.connectTimeout)
	}
	return checkBetween("--most-open", f.open, 0, 1_000_000)
}

// maxRate bounds --rate.
const maxRate = 1_000_000

// authentication is how it is found out who asks, nil where nobody is asked. done ends what that needs.
func (a operating) authentication(f serveFlags, logger *zap.Logger) (way access.Authenticate, done func(), err error) {
	var ways []access.Authenticate
	done = func() {}
	file := f.clientKeys
	if file == "" {
		file, _ = a.env.LookupEnv(envClientKeys)
	}
	var reserved func(string) bool
	if file != "" {
		keys, err := access.KeysIn(file)
		if err != nil {
			return nil, nil, usagef("--client-keys: %w", err)
		}
		ways, reserved = append(ways, keys.Authenticate), keys.Has
	}
	if f.issuer != "" || f.jwks != "" || len(f.audience) > 0 {
		tokens, err := access.NewTokens(access.TokensConfig{Issuer: f.issuer, Audience: f.audience, JWKS: f.jwks, Reserved: reserved,
			Failed: func(err error) { logger.Error("the keys of the tokens' issuer could not be asked for", zap.Error(err)) }})
		if err != nil {
			return nil, nil, usagef("--jwt-issuer, --jwt-audience and --jwt-keys: %w", err)
		}
		ways, done = append(ways, tokens.Authenticate), tokens.Close
	}
	if len(ways) == 0 {
		return nil, done, nil
	}
	return access.First(ways...), done, nil
}

// answerClients serves until ctx ends.
func (a operating) answerClients(ctx context.Context, f serveFlags) error {
	if err := f.checkLimits(); err != nil {
		return err
	}
	logger := newLogger(a.secrets.Writer(a.stderr), f.logFormat, f.logLevel)
	cfg := serve.Config{Hosts: f.hosts, Origins: f.origins, WebhooksAnywhere: f.webhooksAnywhere, Logger: logger, Limits: serve.Limits{Rate: f.rate, Open: f.open}}
	way, done, err := a.authentication(f, logger)
	if err != nil {
		return err
	}
	defer done()
	if cfg.Authenticate = way; a.serving != nil {
		a.serving(&cfg)
	}
	if err := checkListen(f.listen, cfg.Authenticate != nil); err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(f.listen); host != "" && !net.ParseIP(host).IsUnspecified() {
		cfg.Hosts = append(cfg.Hosts, host)
	}
	soon, stop := context.WithTimeout(ctx, f.connectTimeout) // for all that has to be there, together
	defer stop()
	var opts client.Options
	if err := await(soon, logger, func() error {
		opts, err = a.clientOptions()
		return err
	}); err != nil {
		return interrupted(ctx, err, "stopped before the server was ready")
	}
	opts = superstep.Encoded(opts)
	opts.Logger = sdklog.New(logger.Named("temporal"))
	if opts.ConnectionOptions.GrpcCompression == nil { // what records say is short, and compressing it took a fifteenth of the process's time
		opts.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	c, opts, err := a.reach(soon, opts, f.connectTimeout, logger)
	if err != nil {
		return interrupted(ctx, err, "stopped before the server was ready")
	}
	defer c.Close()
	memory, err := a.reachStore(soon, f.store, c, opts, logger)
	if err != nil {
		return interrupted(ctx, err, "stopped before the server was ready")
	}
	defer memory.Close()
	cfg.Temporal, cfg.TaskQueue, cfg.Namespace, cfg.DataConverter, cfg.Store = c, a.conn.taskQueue, opts.Namespace, opts.DataConverter, memory
	return a.listen(ctx, cfg, opts, f)
}

// listen answers requests over a connection until ctx ends; then those under way have some seconds.
func (a operating) listen(ctx context.Context, cfg serve.Config, opts client.Options, f serveFlags) error {
	as := superstep.ClientConfig{TaskQueue: a.conn.taskQueue, Namespace: opts.Namespace, Graphs: a.graphs,
		DataConverter: opts.DataConverter, FailureConverter: opts.FailureConverter, Storage: a.storage}
	if tokens := a.liveTokens(ctx, cfg.Temporal, opts, cfg.Logger); tokens != nil {
		defer tokens.Close()
		as.Transport = tokens
	}
	listener, err := net.Listen("tcp", f.listen) // before the server's own worker begins, which would take tasks and leave them
	if err != nil {
		return notBegun("--listen", err)
	}
	defer listener.Close()
	threads, err := superstep.NewClient(cfg.Temporal, as)
	if err != nil {
		return err
	}
	handler, err := serve.Handler(threads, cfg)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer handler.Close()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	server.RegisterOnShutdown(handler.Drain)
	if err := serveUntil(ctx, server, listener, f.ready, func() { a.showServing(listener.Addr().String(), cfg.Authenticate != nil) }); err != nil {
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
	// Known says that callers are asked who they are.
	Known bool `json:"callers_known"`
}

func (a operating) showServing(address string, known bool) {
	e := serveEvent{Event: "ready", PID: os.Getpid(), Address: address, TaskQueue: a.conn.taskQueue, Known: known}
	a.ShowLine(e, func() {
		a.Printf("serving  http://%s  task queue %s  pid %d\n", address, screen.Clean(e.TaskQueue), e.PID)
	})
}

// envClientKeys names the file of the keys of serve's clients.
const envClientKeys = "SUPERSTEP_CLIENT_KEYS"

func (a operating) serveKeysCommand() *cobra.Command {
	cmd := a.parent("serve keys")
	cmd.AddCommand(a.newClientKeyCommand(), a.listClientKeysCommand(), a.removeClientKeyCommand())
	return cmd
}

// clientKeysVar declares the flag of the file.
func clientKeysVar(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "client-keys", "", "`FILE` with what keys of clients are known by ("+envClientKeys+")")
}

// clientKeysFile is the file that a command is about.
func (a operating) clientKeysFile(flag string) (string, error) {
	if flag == "" {
		flag, _ = a.env.LookupEnv(envClientKeys)
	}
	if flag == "" {
		return "", usagef("no file of keys is named: give --client-keys FILE or set %s", envClientKeys)
	}
	return flag, nil
}

// clientKeyItem is a key as it is kept: without the key.
type clientKeyItem struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Permissions []string  `json:"permissions,omitempty"`
	Made        time.Time `json:"made"`
}

// newClientKey is a key for programs: the only time that it is shown.
type newClientKey struct {
	clientKeyItem
	Key  string `json:"key"`
	File string `json:"file"`
}

func itemOf(k access.Key) clientKeyItem { return clientKeyItem{k.ID, k.Name, k.Permissions, k.Made} }

func (a operating) newClientKeyCommand() *cobra.Command {
	var file string
	var admin bool
	return a.build(command{
		name: "serve keys new",
		flags: func(flags *pflag.FlagSet) {
			clientKeysVar(flags, &file)
			flags.BoolVar(&admin, "admin", false, "let NAME see and change what is of others")
		},
		run: func(_ context.Context, args []string) error {
			path, err := a.clientKeysFile(file)
			if err != nil {
				return err
			}
			who := access.Identity{Name: args[0]}
			if admin {
				who.Permissions = []string{access.Admin}
			}
			key, secret, err := access.NewKey(who, a.Now())
			if err != nil {
				return wrongUse(err)
			}
			if err := addClientKey(path, key); err != nil {
				return err
			}
			a.Show(newClientKey{itemOf(key), secret, path}, func() { a.Printf("%s\n", secret) })
			return nil
		},
	})
}

// addClientKey puts a key into a file, which it makes when there is none.
func addClientKey(path string, key access.Key) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return writeNew(path, access.KeysText([]access.Key{key}), 0o600)
	}
	_, err := changeClientKeys(path, func(keys []access.Key) ([]access.Key, error) { return append(keys, key), nil })
	return err
}

func changeClientKeys(path string, change func([]access.Key) ([]access.Key, error)) (keys []access.Key, err error) {
	err = replaceFile("--client-keys", path, func(path string) ([]byte, error) {
		text, err := os.ReadFile(path)
		if err == nil {
			keys, err = access.ParseKeys(text)
		}
		if err == nil {
			keys, err = change(keys)
		}
		if err != nil {
			return nil, wrongUse(fmt.Errorf("%s: %w", quoted(path), err))
		}
		return access.KeysText(keys), nil
	})
	return keys, err
}

// clientKeysView is what a file of keys holds.
type clientKeysView struct {
	File string          `json:"file"`
	Keys []clientKeyItem `json:"keys"`
}

func (a operating) showClientKeys(path string, keys []access.Key) {
	v := clientKeysView{File: path, Keys: []clientKeyItem{}}
	for _, k := range keys {
		v.Keys = append(v.Keys, itemOf(k))
	}
	a.Show(v, func() {
		a.Printf("keys of %s\n", screen.Clean(path))
		t := a.Table("KEY", "NAME", "MADE", "PERMISSIONS")
		for _, k := range v.Keys {
			t.Row(k.ID, k.Name, k.Made.Format(time.RFC3339), screen.List(k.Permissions))
		}
		t.Print("  ")
	})
}

func (a operating) listClientKeysCommand() *cobra.Command {
	var file string
	return a.build(command{
		name:  "serve keys list",
		flags: func(flags *pflag.FlagSet) { clientKeysVar(flags, &file) },
		run: func(context.Context, []string) error {
			path, err := a.clientKeysFile(file)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return usagef("--client-keys: %w", err)
			}
			keys, err := access.ParseKeys(text)
			if err != nil {
				return wrongUse(fmt.Errorf("%s: %w", quoted(path), err))
			}
			a.showClientKeys(path, keys)
			return nil
		},
	})
}

func (a operating) removeClientKeyCommand() *cobra.Command {
	var file string
	return a.build(command{
		name:  "serve keys remove",
		flags: func(flags *pflag.FlagSet) { clientKeysVar(flags, &file) },
		run: func(_ context.Context, args []string) error {
			path, err := a.clientKeysFile(file)
			if err != nil {
				return err
			}
			keys, err := changeClientKeys(path, func(keys []access.Key) ([]access.Key, error) {
				left := slices.DeleteFunc(slices.Clone(keys), func(k access.Key) bool { return k.ID == args[0] })
				if len(left) == len(keys) {
					return nil, fmt.Errorf("there is no key %s", quoted(args[0]))
				}
				return left, nil
			})
			if err != nil {
				return err
			}
			a.showClientKeys(path, keys)
			return nil
		},
	})
}
