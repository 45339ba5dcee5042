package main

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// While there is no room for the store's database what writes is refused, what reads goes on, and so does everything when there is room
// again.
func TestAStoreWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a file system of its own cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	w := newStoreWorld(t, dir+"/store.db")
	w.put("k", object{})
	full := dir + "/full"
	file, err := os.Create(full)
	require.NoError(t, err)
	_, err = io.Copy(file, &spaces{4 << 20})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, file.Close())
	item := object{"namespace": []string{"a", "b"}, "key": "large", "value": object{"text": strings.Repeat("x", 500_000)}}
	var said struct{ Detail string }
	require.Equal(t, http.StatusServiceUnavailable, w.ask("PUT", "/store/items", item, &said))
	require.Contains(t, said.Detail, "try again")
	require.NotContains(t, said.Detail, dir)
	require.Equal(t, []string{"k"}, w.keys(object{}))
	w.thread()
	require.NoError(t, os.Remove(full))
	require.Equal(t, http.StatusNoContent, w.ask("PUT", "/store/items", item, nil))
	found := w.keys(object{})
	slices.Sort(found)
	require.Equal(t, []string{"k", "large"}, found)
}
