package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the "sqlite" driver: pure Go, so the image needs no C library
)

// A Store keeps orders, refunds, notifications, counters and pending faults in
// one SQLite file. A method that returns without an error has committed to
// disk: the file is in WAL mode with synchronous=FULL, so what was acknowledged
// survives the process and the machine.
//
// A Store is safe for concurrent use, also by several processes on one file.
type Store struct {
	db  *sql.DB
	now func() time.Time
}

const (
	// applicationID marks the file as ours, so that a wrong --db is refused
	// before tables are added to somebody else's database. It spells "SSpy".
	applicationID = 0x53537079
	schemaVersion = 1
)

const schema = `
CREATE TABLE orders (
	id       TEXT PRIMARY KEY,
	amount   INTEGER NOT NULL CHECK (amount > 0),
	currency TEXT NOT NULL,
	customer TEXT NOT NULL
) STRICT;

-- n is the number in rf-n. AUTOINCREMENT: a number is never given out twice.
CREATE TABLE refunds (
	n          INTEGER PRIMARY KEY AUTOINCREMENT,
	key        TEXT NOT NULL UNIQUE,
	order_id   TEXT NOT NULL REFERENCES orders (id),
	amount     INTEGER NOT NULL CHECK (amount > 0),
	created_at TEXT NOT NULL
) STRICT;
CREATE INDEX refunds_order ON refunds (order_id, n);

-- A refund is reversed at most once, whatever keys are tried.
CREATE TABLE reversals (
	n          INTEGER PRIMARY KEY AUTOINCREMENT,
	key        TEXT NOT NULL UNIQUE,
	refund     INTEGER NOT NULL UNIQUE REFERENCES refunds (n),
	created_at TEXT NOT NULL
) STRICT;

CREATE TABLE notifications (
	n          INTEGER PRIMARY KEY AUTOINCREMENT,
	key        TEXT NOT NULL UNIQUE,
	order_id   TEXT NOT NULL REFERENCES orders (id),
	text       TEXT NOT NULL,
	created_at TEXT NOT NULL
) STRICT;

-- One row per path and key; the key is empty for requests that brought none.
CREATE TABLE traffic (
	n        INTEGER PRIMARY KEY AUTOINCREMENT,
	path     TEXT NOT NULL,
	key      TEXT NOT NULL,
	requests INTEGER NOT NULL DEFAULT 0,
	lookups  INTEGER NOT NULL DEFAULT 0,
	UNIQUE (path, key)
) STRICT;

CREATE TABLE faults (
	path              TEXT PRIMARY KEY,
	slow_ms           INTEGER NOT NULL DEFAULT 0,
	fail_5xx          INTEGER NOT NULL DEFAULT 0,
	die_after_commit  INTEGER NOT NULL DEFAULT 0,
	hang_after_commit INTEGER NOT NULL DEFAULT 0
) STRICT;
`

// OpenStore opens the database file, and creates it with the seed orders when
// it does not exist. It refuses a file that is not a payments database, or one
// written by a newer version.
func OpenStore(ctx context.Context, file string) (*Store, error) {
	dsn, err := dataSource(file)
	if err != nil {
		return nil, fmt.Errorf("payments: database %s: %w", file, err)
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("payments: database %s: %w", file, err)
	}
	// SQLite has one writer, and nearly every request writes at least a
	// counter: a single connection queues them in order instead of making them
	// fight for the lock.
	db.SetMaxOpenConns(1)
	s := &Store{db: db, now: time.Now}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("payments: database %s: %w", file, err), db.Close())
	}
	return s, nil
}

// dataSource names the file and the settings every connection to it gets.
func dataSource(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	settings := url.Values{
		"_pragma": {
			"busy_timeout(5000)", // another process may hold the file
			"journal_mode(WAL)",
			"synchronous(FULL)", // a commit is on disk before it is acknowledged
			"foreign_keys(ON)",
		},
		// Take the write lock at BEGIN: a transaction that reads first and
		// upgrades later can be refused half way.
		"_txlock": {"immediate"},
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: abs, RawQuery: settings.Encode()}
	return u.String(), nil
}

// Close releases the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("payments: close database: %w", err)
	}
	return nil
}

// prepare brings a new file to the schema and checks an old one.
func (s *Store) prepare(ctx context.Context) error {
	return s.transact(ctx, func(tx *sql.Tx) error {
		created, err := checkOwner(ctx, tx)
		if err != nil {
			return err
		}
		if created {
			statement := fmt.Sprintf("%s\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;", schema, applicationID, schemaVersion)
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("create tables: %w", err)
			}
		}
		for _, order := range seedOrders {
			_, err := tx.ExecContext(ctx, `INSERT INTO orders (id, amount, currency, customer) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
				order.ID, order.Amount, order.Currency, order.Customer)
			if err != nil {
				return fmt.Errorf("seed order %s: %w", order.ID, err)
			}
		}
		return nil
	})
}

// checkOwner reports whether the file is empty, and refuses a foreign one.
func checkOwner(ctx context.Context, tx *sql.Tx) (empty bool, err error) {
	var id, version, tables int
	err = tx.QueryRowContext(ctx, `SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_application_id AS a, pragma_user_version AS v`).Scan(&id, &version, &tables)
	switch {
	case err != nil:
		return false, err
	case tables == 0:
		return true, nil
	case id != applicationID:
		return false, errors.New("the file holds another program's database")
	case version > schemaVersion:
		return false, fmt.Errorf("the file has schema version %d, newer than this program's %d", version, schemaVersion)
	}
	return false, nil
}

// transact runs do in one transaction and commits unless it returns an error.
func (s *Store) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := do(tx); err != nil {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			err = errors.Join(err, fmt.Errorf("roll back: %w", rollback))
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// ping reports whether the file still answers.
func (s *Store) ping(ctx context.Context) error {
	var one int
	return s.db.QueryRowContext(ctx, `SELECT 1 FROM orders LIMIT 1`).Scan(&one)
}

// timestamp is the present in the form the tables keep.
func (s *Store) timestamp() string { return s.now().UTC().Format(time.RFC3339Nano) }
