package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// setFaults replaces what one path is told to do.
func (s *Store) setFaults(ctx context.Context, f Faults) error {
	if err := f.validate(); err != nil {
		return err
	}
	_, err := s.db.ExecContext(ctx, `INSERT OR REPLACE INTO faults (path, slow_ms, fail_5xx, die_after_commit, hang_after_commit) VALUES (?, ?, ?, ?, ?)`,
		f.Path, f.SlowMS, f.Fail5xx, f.DieAfterCommit, f.HangAfterCommit)
	if err != nil {
		return fmt.Errorf("write faults: %w", err)
	}
	return nil
}

// clearFaults makes every path behave.
func (s *Store) clearFaults(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, `DELETE FROM faults`); err != nil {
		return fmt.Errorf("clear faults: %w", err)
	}
	return nil
}

// faults lists what is left to misbehave, one entry for every path.
func (s *Store) faults(ctx context.Context) (list []Faults, err error) {
	err = s.transact(ctx, func(tx *sql.Tx) error {
		for _, path := range writePaths {
			f, err := readFaults(ctx, tx, path)
			if err != nil {
				return err
			}
			list = append(list, f)
		}
		return nil
	})
	return list, err
}

func readFaults(ctx context.Context, tx *sql.Tx, path string) (Faults, error) {
	f := Faults{Path: path}
	err := tx.QueryRowContext(ctx, `SELECT slow_ms, fail_5xx, die_after_commit, hang_after_commit FROM faults WHERE path = ?`, path).
		Scan(&f.SlowMS, &f.Fail5xx, &f.DieAfterCommit, &f.HangAfterCommit)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Faults{}, fmt.Errorf("read faults of %s: %w", path, err)
	}
	return f, nil
}

// spendBefore takes the fault that a request meets on arrival.
func spendBefore(ctx context.Context, tx *sql.Tx, path string) (faultBefore, error) {
	f, err := readFaults(ctx, tx, path)
	if err != nil {
		return faultBefore{}, err
	}
	before := faultBefore{slow: time.Duration(f.SlowMS) * time.Millisecond, fail: f.Fail5xx > 0}
	if before.fail {
		err = spend(ctx, tx, path, "fail_5xx")
	}
	return before, err
}

// spendAfter takes the fault that a request meets once it has committed. It
// belongs to the transaction of the commit: there is no moment at which the
// money has moved and the fault could strike a second time, or the reverse.
func spendAfter(ctx context.Context, tx *sql.Tx, path string) (faultAfter, error) {
	f, err := readFaults(ctx, tx, path)
	switch {
	case err != nil:
		return faultNone, err
	case f.DieAfterCommit > 0:
		return faultDie, spend(ctx, tx, path, "die_after_commit")
	case f.HangAfterCommit > 0:
		return faultHang, spend(ctx, tx, path, "hang_after_commit")
	}
	return faultNone, nil
}

// spend takes one off a count. The column is one of ours, never input.
func spend(ctx context.Context, tx *sql.Tx, path, column string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE faults SET `+column+` = `+column+` - 1 WHERE path = ?`, path); err != nil {
		return fmt.Errorf("spend %s of %s: %w", column, path, err)
	}
	return nil
}
