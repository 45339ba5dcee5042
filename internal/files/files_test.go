package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/files"
)

func write(t *testing.T, path, text string) {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestReadDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", "c.txt", ".hidden.yaml"} {
		write(t, filepath.Join(dir, name), name)
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "c.txt"), filepath.Join(dir, "d.yaml")))
	all, err := files.Read([]string{dir, filepath.Join(dir, "c.txt")}, ".yaml", ".yml")
	require.NoError(t, err)
	var texts []string
	for _, f := range all {
		texts = append(texts, string(f.Text))
	}
	require.Equal(t, []string{"a.yml", "b.yaml", "c.txt", "c.txt"}, texts)
}

func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := files.Read([]string{pipe})
	require.ErrorContains(t, err, "not a regular file")

	large := filepath.Join(dir, "large")
	write(t, large, "")
	require.NoError(t, os.Truncate(large, 1<<20+1))
	_, err = files.Read([]string{large})
	require.ErrorContains(t, err, "more than 1048576 bytes")

	for i := range 101 {
		write(t, filepath.Join(dir, fmt.Sprint(i, ".pem")), "")
	}
	_, err = files.Read([]string{dir}, ".pem")
	require.ErrorContains(t, err, "more than 100 files")
}

// TestVersionTellsFilesApart: the same bytes cut elsewhere are other files.
func TestVersionTellsFilesApart(t *testing.T) {
	of := func(texts ...string) string {
		var all []files.File
		for _, text := range texts {
			all = append(all, files.File{Text: []byte(text)})
		}
		return files.Version(all)
	}
	require.NotEqual(t, of("ab", "c"), of("a", "bc"))
	require.NotEqual(t, of("ab"), of("ab", ""))
	require.Equal(t, of("ab", "c"), of("ab", "c"))
}

func TestWatched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	at, made := time.Unix(1000, 0), 0
	w := files.Watched[string]{Paths: []string{path}, Now: func() time.Time { return at }, Make: func(all []files.File) (string, error) {
		made++
		if text := string(all[0].Text); text != "bad" {
			return text, nil
		}
		return "", errors.New("bad")
	}}
	_, _, err := w.Get()
	require.ErrorIs(t, err, os.ErrNotExist)
	step := func(pass time.Duration, want string, count int, failed bool) {
		t.Helper()
		at = at.Add(pass)
		got, version, err := w.Get()
		require.Equal(t, want, got)
		require.Equal(t, count, made)
		require.Equal(t, failed, err != nil, err)
		require.Equal(t, want != "", version != "")
	}
	write(t, path, "one")
	step(999*time.Millisecond, "", 0, true) // not read again yet
	step(time.Millisecond, "one", 1, false)
	step(time.Second, "one", 1, false) // the same is not made again
	write(t, path, "bad")
	step(time.Second, "one", 2, true)
	step(time.Second, "one", 2, true)
	require.NoError(t, os.Remove(path))
	step(time.Second, "one", 2, true)
	write(t, path+".new", "two")
	require.NoError(t, os.Rename(path+".new", path))
	step(time.Second, "two", 3, false)
	write(t, path, "three")
	step(-time.Hour, "three", 4, false) // a clock that was set back
}
