package main_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
)

// announcedBy is where a devserver's namespace says that large values lie.
func announcedBy(t *testing.T, s *running) string {
	t.Helper()
	return announcement(t, s, "superstep.storage")
}

// announcement is an entry of the data of a devserver's namespace.
func announcement(t *testing.T, s *running, key string) string {
	t.Helper()
	described, err := dial(t, s.address).WorkflowService().DescribeNamespace(within(t, startTimeout), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	return described.GetNamespaceInfo().GetData()[key]
}

// Programs find the directory beside the database file, by a text that only that directory has; it stays the same over
// starts, and says so when the directory is another one, or none.
func TestLargeValuesLieBesideTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "runs.db")
	s := start(t, db, "--headless")
	first := announcedBy(t, s)
	u, err := url.Parse(first)
	require.NoError(t, err)
	require.Equal(t, "file", u.Scheme)
	require.Equal(t, db+".values", u.Path)
	id, err := os.ReadFile(filepath.Join(u.Path, "id"))
	require.NoError(t, err)
	require.Equal(t, u.Query().Get("id")+"\n", string(id))
	info, err := os.Stat(u.Path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	s.kill(t)

	s = start(t, db, "--headless")
	require.Equal(t, first, announcedBy(t, s))
	require.Zero(t, s.stop(t))

	s = start(t, db, "--headless", "--values", filepath.Join(dir, "elsewhere"))
	require.Contains(t, announcedBy(t, s), "/elsewhere?id=")
	require.Zero(t, s.stop(t))

	s = start(t, db, "--headless", "--values", "none")
	require.Empty(t, announcedBy(t, s))
	require.Contains(t, announcement(t, s, "superstep.store"), db+".store?id=")
	require.Zero(t, s.stop(t))

	s = start(t, db, "--headless", "--store", "none")
	require.NotEmpty(t, announcedBy(t, s))
	require.Empty(t, announcement(t, s, "superstep.store"))
	require.Zero(t, s.stop(t))

	s = start(t, ":memory:", "--headless")
	require.Empty(t, announcedBy(t, s))
	require.Empty(t, announcement(t, s, "superstep.store"))
	require.Zero(t, s.stop(t))
}

// A directory that cannot be is refused before anything starts.
func TestNoDirectoryForLargeValues(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	requireRefused(t, launch(t, "--db", ":memory:", "--port", "0", "--headless", "--values", file), "choose another --values")
}
