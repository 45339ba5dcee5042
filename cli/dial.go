package cli

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"superstep.dev"
)

// dialTimeout bounds one attempt to reach the server. A refused connection is noticed at once; this is for addresses
// that swallow packets.
const dialTimeout = 5 * time.Second

// dial connects to the server and asks it who it is, so that a wrong address shows here and not in the first command.
func dial(ctx context.Context, opts client.Options) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, dialError(opts, err)
	}
	return c, nil
}

// dialError says in the user's terms why there is no connection.
func dialError(opts client.Options, err error) error {
	e := &superstep.Error{Kind: superstep.ErrNoServer, Cause: shortCause{err}}
	text := err.Error()
	switch {
	case isRefusal(err):
		e.Message = "the server at " + opts.HostPort + " does not accept the credentials"
		e.Do = "Check TEMPORAL_API_KEY or --api-key-file"
	case opts.ConnectionOptions.TLS != nil && (strings.Contains(text, "tls:") || strings.Contains(text, "x509:")):
		e.Message = "no TLS connection to " + opts.HostPort
		e.Do = "Check --tls-ca, --tls-server-name and --tls-cert"
	case isLoopback(opts.HostPort):
		e.Message, e.Cause = "no Temporal server at "+opts.HostPort, nil // "connection refused" adds nothing
		e.Do = "Start one (Superstep's devserver, or temporal server start-dev), or name another one with --address"
	default:
		e.Message = "no Temporal server at " + opts.HostPort
		e.Do = "Check --address or TEMPORAL_ADDRESS"
	}
	return e
}

// isRefusal reports whether a server answered and said no; asking again will not help.
func isRefusal(err error) bool {
	switch serviceerror.ToStatus(err).Code() {
	case codes.PermissionDenied, codes.Unauthenticated:
		return true
	default:
		return false
	}
}

// isLoopback reports whether an address is on this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// shortCause is an error of the connection without the layers of wrapping that say nothing to a user.
type shortCause struct{ error }

// Error implements error.
func (c shortCause) Error() string {
	text := c.error.Error()
	for _, layer := range []string{"failed reaching server: ", "transport: ", "authentication handshake failed: "} {
		text = strings.Replace(text, layer, "", 1)
	}
	if _, reason, ok := strings.Cut(text, "desc = "); ok {
		text = reason
	}
	return strings.Trim(text, `"`)
}

// Unwrap gives the whole error.
func (c shortCause) Unwrap() error { return c.error }

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
		if !waited(ctx, wait) {
			return nil, err
		}
		wait = min(2*wait, lastRedial)
	}
}

// waited waits for d and reports whether ctx is still open then.
func waited(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
