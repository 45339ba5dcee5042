package database

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"superstep.dev/store"
)

// Migrate makes the tables, or brings them up to date: each version in a transaction of its own, of which a database has all or nothing, by
// one process at a time. Tables of a version that this program does not know are left alone: that is [store.ErrBadInput].
func Migrate(ctx context.Context, p Pool, d Dialect) error {
	s := New(p, d)
	db, err := p.Get(ctx)
	if err != nil {
		return err
	}
	// A role that may not make tables can use those that are there.
	if have, err := version(ctx, db); err == nil && have >= len(d.Migrations) {
		return known(have, len(d.Migrations))
	}
	for done := false; !done; {
		err := s.within(ctx, func(tx *sql.Tx) (err error) {
			done, err = d.next(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func version(ctx context.Context, q querier) (have int, err error) {
	err = q.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM superstep_store_schema`).Scan(&have)
	return have, err
}

func known(have, newest int) error {
	if have > newest {
		return &store.Error{Kind: store.ErrBadInput,
			Message: fmt.Sprintf("the database has tables of version %d, and this program knows %d: use a newer program", have, newest)}
	}
	return nil
}

// next carries out the next migration, if there is one.
func (d Dialect) next(ctx context.Context, tx *sql.Tx) (done bool, err error) {
	run := func(statement string, args ...any) {
		if err == nil && statement != "" {
			_, err = tx.ExecContext(ctx, statement, args...)
		}
	}
	run(d.Alone)
	run(`CREATE TABLE IF NOT EXISTS superstep_store_schema (version INTEGER PRIMARY KEY, migrated_at BIGINT NOT NULL)`)
	if err != nil {
		return false, err
	}
	have, err := version(ctx, tx)
	if err != nil || have >= len(d.Migrations) {
		return true, cmp.Or(err, known(have, len(d.Migrations)))
	}
	for _, statement := range d.Migrations[have] {
		run(statement)
	}
	run(`INSERT INTO superstep_store_schema (version, migrated_at) VALUES ($1, $2)`, have+1, time.Now().UnixMicro())
	return false, err
}
