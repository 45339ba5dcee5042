package nats_test

import (
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread/live"
	"superstep.dev/thread/live/nats"
)

// BenchmarkEmission is one emission from a publisher to a subscriber, each with a connection of its own; "bare" is one message of that
// size between two clients of the same server.
func BenchmarkEmission(b *testing.B) {
	server := testserver.StartNATS(b)
	b.Run("bare", func(b *testing.B) {
		from, to := connected(b, server.URL), connected(b, server.URL)
		comes := make(chan *natsgo.Msg, 1)
		_, err := to.ChanSubscribe("bare", comes)
		require.NoError(b, err)
		require.NoError(b, to.Flush())
		data := make([]byte, 300)
		for b.Loop() {
			require.NoError(b, from.Publish("bare", data))
			<-comes
		}
	})
	b.Run("transport", func(b *testing.B) {
		from, to := opens(b, server.URL), opens(b, server.URL)
		comes, err := to.Subscribe(b.Context(), "t")
		require.NoError(b, err)
		e := live.Emission{Thread: "t", Run: "r", Task: "1/say", Execution: 1}
		e.Emission.Value = []byte(`"a word"`)
		for b.Loop() {
			require.NoError(b, from.Publish(b.Context(), e))
			<-comes
			e.Sequence++
		}
	})
}

func connected(b *testing.B, url string) *natsgo.Conn {
	c, err := natsgo.Connect(url)
	require.NoError(b, err)
	b.Cleanup(c.Close)
	return c
}

func opens(b *testing.B, url string) *nats.Transport {
	t, err := nats.Open(nats.Config{URL: url})
	require.NoError(b, err)
	b.Cleanup(t.Close)
	return t
}
