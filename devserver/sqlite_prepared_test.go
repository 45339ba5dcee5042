package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	persistence "go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/resolver"
	"modernc.org/sqlite"
)

// countedConn counts what SQLite has to parse.
type countedConn struct {
	sqliteConn
	prepared map[string]int
}

func (c countedConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	c.prepared[text]++
	return c.sqliteConn.PrepareContext(ctx, text)
}

// counting is a connector whose connections count.
type counting struct {
	driver.Connector
	prepared map[string]int
}

func (c counting) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return countedConn{conn.(sqliteConn), c.prepared}, nil
}

// onOneConnection is a database with one table of three numbers, and how often each text was prepared.
func onOneConnection(t *testing.T) (*sql.DB, map[string]int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "numbers.db")
	connect, err := sqlite.NewConnector("file:" + file + "?_pragma=journal_mode(wal)")
	require.NoError(t, err)
	prepared := map[string]int{}
	db := sql.OpenDB(preparing{counting{connect, prepared}, file + "-wal"})
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Exec("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
	require.NoError(t, err)
	for n := range 3 {
		_, err = db.Exec(insertNumber, n+1)
		require.NoError(t, err)
	}
	return db, prepared
}

const (
	insertNumber = "INSERT INTO numbers (n) VALUES (?)"
	allNumbers   = "SELECT n FROM numbers WHERE n >= ? ORDER BY n"
)

// serversPool is the server's pool on a new database.
func serversPool(t *testing.T) (*sqliteStore, *sqlx.DB) {
	t.Helper()
	s, err := openSQLite(filepath.Join(t.TempDir(), "a b?.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	pool, err := serverPool(s.config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pool.DB.Close()) })
	return s, pool
}

// onIt has the one connection of a pool.
func onIt(t *testing.T, pool *sqlx.DB, do func(c *preparedConn)) {
	t.Helper()
	conn, err := pool.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Raw(func(c any) error {
		require.IsType(t, &preparedConn{}, c)
		do(c.(*preparedConn))
		return nil
	}))
	require.NoError(t, conn.Close())
}

// numbers reads all from one on; between is called at each row.
func numbers(t *testing.T, from interface {
	Query(text string, args ...any) (*sql.Rows, error)
}, first int, between func()) (all []int) {
	t.Helper()
	rows, err := from.Query(allNumbers, first)
	require.NoError(t, err)
	for rows.Next() {
		var n int
		require.NoError(t, rows.Scan(&n))
		all = append(all, n)
		between()
	}
	require.NoError(t, rows.Err())
	return all
}

func nothing() {}

func TestATextIsPreparedOnce(t *testing.T) {
	t.Parallel()
	db, prepared := onOneConnection(t)
	for range 5 {
		require.Equal(t, []int{2, 3}, numbers(t, db, 2, nothing))
		require.Equal(t, []int{3}, numbers(t, db, 3, nothing))
	}
	require.Equal(t, 1, prepared[plannedOnce.Replace(insertNumber)])
	require.Equal(t, 1, prepared[plannedOnce.Replace(allNumbers)])
}

// A text that is read from, and is asked again meanwhile, is two statements.
func TestATextIsAskedWhileItIsRead(t *testing.T) {
	t.Parallel()
	db, prepared := onOneConnection(t)
	tx, err := db.Begin()
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, numbers(t, tx, 1, func() {
		require.Equal(t, []int{2, 3}, numbers(t, tx, 2, nothing))
	}))
	require.NoError(t, tx.Commit())
	require.Equal(t, 2, prepared[plannedOnce.Replace(allNumbers)])
}

// One that is left in the middle holds nothing: neither a transaction nor the next caller.
func TestATextIsLeftInTheMiddle(t *testing.T) {
	t.Parallel()
	db, prepared := onOneConnection(t)
	for range 3 {
		rows, err := db.Query(allNumbers, 1)
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.NoError(t, rows.Close())
	}
	_, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, numbers(t, db, 1, nothing))
	require.Equal(t, 1, prepared[plannedOnce.Replace(allNumbers)])
}

func TestAStatementThatFailedIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	db, prepared := onOneConnection(t)
	for range 2 {
		_, err := db.Exec(insertNumber, 1)
		var refused *sqlite.Error
		require.ErrorAs(t, err, &refused)
	}
	_, err := db.Exec(insertNumber, 4)
	require.NoError(t, err)
	require.Equal(t, 3, prepared[plannedOnce.Replace(insertNumber)])

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.ExecContext(gone, insertNumber, 5)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []int{1, 2, 3, 4}, numbers(t, db, 1, nothing))
}

// A statement prepared before the schema changed sees the new one.
func TestTheSchemaChanges(t *testing.T) {
	t.Parallel()
	db, _ := onOneConnection(t)
	const one = "SELECT * FROM numbers WHERE n = 1"
	columns := func() []string {
		rows, err := db.Query(one)
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		names, err := rows.Columns()
		require.NoError(t, err)
		return names
	}
	require.Equal(t, []string{"n"}, columns())
	_, err := db.Exec("ALTER TABLE numbers ADD COLUMN word TEXT")
	require.NoError(t, err)
	require.Equal(t, []string{"n", "word"}, columns())
}

func TestStatementsAreBounded(t *testing.T) {
	t.Parallel()
	db, _ := onOneConnection(t)
	for n := range idleStatements + 50 {
		_, err := db.Exec(fmt.Sprintf("UPDATE numbers SET n = n WHERE n = %d", n))
		require.NoError(t, err)
	}
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Raw(func(c any) error {
		require.Len(t, c.(*preparedConn).idle, idleStatements)
		return nil
	}))
	require.NoError(t, conn.Close())
}

// The server's own pool prepares once, with the settings of the server's own.
func TestTheServerPreparesOnce(t *testing.T) {
	t.Parallel()
	_, pool := serversPool(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "busy_timeout": "10000"} {
		var got string
		require.NoError(t, pool.Get(&got, "PRAGMA "+pragma))
		require.Equal(t, want, got, pragma)
	}
	var name string
	require.NoError(t, pool.Get(&name, "SELECT name FROM namespaces WHERE name = ?", namespace))
	require.Equal(t, 1, pool.Stats().MaxOpenConnections)
	onIt(t, pool, func(*preparedConn) {})
}

// What the server reads again and again is planned once, though its shard is number 1, for which SQLite would plan it each time.
func TestTheServersReadsArePlannedOnce(t *testing.T) {
	t.Parallel()
	s, pool := serversPool(t)
	store, err := persistence.NewSQLDB(sqlplugin.DbKindMain, s.config(), resolver.NewNoopResolver(), log.NewNoopLogger(), metrics.NoopMetricsHandler)
	require.NoError(t, err)
	planned := 0
	onIt(t, pool, func(c *preparedConn) {
		require.NoError(t, c.sqliteConn.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(
			func(sqlite.AuthorizerActionCode, string, string, string, string) sqlite.AuthorizerReturnCode {
				planned++
				return sqlite.AuthorizerOK
			}))
	})
	once := 0
	for n := range int64(5) {
		_, err = store.RangeSelectFromHistoryNode(t.Context(), sqlplugin.HistoryNodeSelectFilter{ShardID: 1, TreeID: primitives.NewUUID(),
			BranchID: primitives.NewUUID(), MinNodeID: n%2 + 1, MinTxnID: -n, MaxNodeID: 100 + n, PageSize: 256})
		require.NoError(t, err)
		_, err = store.RangeSelectFromTimerTasks(t.Context(), sqlplugin.TimerTasksRangeFilter{ShardID: 1, InclusiveMinTaskID: n % 2,
			InclusiveMinVisibilityTimestamp: time.Unix(n, 0), ExclusiveMaxVisibilityTimestamp: time.Unix(n+1, 0), PageSize: 1 + int(n)})
		require.NoError(t, err)
		_, err = store.RangeSelectFromTransferTasks(t.Context(), sqlplugin.TransferTasksRangeFilter{ShardID: 1, InclusiveMinTaskID: n,
			ExclusiveMaxTaskID: n + 10, PageSize: 1 + int(n)})
		require.NoError(t, err)
		if once == 0 {
			once = planned
		}
		require.Equal(t, once, planned, "reading number %d", n+1)
	}
	require.NotZero(t, once)
}
