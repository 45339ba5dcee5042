package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/refund/payments"
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

// testWorld is a world on the server that all tests share.
func testWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("kills workers for minutes")
	}
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "temporal.toml"), nil, 0o600))
	store, err := payments.OpenStore(t.Context(), filepath.Join(dir, "payments.db"))
	require.NoError(t, err)
	server := payments.NewServer(store, payments.ServerConfig{Exit: func(int) {}})
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		server.Stop()
		web.Close()
		require.NoError(t, store.Close())
	})
	set, _, err := processes.New(context.Background(), filepath.Join(dir, "logs"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Stop()) })
	w, err := newWorld(t.Context(), set, dir, testserver.Address(t), web.URL)
	require.NoError(t, err)
	t.Cleanup(w.temporal.Close)
	return w
}

// A few kills of each mode's many: no run is lost, no money moves twice, and threads end as they do undisturbed.
func TestKills(t *testing.T) {
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) {
			result, err := testWorld(t).campaign(t.Context(), m, 4, options{threads: 3, workers: 2})
			require.NoError(t, err)
			require.Equal(t, 4, result.kills)
			require.NotZero(t, result.runs)
			require.Empty(t, result.lost)
			require.Empty(t, result.twice)
			require.Empty(t, result.unequal)
			require.Empty(t, result.miscounted, result.figures)
		})
	}
}

// Calls that are frozen while they prepare, written as docs/effects.md has it, send nothing when they are thawed, although
// their code goes on: a person was asked, and has the last word.
func TestLateCalls(t *testing.T) {
	result, err := testWorld(t).freezeLate(t.Context(), lates[0], 4)
	require.NoError(t, err)
	require.GreaterOrEqual(t, result.frozen, 4)
	require.GreaterOrEqual(t, result.asked, result.frozen)
	require.Empty(t, result.never)
	require.Empty(t, result.twice)
	require.Zero(t, result.found)
	require.GreaterOrEqual(t, result.takeovers, int64(result.asked))
}

// Calls that do not heed their context write twice, and the workers find each of these.
func TestDuplicatesAreFound(t *testing.T) {
	result, err := testWorld(t).freezeLate(t.Context(), lates[3], 4)
	require.NoError(t, err)
	require.NotEmpty(t, result.twice)
	require.GreaterOrEqual(t, result.found, int64(len(result.twice)))
}

// A worker that is frozen inside a call until another one has done the work makes no second refund when it is thawed,
// and nothing that it has to say is taken.
func TestFrozenWorkers(t *testing.T) {
	for _, f := range []frozen{keyed, lookupOnly} {
		t.Run(f.name, func(t *testing.T) {
			result, err := testWorld(t).freeze(t.Context(), f, 2)
			require.NoError(t, err)
			require.Empty(t, result.promises)
			require.Equal(t, 2, result.refused)
		})
	}
}
