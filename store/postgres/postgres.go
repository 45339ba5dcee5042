// Package postgres keeps a store in tables of a PostgreSQL database, for the programs of several machines. Where the extension pgvector is
// installed in the database, it compares vectors there; else they are compared in this process.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"superstep.dev/internal/database"
	"superstep.dev/store"
)

// Open opens the store in a database, which must be there; its tables, whose names begin with superstep_store_, are made if there are none.
// The DSN is a postgres:// URL or a list of settings, what it leaves out the variables PGHOST, PGPASSWORD and so on say. No error has its
// password.
//
// Errors: [store.ErrBadInput] for what is no DSN, and for tables that a newer program has made; [store.ErrUnavailable] for a database that
// is not there, and for a role that may not use it.
func Open(ctx context.Context, dsn string, opts store.Options) (*store.Store, error) {
	at, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, &store.Error{Kind: store.ErrBadInput, Message: "the PostgreSQL DSN cannot be read: it is postgres://USER@HOST:PORT/DATABASE"}
	}
	p := pool{open(at, dsn)}
	p.db.SetMaxOpenConns(connections)
	p.db.SetMaxIdleConns(connections / 2)
	p.db.SetConnMaxIdleTime(time.Minute)
	where := fmt.Sprintf("the database %.100q at %.200q", at.Database, at.Host)
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	d, err := dialect(ctx, p.db, where)
	if err == nil {
		err = database.Migrate(ctx, p, d)
	}
	var s *store.Store
	if err == nil {
		s, err = store.New(database.New(p, d), opts)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return s, nil
}

// open opens the pool of connections. It prepares no statement on the server by name: a pooler, such as PgBouncer, gives each transaction another
// connection, which has other names.
func open(at *pgx.ConnConfig, dsn string) *sql.DB {
	if at.ConnectTimeout == 0 {
		at.ConnectTimeout = connectWithin
	}
	if at.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		at.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return stdlib.OpenDB(*at, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error { return renew(c, dsn) }))
}

// renew reads the password and the certificates that a DSN names again: their files may have been renewed. What cannot be read stays as it was.
func renew(c *pgx.ConnConfig, dsn string) error {
	if now, err := pgx.ParseConfig(dsn); err == nil {
		c.Password, c.TLSConfig, c.Fallbacks = now.Password, now.TLSConfig, now.Fallbacks
	}
	return nil
}

const (
	connectWithin = 5 * time.Second
	openWithin    = 30 * time.Second
	connections   = 16 // of one process
)

type pool struct{ db *sql.DB }

// Get implements [database.Pool].
func (p pool) Get(context.Context) (*sql.DB, error) { return p.db, nil }

// Close implements [database.Pool].
func (p pool) Close() error { return p.db.Close() }

// dialect asks the database whether it compares vectors.
func dialect(ctx context.Context, db *sql.DB, where string) (database.Dialect, error) {
	d := database.Dialect{
		Migrations: migrations,
		Alone:      `SELECT pg_advisory_xact_lock(7311842519045)`,
		Skip:       ` FOR UPDATE SKIP LOCKED`,
		Cursor:     true,
		Failed:     func(err error) error { return store.Unavailable(where, explained(err)) },
		Vector:     func(v []float32) any { return v },
		ScanVector: func() (any, func() []float32) {
			var v []float32
			return pgtype.NewMap().SQLScanner(&v), func() []float32 { return v }
		},
	}
	var vectors bool
	if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector')`).Scan(&vectors); err != nil {
		return d, d.Failed(err)
	}
	if vectors {
		d.Score = score
	}
	return d, nil
}

// score is that of the nearest vector of an item. Only those of the query's length can be compared, and the operator refuses all others.
const score = `(SELECT MAX(CASE WHEN cardinality(v.embedding) = cardinality($1::real[]) THEN
	COALESCE(1 - NULLIF(v.embedding::vector <=> $1::real[]::vector, 'NaN'::float8), 0) END)
	FROM superstep_store_vectors v WHERE v.namespace = i.namespace AND v.key = i.key)`

// explained says what PostgreSQL says without what else its messages have: parameters, and the connection's settings.
func explained(err error) error {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		switch {
		case strings.HasPrefix(said.Code, "53"):
			return fmt.Errorf("it has no room or no connection left: %s (SQLSTATE %s)", said.Message, said.Code)
		case said.Code == "42501":
			return fmt.Errorf("the role may not do that: %s (SQLSTATE %s)", said.Message, said.Code)
		}
		return fmt.Errorf("%s (SQLSTATE %s)", said.Message, said.Code)
	}
	return err
}

// migrations are the tables. Times are Unix microseconds, a namespace's labels have the byte 1f between two. Names and keys go by their bytes.
var migrations = [][]string{{
	`CREATE TABLE superstep_store_items (
		namespace TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL, value TEXT NOT NULL, version BIGINT NOT NULL,
		created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, ttl BIGINT NOT NULL, expires_at BIGINT, write_id TEXT NOT NULL,
		PRIMARY KEY (namespace, key))`,
	`CREATE INDEX superstep_store_items_updated ON superstep_store_items (updated_at DESC, namespace, key)`,
	`CREATE INDEX superstep_store_items_expires ON superstep_store_items (expires_at) WHERE expires_at IS NOT NULL`,
	`CREATE TABLE superstep_store_vectors (
		namespace TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL, n INTEGER NOT NULL, embedding REAL[] NOT NULL,
		PRIMARY KEY (namespace, key, n),
		FOREIGN KEY (namespace, key) REFERENCES superstep_store_items (namespace, key) ON DELETE CASCADE)`,
	`CREATE TABLE superstep_store_writes (
		id TEXT COLLATE "C" PRIMARY KEY, namespace TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL, put INTEGER NOT NULL,
		version BIGINT NOT NULL, undone INTEGER NOT NULL, written_at BIGINT NOT NULL)`,
	`CREATE INDEX superstep_store_writes_at ON superstep_store_writes (written_at)`,
}}
