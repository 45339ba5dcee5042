package main_test

import (
	"bytes"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireRefused holds p to the promise about starts that cannot be: exit code 1,
// nothing on stdout, and one line on stderr that has the hint.
func requireRefused(t *testing.T, p *process, hint string) {
	t.Helper()
	require.Equal(t, 1, p.exitCode(t))
	require.Empty(t, <-p.line)
	message := p.stderr.String()
	require.Equal(t, 1, strings.Count(message, "\n"), "one line: %s", message)
	require.True(t, strings.HasPrefix(message, "devserver: "), message)
	require.Contains(t, message, hint)
}

func TestRefusesPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)

	requireRefused(t, launch(t, "--port", port, "--ui-port", "0"), "choose another --port")
	requireRefused(t, launch(t, "--port", "0", "--ui-port", port), "choose another --ui-port")
}

func TestRefusesSecondOnOneDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, ready := filepath.Join(dir, "runs.db"), filepath.Join(dir, "ready")
	first := start(t, db, "--headless", "--ready-file", ready)

	second := launch(t, "--db", db, "--port", "0", "--headless", "--ready-file", ready)
	requireRefused(t, second, "in use by another devserver (process "+strconv.Itoa(first.cmd.Process.Pid)+")")
	require.FileExists(t, ready, "the one that was refused leaves the ready file of the other alone")

	require.Zero(t, first.stop(t))
	require.Zero(t, start(t, db, "--headless").stop(t))
}

func TestRefusesUnusableDatabase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make func(t *testing.T, dir string) (db string)
		hint string
	}{
		"garbage":           {garbage, "cannot be read as an SQLite database"},
		"damaged":           {damaged, "cannot be read as an SQLite database"},
		"of something else": {foreign, "not a database of this Temporal server version"},
		"a directory":       {func(_ *testing.T, dir string) string { return dir }, "choose another --db"},
		"no such directory": {
			func(_ *testing.T, dir string) string { return filepath.Join(dir, "no", "runs.db") },
			"create it, or choose another --db",
		},
		"read only": {readOnly, "may not write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := test.make(t, t.TempDir())
			requireRefused(t, launch(t, "--db", db, "--port", "0", "--headless"), test.hint)
		})
	}
}

func garbage(t *testing.T, dir string) string {
	t.Helper()
	db := filepath.Join(dir, "garbage.db")
	require.NoError(t, os.WriteFile(db, bytes.Repeat([]byte("no database\n"), 1000), 0o600))
	return db
}

// damaged is a database that lost its middle: it still looks like one.
func damaged(t *testing.T, dir string) string {
	t.Helper()
	db := filepath.Join(dir, "damaged.db")
	require.Zero(t, start(t, db, "--headless").stop(t))
	content, err := os.ReadFile(db)
	require.NoError(t, err)
	const page = 4096
	for i := 2 * page; i < len(content)-page; i++ {
		content[i] = 0xAA
	}
	require.NoError(t, os.WriteFile(db, content, 0o600))
	return db
}

func foreign(t *testing.T, dir string) string {
	t.Helper()
	db := filepath.Join(dir, "foreign.db")
	conn, err := sql.Open("sqlite", db)
	require.NoError(t, err)
	_, err = conn.Exec("CREATE TABLE recipes (name TEXT)")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	return db
}

func readOnly(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write anything")
	}
	require.NoError(t, os.Chmod(dir, 0o500)) //nolint:gosec // a directory needs x
	return filepath.Join(dir, "runs.db")
}

func TestRefusesUnusableFlags(t *testing.T) {
	t.Parallel()
	for hint, args := range map[string][]string{
		"--ip \"localhost\" is not an IP address":     {"--ip", "localhost"},
		"192.0.2.1 is not an address of this machine": {"--ip", "192.0.2.1", "--port", "0", "--db", ":memory:"},
		"--port 70000 is not a port":                  {"--port", "70000"},
		"--live-port 65536 is not a port":             {"--live-port", "65536"},
		"--ui-port -1 is not a port":                  {"--ui-port", "-1"},
		"--log-level \"loud\" is not a level":         {"--log-level", "loud"},
		"--db is empty":                               {"--db", ""},
		"--db and --postgres exclude each other":      {"--db", "runs.db", "--postgres", "postgres://me@localhost/superstep"},
		"--postgres is empty":                         {"--postgres", ""},
		"unknown flag: --verbose":                     {"--verbose"},
		"unknown command \"start\" for \"devserver\"": {"start"},
		"choose a --ready-file in a directory":        {"--db", ":memory:", "--port", "0", "--headless", "--ready-file", filepath.Join(t.TempDir(), "no", "ready")},
	} {
		t.Run(hint, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, launch(t, args...), hint)
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	help, err := exec.CommandContext(within(t, startTimeout), binary, "--help").Output()
	require.NoError(t, err)
	for _, flag := range []string{"--db", "--postgres", "--values", "--store", "--live", "--live-port", "--port", "--ui-port", "--ip", "--host", "--headless", "--stock", "--ready-file", "--log-level"} {
		require.Contains(t, string(help), flag)
	}
}
