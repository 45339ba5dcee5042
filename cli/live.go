package cli

import (
	"context"
	"sync"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"superstep.dev/thread/live"
	"superstep.dev/thread/live/nats"
)

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
