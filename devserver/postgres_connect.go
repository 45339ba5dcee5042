package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/iancoleman/strcase"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"go.temporal.io/server/common/config"
)

// connectTo returns how the server gets a pool of connections to a database. The
// server would otherwise build a DSN of its own from parts, which knows neither
// sockets nor password files and does not escape a user's name.
//
// Every commit waits for the disk. The server goes on living when PostgreSQL
// crashes, counts as done in its memory what was committed once, and does not
// repeat it: a record for lists would be missing for good, and events of a run
// could be missing before a count of them that was committed after the crash.
func connectTo(at *pgx.ConnConfig) func(*config.SQL) (*sqlx.DB, error) {
	return func(cfg *config.SQL) (*sqlx.DB, error) {
		return openPool(connector(at), cfg.MaxConns)
	}
}

func connector(at *pgx.ConnConfig) driver.Connector {
	return stdlib.GetConnector(*at.Copy(), stdlib.OptionAfterConnect(storeDurationsAsNumbers))
}

// connect opens a connection of PostgreSQL's driver.
func connect(ctx context.Context, c driver.Connector) (*stdlib.Conn, error) {
	opened, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := opened.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T is not a connection of the PostgreSQL driver", opened), opened.Close())
	}
	return conn, nil
}

// storeDurationsAsNumbers is what the server's columns want: nanoseconds, where the
// driver's own choice is an interval.
func storeDurationsAsNumbers(_ context.Context, c *pgx.Conn) error {
	c.TypeMap().RegisterDefaultPgType(time.Duration(0), "int8")
	c.TypeMap().RegisterDefaultPgType((*time.Duration)(nil), "int8")
	return nil
}

// openPool opens the first connection at once, so that a wrong DSN shows.
func openPool(c driver.Connector, conns int) (*sqlx.DB, error) {
	db := sqlx.NewDb(sql.OpenDB(c), "pgx")
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.MapperFunc(strcase.ToSnake) // the server's rows name columns by their fields
	if err := db.Ping(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// oneTransaction is a pool of one connection whose every statement is part of one
// transaction, until somebody executes COMMIT: the server's schema tools take a
// pool and know nothing of transactions.
type oneTransaction struct {
	driver.Connector
	begun atomic.Bool
}

var _ driver.Connector = (*oneTransaction)(nil)

// Connect begins the transaction. It does so once: a pool that lost its connection
// would otherwise go on in a second transaction, with half of the statements.
func (o *oneTransaction) Connect(ctx context.Context) (driver.Conn, error) {
	if o.begun.Swap(true) {
		return nil, errors.New("lost the connection in the middle of a transaction")
	}
	conn, err := connect(ctx, o.Connector)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN", nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return inTransaction{conn}, nil
}

// inTransaction is a connection that may be used again while a transaction is open,
// which the driver refuses.
type inTransaction struct{ *stdlib.Conn }

// ResetSession leaves the transaction open.
func (inTransaction) ResetSession(context.Context) error { return nil }

// What PostgreSQL says went wrong.
const (
	codeNoSuchDatabase       = "3D000"
	codeDuplicateDatabase    = "42P04"
	codeUniqueViolation      = "23505"
	codeLockNotAvailable     = "55P03"
	codeInsufficientRights   = "42501"
	codeWrongPassword        = "28P01"
	codeNotAuthorized        = "28000"
	codeTooManyConnections   = "53300"
	classInsufficientStorage = "53"
)

func hasCode(err error, code string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == code
}

// taught adds what the user can do about an error of PostgreSQL's.
func (s *postgresStore) taught(err error) error {
	hint := s.hint(err)
	if hint == "" {
		return err
	}
	return fmt.Errorf("%s: %s: %w", s.name(), hint, err)
}

func (s *postgresStore) hint(err error) string {
	var answer *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &answer):
		return s.hintFor(answer.Code)
	case errors.As(err, &connect):
		return "cannot be reached: start PostgreSQL, or correct host, port and sslmode of the DSN"
	default:
		return ""
	}
}

func (s *postgresStore) hintFor(code string) string {
	switch {
	case code == codeWrongPassword, code == codeNotAuthorized:
		return fmt.Sprintf("does not let user %s in: correct user and password of the DSN, or its pg_hba.conf", s.at.User)
	case code == codeInsufficientRights:
		return fmt.Sprintf("user %s may not do this: let an administrator create %s and %s with that user as OWNER, or ALTER ROLE it CREATEDB",
			s.at.User, s.at.Database, s.visibility().Database)
	case code == codeTooManyConnections:
		return fmt.Sprintf("has no connection free: a devserver takes up to %d, so raise its max_connections or close others",
			4*(mainConns+visibilityConns)+1)
	case strings.HasPrefix(code, classInsufficientStorage):
		return "is out of room: free disk space or memory there"
	default:
		return ""
	}
}
