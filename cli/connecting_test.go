package cli

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"

	"superstep.dev"
)

// dialing returns a dialer that fails for the given time.
func dialing(down time.Duration, failure error) func(context.Context, client.Options) (client.Client, error) {
	up := time.Now().Add(down)
	return func(_ context.Context, opts client.Options) (client.Client, error) {
		if time.Now().Before(up) {
			return nil, dialError(opts, failure)
		}
		return closable{}, nil
	}
}

func TestConnectingWaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		began := time.Now()
		c := connecting{dialing(6*time.Second, errors.New("refused")), 30 * time.Second, zap.New(core)}
		conn, err := c.connect(t.Context(), client.Options{HostPort: "127.0.0.1:7233"})
		require.NoError(t, err)
		require.NotNil(t, conn)
		require.Equal(t, 7750*time.Millisecond, time.Since(began)) // 0.25 + 0.5 + 1 + 2 + 4
		require.Equal(t, 5, logs.Len())
		require.Equal(t, "127.0.0.1:7233", logs.All()[0].ContextMap()["address"])
	})
}

func TestConnectingGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := connecting{dialing(time.Hour, errors.New("refused")), 30 * time.Second, zap.NewNop()}
		_, err := c.connect(t.Context(), client.Options{HostPort: "127.0.0.1:7233"})
		require.ErrorIs(t, err, thread.ErrNoServer)
		require.ErrorContains(t, err, "Start one")
		require.Equal(t, 30*time.Second, time.Since(began))
	})
}

func TestConnectingTakesNoForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := connecting{dialing(time.Hour, status.Error(codes.PermissionDenied, "no")), 30 * time.Second, zap.NewNop()}
		_, err := c.connect(t.Context(), client.Options{HostPort: "127.0.0.1:7233"})
		require.ErrorContains(t, err, "does not accept the credentials")
		require.Zero(t, time.Since(began))
	})
}

// A server whose database is away, and a store that is away, are waited for as a server is.
func TestConnectingWaitsForWhatIsBehindTheServer(t *testing.T) {
	for _, command := range []string{"worker", "serve"} {
		synctest.Test(t, func(t *testing.T) {
			a, _, stderr := testApp(t, &script{}, "")
			a.graphs = []superstep.Runnable{drawn{"refund"}}
			began := time.Now()
			away := func(until time.Duration) error {
				if time.Since(began) < until {
					return serviceerror.NewUnavailable("no usable database connection found")
				}
				return nil
			}
			a.backend.dial = dialing(time.Second, errors.New("refused"))
			a.backend.works = func(context.Context, client.Client, string) error {
				if err := away(6 * time.Second); err != nil {
					return outOfWork(err)
				}
				return nil
			}
			a.backend.announced = func(context.Context, client.Client, string) (*storage.Storage, error) {
				return nil, away(12 * time.Second)
			}
			a.backend.folder = func(context.Context, client.Client, string, string) (string, error) {
				return "nowhere", cmp.Or(away(20*time.Second), errors.New("asked at last"))
			}
			require.Equal(t, ExitUsage, a.run(t.Context(), []string{command, "--connect-timeout", "60s"}))
			require.Contains(t, stderr.String(), "asked at last")
			require.GreaterOrEqual(t, time.Since(began), 20*time.Second)

			began = time.Now()
			require.Equal(t, ExitUnreachable, a.run(t.Context(), []string{command, "--connect-timeout", "5s"}))
			require.Equal(t, 5*time.Second, time.Since(began))
			require.Contains(t, stderr.String(), "cannot do its work")
		})
	}
}

func TestConnectingStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a, _, stderr := testApp(t, &script{}, "")
		a.graphs = []superstep.Runnable{drawn{"refund"}}
		a.backend.dial = dialing(time.Hour, errors.New("refused"))
		require.Equal(t, ExitInterrupted, a.run(ctx, []string{"worker", "--log-level", "error"}))
		require.Equal(t, "stopped before the worker was ready\n", stderr.String())
	})
}
