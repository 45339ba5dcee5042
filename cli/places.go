package cli

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/store"
	"superstep.dev/store/postgres"
	"superstep.dev/store/sqlite"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
	"superstep.dev/thread/live/nats"
	"superstep.dev/thread/storage"
	"superstep.dev/thread/storage/s3"
)

// noStorage is the value of --storage that leaves large values in the histories, and of --store that has no store, whatever the server says.
const noStorage = "none"

// openStorage opens the place of large values that flags or the environment name, nil when they name none.
func openStorage(place string) (*storage.Storage, error) {
	var s *storage.Storage
	var err error
	switch {
	case place == "", place == noStorage:
		return nil, nil
	case s3.Is(place):
		var bucket s3.Config
		if bucket, err = s3.Parse(place); err == nil {
			s, err = s3.Open(context.Background(), bucket, storage.Options{})
		}
	default:
		s, err = storage.Files(place, storage.Options{})
	}
	switch {
	case errors.Is(err, storage.ErrUnavailable): // it may be there again
		return nil, &thread.Error{Kind: thread.ErrStorage, Message: "--storage", Cause: err}
	case err != nil:
		return nil, usagef("--storage: %w", err)
	}
	return s, nil
}

const (
	// envStore names the store where --store does not.
	envStore = "SUPERSTEP_STORE"
	// announcedStore is the entry of a namespace's data with the folder of a devserver's store, and storeFile the file in it.
	announcedStore = "superstep.store"
	storeFile      = "store.db"
)

// storeFlag is where graphs' long-term memory lies.
type storeFlag struct{ place string }

func (f *storeFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.place, "store", "", "`PLACE` of the store of graphs, the same for all: a SQLite file, postgres://USER@HOST/DATABASE or none ("+envStore+
		"; default what a devserver of this machine says)")
}

// storePlace is where the store lies, "" when nobody said. A flag is seen by everybody on the machine, so it may have no password.
func (a *app) storePlace(f storeFlag) (string, error) {
	if f.place == "" {
		place, _ := a.env.LookupEnv(envStore)
		if u, err := url.Parse(place); err == nil {
			password, _ := u.User.Password()
			a.secrets.Keep(password)
		}
		return place, nil
	}
	if u, err := url.Parse(f.place); isDatabase(f.place) && (err != nil || hasPassword(u)) {
		return "", usagef("--store has a password, or cannot be read: everybody on the machine sees a command line, so give a password by %s, PGPASSWORD or ~/.pgpass",
			envStore)
	}
	return f.place, nil
}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

func isDatabase(place string) bool {
	return strings.HasPrefix(place, "postgres://") || strings.HasPrefix(place, "postgresql://")
}

// openStore opens the store of a place, nil for none.
func (a *app) openStore(ctx context.Context, place string) (s *superstep.Store, err error) {
	opts := store.Options{Index: a.index}
	switch {
	case place == "", place == noStorage:
		return nil, nil
	case isDatabase(place):
		s, err = postgres.Open(ctx, place, opts)
	default:
		s, err = sqlite.Open(place, opts)
	}
	if errors.Is(err, store.ErrBadInput) {
		return nil, usagef("--store: %w", err)
	}
	return s, err
}

// findStore opens the store that the flag or the environment name, or else that of a devserver of this machine. It is nil where there is none.
func (a *app) findStore(ctx context.Context, f storeFlag, c client.Client, opts client.Options) (*superstep.Store, error) {
	place, err := a.storePlace(f)
	if err != nil {
		return nil, err
	}
	if place == "" && a.backend.folder != nil && isLoopback(opts.HostPort) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		folder, err := a.backend.folder(ctx, c, opts.Namespace, announcedStore)
		if err != nil && (ctx.Err() != nil || isServers(err)) {
			return nil, outOfWork(err)
		}
		if err != nil {
			return nil, usagef("the store of the devserver%s: %w: give its place by --store, or --store %s to do without", prefixed(" in ", folder), err, noStorage)
		}
		if folder != "" {
			place = filepath.Join(folder, storeFile)
		}
	}
	return a.openStore(ctx, place)
}

// prefixed is a text behind another one, "" for no text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// noLive is the value of --live that has what nodes emit come with their results, whatever the server says.
const noLive = "none"

// livePlace is where live tokens go, "" when nobody said.
func (c *connection) livePlace() string {
	if c.conn.live != "" {
		return c.conn.live
	}
	place, _ := c.env.LookupEnv("SUPERSTEP_LIVE")
	return place
}

// checkLive refuses an address of live tokens that cannot be one, before anything is connected.
func (c *connection) checkLive() error {
	if place := c.livePlace(); place != "" && place != noLive {
		if _, err := nats.Open(nats.Config{URL: place}); err != nil {
			return usagef("--live: %w", err)
		}
	}
	return nil
}

// liveTokens returns the transport of live tokens that flags or the environment name, or that the namespace of a server of this machine
// does; nil for none. It connects when it is first used. That live tokens go nowhere is no failure: they come with the results.
func (c *connection) liveTokens(ctx context.Context, own client.Client, opts client.Options, logger *zap.Logger) *nats.Transport {
	place := c.livePlace()
	if place == "" && c.backend.announcedLive != nil && isLoopback(opts.HostPort) {
		asked, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		var err error
		if place, err = c.backend.announcedLive(asked, own, opts.Namespace); err != nil {
			logger.Warn("no live tokens: what nodes emit comes with their results", zap.Error(err))
		}
	}
	if place == "" || place == noLive {
		return nil
	}
	t, err := nats.Open(nats.Config{URL: place, Namespace: opts.Namespace, DataConverter: opts.DataConverter, Logger: logger.Named("live")})
	if err != nil {
		logger.Warn("no live tokens: what nodes emit comes with their results", zap.Error(err))
		return nil
	}
	return t
}

// lazyLive is the reading end of a transport that is looked for when somebody subscribes: most commands do not.
type lazyLive struct {
	once sync.Once
	find func() *nats.Transport
	mu   sync.Mutex
	to   *nats.Transport
}

// Publish implements live.Transport. Commands run no nodes.
func (*lazyLive) Publish(context.Context, live.Emission) error { return nil }

// Ended implements live.Transport.
func (*lazyLive) Ended(context.Context, live.Task) error { return nil }

// Subscribe implements live.Transport.
func (l *lazyLive) Subscribe(ctx context.Context, thread string) (<-chan live.Emission, error) {
	l.once.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.to = l.find()
	})
	if l.to == nil {
		nothing := make(chan live.Emission)
		close(nothing)
		return nothing, nil
	}
	return l.to.Subscribe(ctx, thread)
}

// close ends it, when it was found.
func (l *lazyLive) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to != nil {
		l.to.Close()
	}
}
