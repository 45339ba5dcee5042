package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/store"
	"superstep.dev/store/sqlite"
)

type object = map[string]any

var ns = []string{"a"}

func put(t *testing.T, s *store.Store, key string) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), ns, key, object{"key": key}))
}

// raw is another program's connection to a file.
func raw(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(60000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func exec(t *testing.T, c *sql.Conn, statement string) {
	t.Helper()
	_, err := c.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

// TestLocked: a writer that another program keeps out fails in its time, readers go on, and later it writes.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	patient := open(t, path, store.Options{Timeout: time.Minute})
	put(t, patient, "before")
	s := open(t, path, store.Options{Timeout: 300 * time.Millisecond})
	other := raw(t, path)
	exec(t, other, "BEGIN IMMEDIATE")
	began := time.Now()
	err := s.Put(t.Context(), ns, "k", object{})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Less(t, time.Since(began), time.Minute) // the lock stays
	require.ErrorContains(t, err, `item "k" of "a"`)
	_, err = patient.Get(t.Context(), ns, "before")
	require.NoError(t, err, "readers go on")
	exec(t, other, "ROLLBACK")
	require.Eventually(t, func() bool { return s.Put(t.Context(), ns, "k", object{"key": "k"}) == nil }, time.Minute, time.Millisecond)

	exec(t, other, "BEGIN IMMEDIATE")
	done := make(chan error, 1)
	go func() { done <- patient.Put(context.WithoutCancel(t.Context()), ns, "waits", object{}) }()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	exec(t, other, "COMMIT")
	require.NoError(t, <-done)
}

// TestFull: what does not fit is not there, and what was there stays.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := sqlite.OpenWith(path, "max_page_count(60)")
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	put(t, s, "small")
	err = s.Put(t.Context(), ns, "large", object{"text": strings.Repeat("x", 500_000)})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "no room left")
	_, err = s.Get(t.Context(), ns, "large")
	require.ErrorIs(t, err, store.ErrNotFound)
	put(t, s, "small")
	item, err := s.Get(t.Context(), ns, "small")
	require.NoError(t, err)
	require.EqualValues(t, 2, item.Version)
}

// TestGone: a file that is taken away is noticed at once, found when it is back, and another in its place is used as it is.
func TestGone(t *testing.T) {
	dir := t.TempDir()
	path, away := filepath.Join(dir, "store.db"), filepath.Join(dir, "away")
	s := open(t, path, store.Options{})
	put(t, s, "k")
	require.NoError(t, os.Mkdir(away, 0o700))
	move := func(from, to string) {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			require.NoError(t, os.Rename(filepath.Join(from, "store.db"+suffix), filepath.Join(to, "store.db"+suffix)))
		}
	}
	move(dir, away)
	for name, err := range map[string]error{"put": s.Put(t.Context(), ns, "k", object{}), "get": second(s.Get(t.Context(), ns, "k")),
		"search": second(s.Search(t.Context(), ns, store.Query{})), "namespaces": second(s.Namespaces(t.Context(), store.NamespaceQuery{}))} {
		require.ErrorIs(t, err, store.ErrUnavailable, name)
		require.ErrorContains(t, err, path)
	}
	require.NoFileExists(t, path, "nobody makes an empty one")
	move(away, dir)
	_, err := s.Get(t.Context(), ns, "k")
	require.NoError(t, err)

	move(dir, away)
	other := open(t, path, store.Options{})
	put(t, other, "other")
	_, err = s.Get(t.Context(), ns, "other")
	require.NoError(t, err)
	_, err = s.Get(t.Context(), ns, "k")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func second[T any](_ T, err error) error { return err }

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := sqlite.Open(filepath.Join(dir, "no", "store.db"), store.Options{})
	require.ErrorIs(t, err, store.ErrUnavailable)
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600))
	_, err = sqlite.Open(text, store.Options{})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "no SQLite database")
	_, err = sqlite.Open(dir, store.Options{})
	require.ErrorIs(t, err, store.ErrUnavailable)
	_, err = sqlite.Open(filepath.Join(dir, "store.db"), store.Options{TTL: -1})
	require.ErrorIs(t, err, store.ErrBadInput)

	newer := filepath.Join(dir, "newer.db")
	open(t, newer, store.Options{})
	exec(t, raw(t, newer), "INSERT INTO superstep_store_schema (version, migrated_at) VALUES (99, 0)")
	_, err = sqlite.Open(newer, store.Options{})
	require.ErrorIs(t, err, store.ErrBadInput)
	require.ErrorContains(t, err, "version 99")
}

// TestOpenAtOnce: of programs that open a new file together one makes the tables, and all use them.
func TestOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a #?%.db")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			s, err := sqlite.Open(path, store.Options{Timeout: time.Minute})
			if err == nil {
				err = s.Put(t.Context(), ns, "k", object{"n": i})
			}
			if err == nil {
				err = s.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	s := open(t, path, store.Options{})
	item, err := s.Get(t.Context(), ns, "k")
	require.NoError(t, err)
	require.EqualValues(t, len(errs), item.Version)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it is its owner's alone")
}

func TestClosed(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Put(t.Context(), ns, "k", object{}), store.ErrUnavailable)
	require.NoError(t, s.Close())
}
