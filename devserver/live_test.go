package main_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// liveOf is where a devserver's namespace says that live tokens go, nil for nowhere.
func liveOf(t *testing.T, s *running) *url.URL {
	t.Helper()
	said := announcement(t, s, "superstep.live")
	if said == "" {
		return nil
	}
	u, err := url.Parse(said)
	require.NoError(t, err)
	require.Equal(t, "nats", u.Scheme)
	require.Equal(t, "127.0.0.1", u.Hostname(), "on loopback, whatever else listens elsewhere")
	return u
}

// greeting is what the server at an address says to whoever connects, "" where nobody says anything.
func greeting(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	said := make([]byte, 4096)
	n, _ := conn.Read(said)
	return string(said[:n])
}

// Programs find the server of live tokens, at the same place over starts, a kill between them, and know it by its name. It keeps them beside
// the database file, in memory without one; it can be left out, and then the namespace says so.
func TestLiveTokensAreAnnounced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "runs.db")
	s := start(t, db, "--headless", "--ip", "0.0.0.0")
	first := liveOf(t, s)
	require.Equal(t, "file", first.Query().Get("storage"))
	said := greeting(t, first.Host)
	require.Contains(t, said, `"server_name":"`+first.Query().Get("id")+`"`)
	require.Contains(t, said, `"jetstream":true`)
	info, err := os.Stat(db + ".live")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	s.kill(t)

	s = start(t, db, "--headless", "--live-port", first.Port())
	require.Equal(t, first, liveOf(t, s))
	require.Zero(t, s.stop(t))
	// Another process may have the port by now.
	require.NotContains(t, greeting(t, first.Host), first.Query().Get("id"))

	s = start(t, db, "--headless", "--live", "none")
	require.Nil(t, liveOf(t, s))
	require.Zero(t, s.stop(t))

	temporary := t.TempDir()
	s = ready(t, launchIn(t, []string{"TMPDIR=" + temporary}, "--db", ":memory:", "--port", "0", "--headless"))
	require.Equal(t, "memory", liveOf(t, s).Query().Get("storage"))
	require.NoDirExists(t, filepath.Join(s.cmd.Dir, ":memory:.live"))
	require.Zero(t, s.stop(t))
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A port that is taken and a directory that cannot be are refused, with what to do.
func TestNoServerOfLiveTokens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	port := strings.TrimPrefix(l.Addr().String(), "127.0.0.1:")
	requireRefused(t, launch(t, "--db", ":memory:", "--port", "0", "--headless", "--live-port", port), "choose another --live-port")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	requireRefused(t, launch(t, "--db", ":memory:", "--port", "0", "--headless", "--live", file), "choose another --live")
}
