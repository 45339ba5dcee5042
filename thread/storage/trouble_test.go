package storage_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/thread/storage"
)

// TestDamagedValues: whatever becomes of a file, nobody reads anything else than what was stored, and the error names the file.
func TestDamagedValues(t *testing.T) {
	t.Parallel()
	for _, size := range []int{20 << 10, 400 << 10} {
		for name, c := range map[string]struct {
			harm func(t *testing.T, path string, was []byte)
			kind error
		}{
			"erased":  {func(t *testing.T, path string, _ []byte) { require.NoError(t, os.Remove(path)) }, storage.ErrMissing},
			"emptied": {func(t *testing.T, path string, _ []byte) { write(t, path, nil) }, storage.ErrDamaged},
			"cut off": {func(t *testing.T, path string, was []byte) { write(t, path, was[:len(was)/2]) }, storage.ErrDamaged},
			"garbage": {func(t *testing.T, path string, _ []byte) { write(t, path, []byte("garbage")) }, storage.ErrDamaged},
			"another's": {func(t *testing.T, path string, _ []byte) {
				write(t, path, append([]byte{0}, "well formed, and not it"...))
			}, storage.ErrDamaged},
			"one bit": {func(t *testing.T, path string, was []byte) { was[len(was)-9] ^= 1; write(t, path, was) }, storage.ErrDamaged},
			"huge": {func(t *testing.T, path string, _ []byte) {
				require.NoError(t, os.Truncate(path, 1<<30))
			}, storage.ErrDamaged},
		} {
			t.Run(name, func(t *testing.T) {
				s, dir := opened(t)
				p := payload(words(size, uint64(size)))
				claims, err := store(t.Context(), s, p)
				require.NoError(t, err)
				files, _ := lying(t, dir)
				for object, path := range files {
					was, err := os.ReadFile(path)
					require.NoError(t, err)
					kept := append([]byte(nil), was...)
					c.harm(t, path, was)
					_, err = retrieve(t.Context(), reopened(t, dir), claims...)
					require.ErrorIs(t, err, c.kind)
					var told *storage.Error
					require.ErrorAs(t, err, &told)
					assert.Equal(t, object, filepath.Base(told.Object))
					assert.ErrorContains(t, err, dir)
					write(t, path, kept) // from the backup
					got, err := retrieve(t.Context(), reopened(t, dir), claims...)
					require.NoError(t, err)
					assert.Equal(t, p.GetData(), got[0].GetData())
				}
			})
		}
	}
}

// TestErasedIsStoredAgain: what was erased is there again when the same is stored again.
func TestErasedIsStoredAgain(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	p := payload(words(400<<10, 1))
	claims, err := store(t.Context(), s, p)
	require.NoError(t, err)
	files, _ := lying(t, dir)
	n := 0
	for _, path := range files {
		if n++; n%2 == 0 {
			require.NoError(t, os.Remove(path))
		} else {
			write(t, path, nil)
		}
	}
	again, err := store(t.Context(), s, p) // the same process, which has all of it in memory
	require.NoError(t, err)
	assert.Equal(t, claims, again)
	_, err = retrieve(t.Context(), reopened(t, dir), claims...)
	require.NoError(t, err)
}

// flaky are objects that fail as often as they are told to.
type flaky struct {
	storage.Objects
	fails atomic.Int64
	calls atomic.Int64
	err   error
	slow  time.Duration
	kept  map[string][]byte
}

func (f *flaky) Where() string { return "a flaky place" }

func (f *flaky) call(ctx context.Context) error {
	f.calls.Add(1)
	select {
	case <-time.After(f.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.fails.Add(-1) >= 0 {
		return f.err
	}
	return nil
}

func (f *flaky) Has(ctx context.Context, name string) (bool, error) {
	_, there := f.kept[name]
	return there, f.call(ctx)
}

func (f *flaky) Put(ctx context.Context, name string, object []byte) error {
	err := f.call(ctx)
	if err == nil {
		f.kept[name] = object
	}
	return err
}

func (f *flaky) Get(ctx context.Context, name string) ([]byte, error) {
	if object, there := f.kept[name]; there {
		return object, f.call(ctx)
	}
	return nil, fs.ErrNotExist
}

// TestTroubleIsTriedAgain: what fails a few times is done, what keeps failing is an error that says so, and nothing is half stored.
func TestTroubleIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, troubleIsTriedAgain) // how long it tries is not how fast this machine is
}

func troubleIsTriedAgain(t *testing.T) {
	place := &flaky{err: syscall.EIO, kept: map[string][]byte{}}
	s, p := storage.New(place, storage.Options{CacheBytes: 1}), payload(words(20<<10, 1))
	place.fails.Store(3)
	claims, err := store(t.Context(), s, p)
	require.NoError(t, err)
	place.fails.Store(3)
	_, err = retrieve(t.Context(), s, claims...)
	require.NoError(t, err)

	place.fails.Store(1 << 40)
	began := time.Now()
	_, err = retrieve(t.Context(), s, claims...)
	require.ErrorIs(t, err, storage.ErrUnavailable)
	require.ErrorIs(t, err, syscall.EIO)
	assert.ErrorContains(t, err, "a flaky place")
	assert.Less(t, time.Since(began), 9*time.Second, "within a workflow task")
	assert.Greater(t, place.calls.Load(), int64(10))

	place.fails.Store(0)
	place.slow = time.Hour // it does not answer
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = retrieve(ctx, s, claims...)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestDirectoriesInTrouble: one that may not be written, is full, or is gone, and one that is none.
func TestDirectoriesInTrouble(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, []byte("no directory"))
	_, err := storage.Files(file, storage.Options{})
	require.ErrorIs(t, err, storage.ErrUnavailable)
	assert.ErrorContains(t, err, file)

	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		s, dir := opened(t)
		claims, err := store(t.Context(), s, payload(words(20<<10, 1)))
		require.NoError(t, err)
		away := dir + "-unmounted"
		require.NoError(t, os.Rename(dir, away))
		_, err = store(t.Context(), s, payload(words(20<<10, 2)))
		require.ErrorIs(t, err, storage.ErrUnavailable)
		_, err = os.Stat(dir)
		require.ErrorIs(t, err, fs.ErrNotExist, "nothing is written beside what is not mounted")
		fresh := storageWithoutMemory(t, dir, away)
		back := time.AfterFunc(300*time.Millisecond, func() { _ = os.Rename(away, dir) })
		defer back.Stop()
		_, err = retrieve(t.Context(), fresh, claims...)
		require.NoError(t, err, "mounted again within a second")
	})
}

// storageWithoutMemory is a storage in dir, which is at away for now.
func storageWithoutMemory(t *testing.T, dir, away string) *storage.Storage {
	t.Helper()
	require.NoError(t, os.Rename(away, dir))
	s := reopened(t, dir)
	require.NoError(t, os.Rename(dir, away))
	return s
}

// TestWhatIsUsedStaysNew: an old file that is used again counts as new, so that a sweep by age takes nothing that is needed.
func TestWhatIsUsedStaysNew(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	p := payload(words(400<<10, 1))
	_, err := store(t.Context(), s, p)
	require.NoError(t, err)
	files, _ := lying(t, dir)
	long := time.Now().Add(-48 * time.Hour)
	for _, path := range files {
		require.NoError(t, os.Chtimes(path, long, long))
	}
	_, err = store(t.Context(), s, p)
	require.NoError(t, err)
	for _, path := range files {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Less(t, time.Since(info.ModTime()), time.Hour)
	}
	unfinished := filepath.Join(dir, "new", "of a process that died")
	write(t, unfinished, []byte("half"))
	require.NoError(t, os.Chtimes(unfinished, long, long))
	reopened(t, dir)
	_, err = os.Stat(unfinished)
	assert.True(t, errors.Is(err, fs.ErrNotExist), "%v", err)
}
