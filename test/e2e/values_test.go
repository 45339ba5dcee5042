package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// Workers and commands that are told nothing keep large values where the server says, and so can a program; what does not reach the place
// says so before anything else, and does without when it is told to.
func TestValuesBesideTheDatabase(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values")
	r := newRigAt(t, testserver.Start(t, testserver.Options{Values: values}).Address())
	r.graphsWorker("worker-1")
	threadID := testserver.Queue(t)
	input := `{"dir":"` + r.dir + `","size":900000}`
	r.exits(0, r.superstep("run", "piles", "--thread", threadID, "--input", input, "--follow")) // its state has 2.7 MB
	shown := r.exits(0, r.superstep("state", threadID, "-o", "json"))
	require.Greater(t, len(shown.stdout), 2_700_000)
	found, err := filepath.Glob(filepath.Join(values, "??", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, found)

	_, err = r.client.State(t.Context(), thread.StateRequest{Thread: threadID})
	require.ErrorIs(t, err, storage.ErrNone)
	opened, err := storage.Announced(t.Context(), r.temporal, "default", storage.Options{})
	require.NoError(t, err)
	r.client, err = superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: r.queue, Storage: opened})
	require.NoError(t, err)
	require.Len(t, value[[]string](r, threadID, "log"), 3)

	id := filepath.Join(values, "id")
	was, err := os.ReadFile(id)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(id, []byte("of another machine"), 0o600))
	told := r.exits(2, r.superstep("list"))
	require.Contains(t, told.stderr, "another machine's in the same place")
	require.Contains(t, told.stderr, "--storage none")
	require.NoError(t, os.Remove(id))
	require.Contains(t, r.exits(2, r.superstep("list")).stderr, "runs on another machine than the server")
	r.exits(0, r.superstep("list", "--storage", "none"))
	r.exits(0, r.superstep("state", threadID, "--storage", values)) // whoever knows it is the one
	require.NoError(t, os.WriteFile(id, was, 0o600))
	r.exits(0, r.superstep("list"))
}
