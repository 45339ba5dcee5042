package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"
	"go.temporal.io/server/common/config"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
)

const (
	sqliteName = "sqlite"

	// One shard is enough for one machine, and SQLite has one writer anyway. The
	// number is fixed for the life of a database file.
	sqliteShards = 1
)

// sqliteStore is the SQLite database of one devserver, locked against every other.
type sqliteStore struct {
	db   string       // as the user wrote it, for messages
	file string       // absolute and free of symbolic links; "" in memory
	lock *flock.Flock // nil in memory
}

// openSQLite locks the database, checks that a server can run on it, and lays it
// out when it is new. The error says what to do about a file that is in use,
// damaged, not writable or not a database of this server. The caller closes the
// store after the server has stopped.
//
// It takes no context: it is over within seconds, and half of it would be of no
// use to the next start.
func openSQLite(db string) (*sqliteStore, error) {
	if db == inMemory {
		s := &sqliteStore{db: db}
		return s, createNamespace(s.config())
	}
	file, err := resolveFile(db)
	if err != nil {
		return nil, err
	}
	s := &sqliteStore{db: db, file: file}
	if s.lock, err = lockFile(file, db); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, s.unlock())
	}
	return s, nil
}

func (s *sqliteStore) name() string { return s.db }

func (s *sqliteStore) persistence() config.Persistence {
	return config.Persistence{
		DefaultStore: sqliteName, VisibilityStore: sqliteName, NumHistoryShards: sqliteShards,
		DataStores: map[string]config.DataStore{sqliteName: {SQL: s.config()}},
	}
}

func (s *sqliteStore) prepare() error {
	if err := prepareDatabase(s.dsn(), s.db); err != nil {
		return err
	}
	if err := createNamespace(s.config()); err != nil {
		return err
	}
	return tunePool(s.config(), s.serverDSN(), s.file+"-wal")
}

// close folds the write-ahead log into the file, so that the file alone can be
// copied or moved, and lets the next devserver have it. Failing to fold loses
// nothing: the next start reads the log.
func (s *sqliteStore) close() error {
	if s.file == "" {
		return nil
	}
	return errors.Join(foldLog(s.dsn(), s.db, busyTime), s.unlock())
}

func (s *sqliteStore) unlock() error {
	if err := s.lock.Unlock(); err != nil {
		return fmt.Errorf("unlock %s: %w", s.lock.Path(), err)
	}
	return nil
}

// dsn is the name under which this process opens the database by itself, next to
// the server.
func (s *sqliteStore) dsn() string { return "file:" + escapePath(s.file) }

// config is how the server opens the database. Every use must pass equal
// values: the server's driver shares one connection pool between equal ones.
func (s *sqliteStore) config() *config.SQL {
	if s.file == "" {
		return &config.SQL{
			PluginName:        sqliteplugin.PluginName,
			DatabaseName:      "superstep-devserver",
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
			MaxConns:          1,
			MaxIdleConns:      1,
		}
	}
	return &config.SQL{
		PluginName:        sqliteplugin.PluginName,
		DatabaseName:      escapePath(s.file),
		ConnectAttributes: pragmas(),
		// One connection, although the log would allow more: the server's
		// transactions read before they write, and SQLite refuses such a
		// transaction at once, without waiting, when another connection has
		// written in between.
		MaxConns:     1,
		MaxIdleConns: 1,
	}
}

// pragmas are how a connection of the server uses the file.
func pragmas() map[string]string {
	return map[string]string{
		// With the log a step takes about 5 ms, with SQLite's default journal
		// 14 to 18 ms.
		"journal_mode": "wal",
		// FULL syncs the log at each commit. NORMAL alone would be faster and would
		// forget, in a power cut, what the server has already acknowledged.
		"synchronous": "full",
		// Somebody may be reading the file with another tool.
		"busy_timeout": "10000",
	}
}

// serverDSN is the name under which the server opens the database: that of config,
// with times written as SQLite itself writes them, and without a sync at each
// commit: see writeAheadLog.
func (s *sqliteStore) serverDSN() string {
	settings := url.Values{"_time_format": {"sqlite"}}
	all := pragmas()
	all["synchronous"] = "normal"
	for _, name := range slices.Sorted(maps.Keys(all)) {
		settings.Add("_pragma", name+"="+all[name])
	}
	return s.dsn() + "?" + settings.Encode()
}

// escapePath writes a path as it stands in an SQLite URI, where ?, # and % mean
// something.
func escapePath(path string) string {
	return (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}

// resolveFile returns the one true path of db, so that two ways to write it lead
// to one lock, and finds out early whether it can be written.
func resolveFile(db string) (string, error) {
	abs, err := filepath.Abs(db)
	if err != nil {
		return "", fmt.Errorf("cannot tell where %s is: name it by an absolute --db: %w", db, err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fileError(db, err)
	}
	file := filepath.Join(dir, filepath.Base(abs))
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	return file, tryWriting(file, db)
}

// tryWriting creates the file when it is missing. It must not run once SQLite has
// the file open: closing any handle drops the locks that SQLite holds.
func tryWriting(file, db string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fileError(db, err)
	}
	if err := f.Close(); err != nil {
		return fileError(db, err)
	}
	return nil
}

func fileError(db string, err error) error {
	dir := filepath.Dir(db)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no directory %s for the database: create it, or choose another --db: %w", dir, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("may not write %s: change its permissions and those of %s, or choose another --db: %w", db, dir, err)
	default:
		return fmt.Errorf("cannot use %s as the database: choose another --db: %w", db, err)
	}
}
