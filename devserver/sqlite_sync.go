package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A run that asks, and is answered, is committed some eleven times, and acknowledged by four of those: the events of a run are stored before the run that
// counts them, a record for lists long after. SQLite would wait for the disk at each commit (synchronous=FULL). It is told not to
// (synchronous=NORMAL, which still syncs whenever it folds the log), and what is acknowledged is brought to the disk here.
//
// The log is one sequence, and to sync a commit brings to the disk whatever was committed before: what a power cut takes is the end of that
// sequence, never a piece in front of something that is kept. The server ends with it: the next one begins with the tasks that the disk has.

// unacknowledged are how SQLite's statements begin that nobody outside is told of: the server commits something else before that, or does
// them again when they are gone.
var unacknowledged = []string{
	"REPLACE INTO history_node ", "REPLACE INTO history_tree ", // then follows the run
	"INSERT INTO executions_visibility ",      // before the task to do so is deleted
	"DELETE FROM timer_tasks WHERE shard_id ", // a task that is there again is found to be done
	"DELETE FROM transfer_tasks WHERE shard_id ",
	"DELETE FROM visibility_tasks WHERE shard_id ",
}

// beginsAs reports whether a statement begins as one of some do.
func beginsAs(some []string, text string) bool {
	return slices.ContainsFunc(some, func(begins string) bool { return strings.HasPrefix(text, begins) })
}

// writeAheadLog is the log of a database. SQLite keeps the file for as long as a connection has the database open.
type writeAheadLog struct {
	path  string
	file  *os.File             // nil before the first sync
	flush func(*os.File) error // returns when what is in the file is on the disk
}

// sync returns when all that was committed is on the disk.
func (l *writeAheadLog) sync() error {
	if l.file == nil {
		file, err := os.OpenFile(l.path, os.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("open the write-ahead log: %w", err)
		}
		l.file = file
	}
	if err := l.flush(l.file); err != nil {
		return fmt.Errorf("bring %s to the disk: %w", l.path, err)
	}
	return nil
}

func (l *writeAheadLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// wrote is called behind each statement that may have written.
func (c *preparedConn) wrote(text string) error {
	if beginsAs(unacknowledged, text) {
		return nil
	}
	if c.tx != nil {
		c.tx.acknowledged = true
		return nil
	}
	return c.log.sync()
}

// BeginTx begins a transaction whose commit is on the disk when it returns, unless nobody is told of what it wrote.
func (c *preparedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.tx = &syncedTx{Tx: tx, conn: c}
	return c.tx, nil
}

// syncedTx is a transaction of a connection.
type syncedTx struct {
	driver.Tx
	conn         *preparedConn
	acknowledged bool // whether it wrote what somebody is told of
}

// Commit commits, and waits for the disk. After an error nobody knows whether it did, as of any commit.
func (t *syncedTx) Commit() error {
	t.conn.tx = nil
	if err := t.Tx.Commit(); err != nil || !t.acknowledged {
		return err
	}
	return t.conn.log.sync()
}

// Rollback forgets what was written.
func (t *syncedTx) Rollback() error {
	t.conn.tx = nil
	return t.Tx.Rollback()
}
