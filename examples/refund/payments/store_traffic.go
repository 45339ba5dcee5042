package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// arrive records that a write was received, before anything is decided about
// it, and spends the fault it meets on arrival. It commits on its own, so the
// figures are right for the requests that never get further.
func (s *Store) arrive(ctx context.Context, path, key string) (before faultBefore, err error) {
	err = s.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO traffic (path, key, requests) VALUES (?, ?, 1)
			ON CONFLICT (path, key) DO UPDATE SET requests = requests + 1`, path, key)
		if err != nil {
			return fmt.Errorf("count request: %w", err)
		}
		before, err = spendBefore(ctx, tx, path)
		return err
	})
	return before, err
}

func countLookup(ctx context.Context, tx *sql.Tx, path, key string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO traffic (path, key, lookups) VALUES (?, ?, 1)
		ON CONFLICT (path, key) DO UPDATE SET lookups = lookups + 1`, path, key)
	if err != nil {
		return fmt.Errorf("count look-up: %w", err)
	}
	return nil
}

// stats reads the figures in one transaction, so that they fit each other. A
// key narrows ByKey to it.
func (s *Store) stats(ctx context.Context, key string) (stats Stats, err error) {
	err = s.transact(ctx, func(tx *sql.Tx) error {
		for _, part := range []struct {
			path, table string
			into        *Traffic
		}{
			{PathRefunds, "refunds", &stats.Refunds},
			{PathReversals, "reversals", &stats.Reversals},
			{PathNotifications, "notifications", &stats.Notifications},
		} {
			if err := readTraffic(ctx, tx, part.path, part.table, key, part.into); err != nil {
				return fmt.Errorf("figures of %s: %w", part.path, err)
			}
		}
		return nil
	})
	return stats, err
}

// readTraffic takes what was committed from the table itself: a count kept
// beside it could disagree with the money.
func readTraffic(ctx context.Context, tx *sql.Tx, path, table, key string, into *Traffic) error {
	err := tx.QueryRowContext(ctx, `SELECT coalesce(sum(requests), 0), coalesce(sum(lookups), 0), count(nullif(key, '')),
		(SELECT count(*) FROM `+table+`) FROM traffic WHERE path = ?`, path).
		Scan(&into.Requests, &into.Lookups, &into.Keys, &into.Committed)
	if err != nil {
		return err
	}
	into.ByKey, err = readKeys(ctx, tx, path, table, key)
	return err
}

func readKeys(ctx context.Context, tx *sql.Tx, path, table, key string) (keys map[string]KeyTraffic, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT t.key, t.requests, t.lookups, (SELECT count(*) FROM `+table+` AS w WHERE w.key = t.key)
		FROM traffic AS t WHERE t.path = ?1 AND t.key <> '' AND (?2 = '' OR t.key = ?2) ORDER BY t.n DESC LIMIT ?3`,
		path, key, statsKeys)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	keys = map[string]KeyTraffic{}
	for rows.Next() {
		var name string
		var k KeyTraffic
		if err := rows.Scan(&name, &k.Requests, &k.Lookups, &k.Committed); err != nil {
			return nil, err
		}
		keys[name] = k
	}
	return keys, rows.Err()
}
