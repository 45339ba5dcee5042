package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/store"
	"superstep.dev/store/postgres"
	"superstep.dev/store/storetest"
)

var databases atomic.Int64

// newDatabase makes an empty database, and waits for a server that has just begun.
func newDatabase(t *testing.T, server *testserver.Postgres, extension string) string {
	t.Helper()
	name := fmt.Sprintf("store%d", databases.Add(1))
	run(t, server.DSN("postgres"), "CREATE DATABASE "+name)
	if extension != "" {
		run(t, server.DSN(name), "CREATE EXTENSION "+extension)
	}
	return server.DSN(name)
}

func run(t *testing.T, dsn, statement string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return false // it starts
		}
		defer c.Close(context.WithoutCancel(t.Context()))
		_, err = c.Exec(t.Context(), statement)
		require.NoError(t, err)
		return true
	}, 2*time.Minute, 20*time.Millisecond)
}

func open(t *testing.T, dsn string, opts store.Options) *store.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func suite(t *testing.T, server *testserver.Postgres, extension string) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		dsn := newDatabase(t, server, extension)
		return func(t *testing.T, opts store.Options) *store.Store {
			opts.Timeout = cmp.Or(opts.Timeout, time.Minute)
			return open(t, dsn, opts)
		}
	})
}

func TestStore(t *testing.T) {
	suite(t, testserver.StartPostgres(t), "")
}

// TestPooler runs the suite through a pooler that gives each transaction another connection.
func TestPooler(t *testing.T) {
	server := testserver.StartPostgres(t)
	through := testserver.StartPooler(t, server)
	pooled := func(t *testing.T) string {
		own, err := url.Parse(newDatabase(t, server, ""))
		require.NoError(t, err)
		return through(strings.TrimPrefix(own.Path, "/"))
	}
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		dsn := pooled(t)
		return func(t *testing.T, opts store.Options) *store.Store {
			opts.Timeout = cmp.Or(opts.Timeout, time.Minute)
			return open(t, dsn, opts)
		}
	})
	for _, mode := range []string{"exec", "cache_statement", "cache_describe", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			dsn := pooled(t) + "&default_query_exec_mode=" + mode
			for i := range 8 {
				require.NoError(t, open(t, dsn, store.Options{}).Put(t.Context(), []string{"a"}, fmt.Sprint(i), map[string]any{"i": i}))
			}
		})
	}
}

// TestPgvector runs the suite where the extension is installed: the database then compares the vectors.
func TestPgvector(t *testing.T) {
	server := testserver.StartPostgres(t)
	var c *pgx.Conn
	require.Eventually(t, func() bool {
		var err error
		c, err = pgx.Connect(t.Context(), server.DSN("postgres"))
		return err == nil
	}, 2*time.Minute, 20*time.Millisecond)
	defer c.Close(context.WithoutCancel(t.Context()))
	var there bool
	require.NoError(t, c.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector')").Scan(&there))
	if !there {
		t.Skip("pgvector is not installed (Debian: apt-get install postgresql-17-pgvector)")
	}
	suite(t, server, "vector")
}

// holdLock locks a table until let is closed.
func holdLock(t *testing.T, dsn, statement string, held chan<- struct{}, let <-chan struct{}) {
	defer close(held)
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	tx, err := c.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), statement)
	}
	if err != nil {
		t.Error(err)
		return
	}
	held <- struct{}{}
	<-let
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}
