package main

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
)

// soonCommitted are how the statements begin whose commit the server does not wait for, where they are a transaction by themselves: the
// events of a run, which the run that counts them follows, and the records for lists, behind which the task to write them is deleted. One log
// is that of all databases of a PostgreSQL server: each commit that is waited for brings to the disk whatever was committed before.
var soonCommitted = []string{"INSERT INTO history_node ", "INSERT INTO executions_visibility "}

// committedSoon ends such a statement. It holds for its transaction alone, through a pooler of connections too.
const committedSoon = " RETURNING set_config('synchronous_commit', 'off', true)"

// waitingLess opens connections that do not wait for the commit of what is soon committed.
type waitingLess struct{ driver.Connector }

// Connect opens one.
func (w waitingLess) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := connect(ctx, w.Connector)
	if err != nil {
		return nil, err
	}
	return waitingLessConn{conn}, nil
}

type waitingLessConn struct{ *stdlib.Conn }

// idle is what PostgreSQL says of a connection outside transactions.
const idle = 'I'

// ExecContext executes a text.
func (c waitingLessConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	alone := c.Conn.Conn().PgConn().TxStatus() == idle
	if alone && slices.ContainsFunc(soonCommitted, func(begins string) bool { return strings.HasPrefix(text, begins) }) {
		text += committedSoon
	}
	return c.Conn.ExecContext(ctx, text, args)
}
