package main

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
)

const (
	appendEvents = "REPLACE INTO history_node (shard_id, tree_id, branch_id, node_id, prev_txn_id, txn_id, data, data_encoding) " +
		"VALUES (1, x'01', x'02', ?, 0, 0, x'03', '')"
	storeRun   = "INSERT INTO shards (shard_id, range_id, data, data_encoding) VALUES (?, 0, x'04', '')"
	countNodes = "SELECT COUNT(*) FROM history_node"
	countRuns  = "SELECT COUNT(*) FROM shards WHERE shard_id > 1"
)

// disk is what a power cut leaves of a database: its files as they were when they were last brought to the disk.
type disk struct {
	s       *sqliteStore
	dir     string
	flushes int
}

func (d *disk) flush(f *os.File) error {
	d.flushes++
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(d.s.file + suffix)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.dir, "left.db"+suffix), content, 0o600); err != nil {
			return err
		}
	}
	return flush(f)
}

// left counts what the next server finds.
func (d *disk) left(t *testing.T, query string) (n int) {
	t.Helper()
	dir := t.TempDir() // reading it may fold its log
	require.NoError(t, os.CopyFS(dir, os.DirFS(d.dir)))
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "left.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRow(query).Scan(&n))
	return n
}

// stored commits a run as the server does.
func stored(t *testing.T, pool *sqlx.DB, n int) error {
	t.Helper()
	tx, err := pool.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(storeRun, n+1)
	require.NoError(t, err)
	return tx.Commit()
}

// What is acknowledged is on the disk, with all that was written before it. What is not yet acknowledged waits for nothing.
func TestWhatIsAcknowledgedIsOnTheDisk(t *testing.T) {
	t.Parallel()
	s, pool := serversPool(t)
	d := &disk{s: s, dir: t.TempDir()}
	onIt(t, pool, func(c *preparedConn) { c.log.flush = d.flush })
	const runs = 12
	for n := 1; n <= runs; n++ {
		_, err := pool.Exec(appendEvents, n)
		require.NoError(t, err)
		require.Equal(t, n-1, d.flushes, "events alone wait for no disk")
		require.NoError(t, stored(t, pool, n))
		require.Equal(t, n, d.flushes)
		require.Equal(t, n, d.left(t, countRuns))
		require.Equal(t, n, d.left(t, countNodes))
		if n == runs/2 { // the log begins anew
			_, err = pool.Exec("PRAGMA wal_checkpoint(RESTART)")
			require.NoError(t, err)
			d.flushes = n
		}
	}
	tx, err := pool.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(appendEvents, runs+1) // of a new run, in a transaction of their own
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	var counted int
	require.NoError(t, pool.Get(&counted, countNodes))
	require.Equal(t, runs+1, counted)
	require.Equal(t, runs, d.left(t, countNodes), "the power may be cut here: nobody was told")
	_, err = pool.Exec(storeRun, runs+2) // what is in no transaction is acknowledged too
	require.NoError(t, err)
	require.Equal(t, runs+1, d.left(t, countNodes))
	require.Equal(t, runs+1, d.left(t, countRuns))
}

// A disk that fails is said by whatever is not on it, and a transaction that was rolled back asks nothing of it.
func TestADiskThatFails(t *testing.T) {
	t.Parallel()
	_, pool := serversPool(t)
	broken := errors.New("the disk is gone")
	onIt(t, pool, func(c *preparedConn) { c.log.flush = func(*os.File) error { return broken } })
	require.ErrorIs(t, stored(t, pool, 1), broken)
	_, err := pool.Exec(storeRun, 3)
	require.ErrorIs(t, err, broken)
	tx, err := pool.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(storeRun, 4)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	_, err = pool.Exec(appendEvents, 1)
	require.NoError(t, err)
}
