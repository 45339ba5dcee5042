package stack

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortThatIsTakenIsLeftAlone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	taken := l.Addr().String()
	s := &Stack{}
	require.Equal(t, "0", s.port(taken))
	require.NoError(t, l.Close())
	_, port, err := net.SplitHostPort(taken)
	require.NoError(t, err)
	require.Equal(t, port, s.port(taken))
	s.cfg.AnyPort = true
	require.Equal(t, "0", s.port(taken))
}

func TestEnvKeepsOtherConnectionsOut(t *testing.T) {
	t.Setenv("TEMPORAL_API_KEY", "of another server")
	t.Setenv("TEMPORAL_ADDRESS", "other:7233")
	t.Setenv("PAYMENTS_URL", "http://other")
	t.Setenv("OTHER", "kept")
	env := (&Stack{Address: "mine:1", Payments: "http://mine:2", cfg: Config{Dir: "dir"}}).Env()
	require.Subset(t, env, []string{"OTHER=kept", "TEMPORAL_ADDRESS=mine:1", "PAYMENTS_URL=http://mine:2",
		"TEMPORAL_CONFIG_FILE=" + filepath.Join("dir", "temporal.toml")})
	for _, other := range []string{"TEMPORAL_API_KEY=of another server", "TEMPORAL_ADDRESS=other:7233", "PAYMENTS_URL=http://other"} {
		require.NotContains(t, env, other)
	}
}

func TestBuildEnvHasNoRaceDetector(t *testing.T) {
	t.Setenv("GOFLAGS", "-race -mod=mod")
	env := buildEnv("work")
	require.Equal(t, []string{"GOFLAGS=-mod=mod", "GOTMPDIR=work"}, env[len(env)-2:])
}

func TestLockIsHeldByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	require.NoError(t, err)
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	_, err = lock(ctx, path)
	require.ErrorIs(t, err, reason)
	unlock()
	again, err := lock(t.Context(), path)
	require.NoError(t, err)
	again()
}

func TestRootIsTheRepository(t *testing.T) {
	root, err := Root(t.Context())
	require.NoError(t, err)
	for _, source := range sources {
		require.DirExists(t, filepath.Join(root, filepath.FromSlash(source)))
	}
}
