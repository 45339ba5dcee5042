// Package sqlite keeps a store in a SQLite file, which all programs of a machine may have open at once.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite" // pure Go: no C library is needed
	sqlite3 "modernc.org/sqlite/lib"

	"superstep.dev/internal/database"
	"superstep.dev/store"
)

// Open opens the store of a file, which is made if there is none, readable for its owner alone. Its directory must be there, and on a disk of
// this machine: over a network file system SQLite cannot keep writers apart. Two more files stand beside it while it is open.
//
// The file may be copied while nobody has it open, or by SQLite's own means. One that is removed or replaced under a program is noticed at
// the next call: it fails with [store.ErrUnavailable] until a file is there again.
//
// Errors: [store.ErrUnavailable] for a file that cannot be opened, or is no SQLite; [store.ErrBadInput] for one that a newer program has made.
func Open(path string, opts store.Options) (*store.Store, error) { return open(path, opts, nil) }

// open is Open with more pragmas.
func open(path string, opts store.Options, pragmas []string) (*store.Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, store.Unavailable("the file "+path, err)
	}
	p := &file{path: path, pragmas: pragmas, create: true}
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	defer cancel()
	d := dialect(path)
	if err := database.Migrate(ctx, p, d); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.create = false
	s, err := store.New(database.New(p, d), opts)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return s, nil
}

const (
	// openWithin bounds the time for which a file that others use is waited for when it is opened.
	openWithin = 30 * time.Second
	// lockedFor is how long a writer waits for another one, in milliseconds.
	lockedFor = 5000
	// connections bounds those of one process: readers do not wait for each other.
	connections = 8
)

// file is a pool of connections to a file, as long as that is the one which was opened.
type file struct {
	path    string
	pragmas []string
	create  bool // while it is opened first

	mu     sync.Mutex
	db     *sql.DB
	opened os.FileInfo
	closed bool
}

var errClosed = errors.New("the store is closed")

// Get implements [database.Pool].
func (f *file) Get(context.Context) (*sql.DB, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, f.unavailable(errClosed)
	}
	now, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.create:
		now, err = create(f.path)
	case err == nil && f.db != nil && os.SameFile(now, f.opened):
		return f.db, nil
	}
	if err != nil {
		return nil, f.unavailable(err)
	}
	if f.db != nil { // what the old connections have is of a file that nobody sees any more
		f.db.Close()
		f.db = nil
	}
	db, err := sql.Open("sqlite", f.dsn())
	if err != nil {
		return nil, f.unavailable(err)
	}
	db.SetMaxOpenConns(connections)
	f.db, f.opened = db, now
	return db, nil
}

// create makes a file for its owner alone; SQLite gives those beside it the same rights.
func create(path string) (os.FileInfo, error) {
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer made.Close()
	return made.Stat()
}

// dsn has every transaction begin as a writer's, so that none has to give up because another one wrote since it has read.
func (f *file) dsn() string {
	query := url.Values{"_txlock": {"immediate"}, "mode": {"rw"}, "_pragma": append([]string{
		fmt.Sprintf("busy_timeout(%d)", lockedFor), "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}, f.pragmas...)}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(f.path), RawQuery: query.Encode()}).String()
}

func (f *file) unavailable(err error) error { return store.Unavailable("the file "+f.path, err) }

// Close implements [database.Pool].
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.db == nil {
		return nil
	}
	db := f.db
	f.db = nil
	return db.Close()
}

func dialect(path string) database.Dialect {
	return database.Dialect{
		Migrations: migrations,
		Failed:     func(err error) error { return store.Unavailable("the file "+path, explained(err)) },
		Vector:     func(v []float32) any { return encode(v) },
		ScanVector: func() (any, func() []float32) {
			var raw []byte
			return &raw, func() []float32 { return decode(raw) }
		},
	}
}

// explained says in words what SQLite says in numbers.
func explained(err error) error {
	var said *sqlite.Error
	if !errors.As(err, &said) {
		return err
	}
	switch said.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("another program has it locked for longer than %v: %w", lockedFor*time.Millisecond, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("there is no room left: %w", err)
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("it is no SQLite database, or damaged: %w", err)
	}
	return err
}

// encode makes four bytes of each number, the lowest first.
func encode(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

func decode(raw []byte) []float32 {
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// migrations are the tables. Times are Unix microseconds, a namespace's labels have the byte 1f between two.
var migrations = [][]string{{
	`CREATE TABLE superstep_store_items (
		namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, version INTEGER NOT NULL,
		created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ttl INTEGER NOT NULL, expires_at INTEGER, write_id TEXT NOT NULL,
		PRIMARY KEY (namespace, key)) STRICT`,
	`CREATE INDEX superstep_store_items_updated ON superstep_store_items (updated_at DESC, namespace, key)`,
	`CREATE INDEX superstep_store_items_expires ON superstep_store_items (expires_at) WHERE expires_at IS NOT NULL`,
	`CREATE TABLE superstep_store_vectors (
		namespace TEXT NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL, embedding BLOB NOT NULL,
		PRIMARY KEY (namespace, key, n),
		FOREIGN KEY (namespace, key) REFERENCES superstep_store_items (namespace, key) ON DELETE CASCADE) STRICT, WITHOUT ROWID`,
	`CREATE TABLE superstep_store_writes (
		id TEXT PRIMARY KEY, namespace TEXT NOT NULL, key TEXT NOT NULL, put INTEGER NOT NULL, version INTEGER NOT NULL,
		undone INTEGER NOT NULL, written_at INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
	`CREATE INDEX superstep_store_writes_at ON superstep_store_writes (written_at)`,
}}
