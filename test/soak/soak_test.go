package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
)

// The tests' binary is the program too: it starts itself as a worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(serve(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// A short thread that is continued as a new run often, with workers killed at that moment too. How often depends on the
// machine: a run is continued after a second of life, however many events it has, and a fast one makes 200 supersteps in that.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("kills workers for up to a minute or two")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "temporal.toml"), nil, 0o600))
	set, _, err := processes.New(context.Background(), filepath.Join(dir, "logs"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Stop()) })
	var notes bytes.Buffer
	o := options{supersteps: 1200, questions: 10, people: 4, workers: 2, every: 4 * time.Second, events: 200}
	l, err := soak(t.Context(), set, dir, testserver.Address(t), o, &notes)
	require.NoError(t, err, notes.String())
	var table bytes.Buffer
	l.print(&table)
	t.Log("\n" + table.String())
	require.Empty(t, l.broken)
	require.NotZero(t, l.kills)
	require.NotZero(t, l.atOne)
	require.Greater(t, l.continues, 1)
	require.Equal(t, 10, l.answers)
}

// What the command line refuses, it refuses before it does anything.
func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{"more"}, {"-questions", "0"}, {"-supersteps", "10", "-questions", "6"}, {"-every", "1ms"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, execute(args, &stdout, &stderr), args)
		require.Contains(t, stderr.String(), "--help")
	}
	require.Zero(t, execute([]string{"-help"}, &bytes.Buffer{}, &bytes.Buffer{}))
}
