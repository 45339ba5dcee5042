package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// reverse gives a refund back to the order, once for its key. The keys of
// reversals are apart from those of refunds: a compensation may carry the key
// of the write it takes back.
func (s *Store) reverse(ctx context.Context, key, receiptID string) (out committed[Receipt], err error) {
	n, err := receiptNumber(receiptID)
	if err != nil {
		return out, err
	}
	err = s.transact(ctx, func(tx *sql.Tx) error {
		out.created, err = s.insertReversal(ctx, tx, key, n)
		if err != nil {
			return err
		}
		out.value, err = scanReceipt(tx.QueryRowContext(ctx, selectRefund+`WHERE r.n = ?`, n))
		if err != nil {
			return fmt.Errorf("read %s back: %w", receiptID, err)
		}
		if out.created {
			out.fault, err = spendAfter(ctx, tx, PathReversals)
		}
		return err
	})
	return out, err
}

// insertReversal reports whether the reversal is new.
func (s *Store) insertReversal(ctx context.Context, tx *sql.Tx, key string, n int64) (created bool, err error) {
	known, err := sameReversal(ctx, tx, key, n)
	if err != nil || known {
		return false, err
	}
	var reversed bool
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM reversals WHERE refund = r.n) FROM refunds AS r WHERE n = ?`, n).Scan(&reversed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, noReceipt(n)
	case err != nil:
		return false, fmt.Errorf("look for rf-%d: %w", n, err)
	case reversed:
		return false, refuse(statusConflict, CodeAlreadyReversed, "refund rf-%d was reversed under another key", n)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO reversals (key, refund, created_at) VALUES (?, ?, ?)`, key, n, s.timestamp())
	if err != nil {
		return false, fmt.Errorf("write reversal: %w", err)
	}
	return true, nil
}

// sameReversal reports whether the key reversed this refund already, and
// refuses it when it reversed another.
func sameReversal(ctx context.Context, tx *sql.Tx, key string, n int64) (bool, error) {
	var stored int64
	known, err := foundRow(tx.QueryRowContext(ctx, `SELECT refund FROM reversals WHERE key = ?`, key).Scan(&stored))
	if err != nil {
		return false, fmt.Errorf("look for key: %w", err)
	}
	if known && stored != n {
		return false, refuse(statusInvalid, CodeKeyReused, "the key was used to reverse rf-%d, not rf-%d", stored, n)
	}
	return known, nil
}

// receiptNumber reads n from rf-n, in that one spelling.
func receiptNumber(id string) (int64, error) {
	digits, ok := strings.CutPrefix(id, "rf-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n <= 0 || strconv.FormatInt(n, 10) != digits {
		return 0, refuse(http.StatusNotFound, CodeRefundNotFound, "there is no refund %q", id)
	}
	return n, nil
}

func noReceipt(n int64) error {
	return refuse(http.StatusNotFound, CodeRefundNotFound, "there is no refund rf-%d", n)
}
