package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/research/data"
	"superstep.dev/examples/research/store"
)

func open(t *testing.T) (s *store.Store, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	s, err := store.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, dir
}

// files are the names of all files in a directory.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	}))
	return names
}

func TestTable(t *testing.T) {
	s, dir := open(t)
	uri, err := s.PutTable([]byte("a,b\n"))
	require.NoError(t, err)
	again, err := s.PutTable([]byte("a,b\n"))
	require.NoError(t, err)
	require.Equal(t, uri, again)
	text, err := s.Read(uri)
	require.NoError(t, err)
	require.Equal(t, "a,b\n", string(text))
	require.Len(t, files(t, dir), 1)
	text, err = s.Read(store.Sample)
	require.NoError(t, err)
	require.Equal(t, data.Penguins, text)
	_, err = s.PutTable(make([]byte, store.MaxFile+1))
	require.ErrorIs(t, err, store.ErrTooLong)
}

func TestNothingOutsideIsRead(t *testing.T) {
	s, dir := open(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "..", "secret"), []byte("s"), 0o600))
	require.NoError(t, os.Symlink("../secret", filepath.Join(dir, "link")))
	for _, uri := range []string{"store:../secret", "store:/etc/passwd", "store:link", "store:tables/../../secret", "store:"} {
		_, err := s.Read(uri)
		var failed *store.Error
		require.ErrorAs(t, err, &failed, uri)
	}
	for _, uri := range []string{"file:///etc/passwd", "", "http://localhost/"} {
		_, err := s.Read(uri)
		require.ErrorIs(t, err, store.ErrScheme, uri)
	}
	_, err := s.Read("store:tables/none.csv")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long"), make([]byte, store.MaxFile+1), 0o600))
	_, err = s.Read("store:long")
	require.ErrorIs(t, err, store.ErrTooLong)
}

func TestPublish(t *testing.T) {
	s, dir := open(t)
	r := store.Report{Job: "r-1", Text: "# Penguins\n"}
	_, found, err := s.FindReport(t.Context(), "key-0001", r)
	require.NoError(t, err)
	require.False(t, found)
	var all sync.WaitGroup
	receipts := make([]store.Receipt, 8)
	for i := range receipts {
		all.Go(func() { receipts[i], _ = s.Publish(t.Context(), "key-0001", r) })
	}
	all.Wait()
	for _, receipt := range receipts {
		require.Equal(t, receipts[0], receipt)
	}
	require.Equal(t, []string{"reports/r-1-key-0001.md"}, files(t, dir), "and nothing that was begun is left")
	text, err := s.Read(receipts[0].URI)
	require.NoError(t, err)
	require.Equal(t, r.Text, string(text))
	found1, found, err := s.FindReport(t.Context(), "key-0001", r)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, receipts[0], found1)

	var refused *store.RefusedError
	_, err = s.Publish(t.Context(), "key-0001", store.Report{Job: "r-1", Text: "another"})
	require.ErrorAs(t, err, &refused)
	for _, bad := range []struct{ key, job string }{{"key-0001", "../r"}, {"key-0001", ""}, {"../../x", "r"}, {"short", "r"},
		{"key-0001", strings.Repeat("r", 65)}} {
		_, err = s.Publish(t.Context(), bad.key, store.Report{Job: bad.job, Text: "x"})
		require.ErrorAs(t, err, &refused, "%v", bad)
	}
	require.NoError(t, s.Withdraw(t.Context(), receipts[0]))
	require.NoError(t, s.Withdraw(t.Context(), receipts[0]))
	require.Empty(t, files(t, dir))
}
