package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// TestNotifyFlags: a worker tells the URLs that it is given, when it has a secret to sign with, and nobody otherwise.
func TestNotifyFlags(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	work := func(args ...string) (cfg superstep.WorkerConfig, code int, stderr string) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r, code, _, stderr := workWith(t, ctx, func(ctx context.Context, ready func()) error {
			stop()
			return untilDone(ctx, ready)
		}, args...)
		return r.cfg, code, stderr
	}
	cfg, code, _ := work()
	require.Zero(t, code)
	require.Nil(t, cfg.Notify)

	_, code, stderr := work("--notify-url", "https://a.example/hush")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "SUPERSTEP_NOTIFY_SECRET")
	require.Contains(t, stderr, "openssl rand")
	require.NotContains(t, stderr, "hush")

	_, code, stderr = work("--notify-link", "https://ask.example/{thread}")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "goes with --notify-url")

	a, _, _ := testApp(t, &script{}, "")
	a.env = environment{envNotifySecret: secret}
	told, err := operating{a}.openNotifier(notifyFlags{urls: []string{"https://a.example/1", "http://b.example"}})
	require.NoError(t, err)
	require.Len(t, told.Targets(), 2)
}
