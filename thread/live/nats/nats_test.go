package nats_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphtest/transporttest"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread/live"
	"superstep.dev/thread/live/nats"
)

// opened returns what opens transports over a server, each for threads of a namespace of its own.
func opened(t *testing.T, url string) func() live.Transport {
	return func() live.Transport { return open(t, nats.Config{URL: url, Namespace: testserver.Queue(t)}) }
}

// short skips the kit, which publishes some hundred megabytes.
func short(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute for each kind of server")
	}
}

func open(t *testing.T, cfg nats.Config) *nats.Transport {
	t.Helper()
	transport, err := nats.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(transport.Close)
	return transport
}

// TestWithinTheDevserver: a devserver says where live tokens go, and carries them as a transport must.
func TestWithinTheDevserver(t *testing.T) {
	short(t)
	server := testserver.Start(t, testserver.Options{Live: true})
	c, err := client.DialContext(t.Context(), client.Options{HostPort: server.Address()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	url, err := nats.Announced(t.Context(), c, "default")
	require.NoError(t, err)
	transporttest.Run(t, opened(t, url))
}

// TestOverAServer: a nats-server that is a process.
func TestOverAServer(t *testing.T) {
	short(t)
	for _, storage := range []string{"file", "memory"} {
		t.Run(storage, func(t *testing.T) {
			transporttest.Run(t, opened(t, testserver.StartNATS(t).URL+"?storage="+storage))
		})
	}
}
