package main

import (
	"context"
	"database/sql/driver"

	"github.com/jackc/pgx/v5/stdlib"
)

// unacknowledgedAlone are how PostgreSQL's statements begin that nobody outside is told of where they are a transaction by themselves: the
// events of a run, which the run that counts them follows, and the records for lists, behind which the task to write them is deleted. One log
// is that of all databases of a PostgreSQL server: each commit that is waited for brings to the disk whatever was committed before.
var unacknowledgedAlone = []string{"INSERT INTO history_node ", "INSERT INTO executions_visibility "}

// withoutWaiting ends such a statement: its commit does not wait for the disk. It holds for its transaction alone, through a pooler of connections too.
const withoutWaiting = " RETURNING set_config('synchronous_commit', 'off', true)"

// syncing opens connections whose commits wait for the disk, but for what is unacknowledged alone.
type syncing struct{ driver.Connector }

// Connect opens one.
func (s syncing) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := connect(ctx, s.Connector)
	if err != nil {
		return nil, err
	}
	return syncingConn{conn}, nil
}

type syncingConn struct{ *stdlib.Conn }

// idle is what PostgreSQL says of a connection outside transactions.
const idle = 'I'

// ExecContext executes a text.
func (c syncingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if c.Conn.Conn().PgConn().TxStatus() == idle && beginsAs(unacknowledgedAlone, text) {
		text += withoutWaiting
	}
	return c.Conn.ExecContext(ctx, text, args)
}
