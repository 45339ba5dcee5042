package storage_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/thread/storage"
)

// TestAFullFileSystem: what does not fit is an error that says so, and what was stored before stays.
func TestAFullFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no file system of this test's own: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	s, err := storage.Files(filepath.Join(dir, "values"), storage.Options{})
	require.NoError(t, err)
	small, err := store(t.Context(), s, payload(words(40<<10, 1)))
	require.NoError(t, err)
	_, err = store(t.Context(), s, payload(words(900<<10, 2)))
	require.ErrorIs(t, err, storage.ErrUnavailable)
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = retrieve(t.Context(), reopened(t, filepath.Join(dir, "values")), small...)
	require.NoError(t, err, "what was stored before")
	left, err := os.ReadDir(filepath.Join(dir, "values", "new"))
	require.NoError(t, err)
	assert.Empty(t, left, "nothing half written is left")
}
