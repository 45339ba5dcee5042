package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	persistence "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
	"modernc.org/sqlite"
)

// tunePool makes the server's pool for cfg prepare each SQL text once per
// connection, and bring to the disk what is acknowledged. dsn names the same file
// with the same settings, and log its write-ahead log. Nobody may use the pool
// meanwhile.
//
// The server sends its SQL as text every time, and SQLite parses and plans it every
// time: an eighth of the server's processor time, while the one connection is held.
// The driver of PostgreSQL keeps prepared statements by itself; this one does not,
// and the server takes no pool of ours on SQLite.
func tunePool(cfg *config.SQL, dsn, log string) error {
	pool, err := serverPool(cfg)
	if err != nil {
		return err
	}
	connect, err := sqlite.NewConnector(dsn)
	if err != nil {
		return fmt.Errorf("open %s: %w", dsn, err)
	}
	stock := pool.DB
	pool.DB = sql.OpenDB(preparing{connect, log})
	pool.SetMaxOpenConns(cfg.MaxConns)
	pool.SetMaxIdleConns(cfg.MaxIdleConns)
	return stock.Close()
}

// serverPool is the pool that the server's store shares between all that open cfg.
// The store shows it to nobody: it is in a field, which may have another name in
// another version of the server. A start then fails, and so does a test.
func serverPool(cfg *config.SQL) (*sqlx.DB, error) {
	store, err := persistence.NewSQLDB(sqlplugin.DbKindMain, cfg, resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return nil, fmt.Errorf("open the server's pool of connections: %w", err)
	}
	pool := reflect.Indirect(reflect.ValueOf(store)).FieldByName("db")
	if !pool.IsValid() || pool.Type() != reflect.TypeFor[*sqlx.DB]() {
		return nil, fmt.Errorf("%T of this Temporal server version has its pool of connections elsewhere", store)
	}
	return (*sqlx.DB)(pool.UnsafePointer()), nil
}

// preparing opens connections that keep their prepared statements.
type preparing struct {
	driver.Connector
	log string // the path of the write-ahead log
}

// Connect opens one.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := opened.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T is not a connection of the SQLite driver", opened), opened.Close())
	}
	return &preparedConn{sqliteConn: conn, idle: map[string]sqliteStmt{}, log: writeAheadLog{path: p.log, flush: flush}}, nil
}

// sqliteConn is what database/sql uses of a connection of SQLite's driver.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// sqliteStmt is what it uses of a statement.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// idleStatements bounds the statements that a connection keeps. Runs and turns need
// some 60, and each kind of list that somebody asks for one more.
const idleStatements = 400

// preparedConn is a connection with the statements that it has prepared and that
// nobody uses just now, by their text. SQLite prepares one anew by itself when the
// schema has changed. Like any connection it serves one caller at a time.
type preparedConn struct {
	sqliteConn
	idle map[string]sqliteStmt
	log  writeAheadLog
	tx   *syncedTx // nil outside transactions
}

// ExecContext executes a text. A statement that failed is not used again.
func (c *preparedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	result, err := s.ExecContext(ctx, args)
	if err != nil {
		_ = s.Close() // the error is said already
		return nil, err
	}
	c.keep(text, s)
	return result, c.wrote(text)
}

// QueryContext executes a text whose rows are read. Its statement is in use until
// they are closed: the same text in between gets another one.
func (c *preparedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		_ = s.Close() // the error is said already
		return nil, err
	}
	return &preparedRows{Rows: rows, conn: c, text: text, statement: s}, nil
}

func (c *preparedConn) statement(ctx context.Context, text string) (sqliteStmt, error) {
	if s, ok := c.idle[text]; ok {
		delete(c.idle, text)
		return s, nil
	}
	prepared, err := c.PrepareContext(ctx, plannedOnce.Replace(text))
	if err != nil {
		return nil, err
	}
	s, ok := prepared.(sqliteStmt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T is not a statement of the SQLite driver", prepared), prepared.Close())
	}
	return s, nil
}

// plannedOnce are the parameters whose value SQLite looks at to plan a statement: a limit, and what a column is equal to, in case that is 0
// or 1, as the only shard of this server is. Each time that such a parameter is bound, SQLite plans the statement anew. An expression that
// is not a parameter alone spares that, and + changes no value.
var plannedOnce = strings.NewReplacer("= ?", "= +?", "LIMIT ?", "LIMIT +?")

// keep makes room by any other statement: those in constant use are back at once.
// What closing a statement says is no error of the one that was executed, which may
// have been committed.
func (c *preparedConn) keep(text string, s sqliteStmt) {
	if _, ok := c.idle[text]; ok {
		_ = s.Close()
		return
	}
	for other, old := range c.idle {
		if len(c.idle) < idleStatements {
			break
		}
		delete(c.idle, other)
		_ = old.Close()
	}
	c.idle[text] = s
}

// Close closes the statements, and then the connection.
func (c *preparedConn) Close() error {
	var err error
	for text, s := range c.idle {
		delete(c.idle, text)
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, c.sqliteConn.Close(), c.log.close())
}

// preparedRows gives its statement back when it is closed.
type preparedRows struct {
	driver.Rows
	conn      *preparedConn
	text      string
	statement sqliteStmt // nil once closed
}

// Close ends the reading.
func (r *preparedRows) Close() error {
	s := r.statement
	if s == nil {
		return nil
	}
	r.statement = nil
	if err := r.Rows.Close(); err != nil {
		_ = s.Close() // the error is said already
		return err
	}
	r.conn.keep(r.text, s)
	return nil
}
