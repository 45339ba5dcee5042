package cli

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"superstep.dev"
)

// The waits between attempts to reach the server.
const (
	firstRedial = 250 * time.Millisecond
	lastRedial  = 4 * time.Second
)

// connecting dials until a server answers: a worker is often started together with its server.
type connecting struct {
	dial    func(ctx context.Context, opts client.Options) (client.Client, error)
	timeout time.Duration
	logger  *zap.Logger
}

// connect returns a connection, or the last error after the timeout. A server that answers and refuses is final.
func (c connecting) connect(ctx context.Context, opts client.Options) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	wait := firstRedial
	for {
		conn, err := c.dial(ctx, opts)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, superstep.ErrNoServer) || isRefusal(err) {
			return nil, err
		}
		c.logger.Warn("no Temporal server yet", zap.String("address", opts.HostPort), zap.Duration("next_try_in", wait))
		if !pause(ctx, wait) {
			return nil, err
		}
		wait = min(2*wait, lastRedial)
	}
}

// pause waits for d and reports whether ctx is still open then.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
