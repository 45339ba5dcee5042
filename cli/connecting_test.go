package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"superstep.dev/thread"

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
