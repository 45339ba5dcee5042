package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// committed is what one keyed write came to.
type committed[T any] struct {
	value T
	// created is false when the key was known and value is the stored one.
	created bool
	// fault is what was set to happen after a commit. It is spent already.
	fault faultAfter
}

const selectRefund = `SELECT r.n, r.order_id, r.amount, r.key, r.created_at, v.created_at
	FROM refunds AS r LEFT JOIN reversals AS v ON v.refund = r.n `

// refund commits a refund once for its key, in one transaction: whether the key
// is known, what is left of the order, the receipt and the spent fault are one
// decision, whoever else asks at the same time.
func (s *Store) refund(ctx context.Context, key string, r Refund) (out committed[Receipt], err error) {
	err = s.transact(ctx, func(tx *sql.Tx) error {
		out.value, err = scanReceipt(tx.QueryRowContext(ctx, selectRefund+`WHERE r.key = ?`, key))
		known, err := foundRow(err)
		if err != nil {
			return fmt.Errorf("look for key: %w", err)
		}
		if known {
			return sameRefund(out.value, r)
		}
		if err := checkLeft(ctx, tx, r); err != nil {
			return err
		}
		out.value, err = s.insertRefund(ctx, tx, key, r)
		if err != nil {
			return err
		}
		out.created = true
		out.fault, err = spendAfter(ctx, tx, PathRefunds)
		return err
	})
	return out, err
}

// sameRefund refuses a known key with other parameters: its owner would take
// the stored receipt for something it is not.
func sameRefund(stored Receipt, asked Refund) error {
	if stored.OrderID == asked.OrderID && stored.Amount == asked.Amount {
		return nil
	}
	return refuse(statusInvalid, CodeKeyReused, "the key was used for a refund of %s to order %s (%s), not %s to order %s",
		cents(stored.Amount), stored.OrderID, stored.ID, cents(asked.Amount), asked.OrderID)
}

// checkLeft refuses a refund of nothing, or of more than the order has left.
func checkLeft(ctx context.Context, tx *sql.Tx, r Refund) error {
	order, err := scanOrder(tx.QueryRowContext(ctx, selectOrder, r.OrderID), r.OrderID)
	if err != nil {
		return err
	}
	if r.Amount <= 0 {
		return refuse(statusInvalid, CodeInvalidAmount, "amount %s is not above zero", cents(r.Amount))
	}
	var given int64
	err = tx.QueryRowContext(ctx, `SELECT coalesce(sum(amount), 0) FROM refunds
		WHERE order_id = ? AND n NOT IN (SELECT refund FROM reversals)`, r.OrderID).Scan(&given)
	if err != nil {
		return fmt.Errorf("sum refunds of %s: %w", r.OrderID, err)
	}
	// given never exceeds the order, so the difference cannot overflow.
	if left := order.Amount - given; r.Amount > left {
		return refuse(statusConflict, CodeExceedsOrder, "amount %s is above the %s left of order %s (paid %s, refunded %s)",
			cents(r.Amount), cents(left), order.ID, cents(order.Amount), cents(given))
	}
	return nil
}

func (s *Store) insertRefund(ctx context.Context, tx *sql.Tx, key string, r Refund) (Receipt, error) {
	_, err := tx.ExecContext(ctx, `INSERT INTO refunds (key, order_id, amount, created_at) VALUES (?, ?, ?, ?)`,
		key, r.OrderID, r.Amount, s.timestamp())
	if err != nil {
		return Receipt{}, fmt.Errorf("write refund: %w", err)
	}
	// Read it back: a first answer and a repeat must be the same in every digit.
	receipt, err := scanReceipt(tx.QueryRowContext(ctx, selectRefund+`WHERE r.key = ?`, key))
	if err != nil {
		return Receipt{}, fmt.Errorf("read refund back: %w", err)
	}
	return receipt, nil
}

// findRefund looks a refund up by its key, and counts the look-up.
func (s *Store) findRefund(ctx context.Context, key string) (receipt Receipt, err error) {
	found := false
	err = s.transact(ctx, func(tx *sql.Tx) error {
		if err := countLookup(ctx, tx, PathRefunds, key); err != nil {
			return err
		}
		receipt, err = scanReceipt(tx.QueryRowContext(ctx, selectRefund+`WHERE r.key = ?`, key))
		// Finding nothing is an answer: the count of it must be committed.
		found, err = foundRow(err)
		return err
	})
	if err == nil && !found {
		return Receipt{}, refuse(http.StatusNotFound, CodeRefundNotFound, "there is no refund with that key")
	}
	return receipt, err
}

// foundRow tells an empty result from a failed one.
func foundRow(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// refundsOf lists an order's refunds, oldest first, at most limit of them.
func (s *Store) refundsOf(ctx context.Context, id string, limit int) (list []Receipt, err error) {
	if _, err := s.order(ctx, id); err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, selectRefund+`WHERE r.order_id = ? ORDER BY r.n LIMIT ?`, id, limit)
	if err != nil {
		return nil, fmt.Errorf("list refunds of %s: %w", id, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	list = []Receipt{}
	for rows.Next() {
		receipt, err := scanReceipt(rows)
		if err != nil {
			return nil, fmt.Errorf("list refunds of %s: %w", id, err)
		}
		list = append(list, receipt)
	}
	return list, rows.Err()
}

// scanner is a row, of one or of many.
type scanner interface{ Scan(dest ...any) error }

func scanReceipt(row scanner) (Receipt, error) {
	var (
		r        Receipt
		n        int64
		created  string
		reversed sql.NullString
	)
	if err := row.Scan(&n, &r.OrderID, &r.Amount, &r.Key, &created, &reversed); err != nil {
		return Receipt{}, err
	}
	r.ID = fmt.Sprintf("rf-%d", n)
	var err error
	if r.CreatedAt, err = time.Parse(time.RFC3339Nano, created); err != nil {
		return Receipt{}, fmt.Errorf("refund %s: %w", r.ID, err)
	}
	if reversed.Valid {
		at, err := time.Parse(time.RFC3339Nano, reversed.String)
		if err != nil {
			return Receipt{}, fmt.Errorf("refund %s: %w", r.ID, err)
		}
		r.ReversedAt = &at
	}
	return r, nil
}
