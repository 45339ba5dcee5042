package payments

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
)

// order reads one order.
func (s *Store) order(ctx context.Context, id string) (Order, error) {
	return scanOrder(s.db.QueryRowContext(ctx, selectOrder, id), id)
}

const selectOrder = `SELECT id, amount, currency, customer FROM orders WHERE id = ?`

func scanOrder(row *sql.Row, id string) (Order, error) {
	var o Order
	err := row.Scan(&o.ID, &o.Amount, &o.Currency, &o.Customer)
	if errors.Is(err, sql.ErrNoRows) {
		return Order{}, refuse(http.StatusNotFound, CodeOrderNotFound, "there is no order %q", id)
	}
	if err != nil {
		return Order{}, fmt.Errorf("read order %s: %w", id, err)
	}
	return o, nil
}

// putOrder creates an order or replaces one that nothing has been paid back
// from: changing what was paid under an existing refund would make the
// refund's check a lie. It reports whether the order is new.
func (s *Store) putOrder(ctx context.Context, o Order) (created bool, err error) {
	if err := o.validate(); err != nil {
		return false, err
	}
	err = s.transact(ctx, func(tx *sql.Tx) error {
		old, err := scanOrder(tx.QueryRowContext(ctx, selectOrder, o.ID), o.ID)
		switch {
		case errors.Is(err, ErrNotFound):
			created = true
		case err != nil:
			return err
		case old == o:
			return nil
		}
		var refunds int64
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM refunds WHERE order_id = ?`, o.ID).Scan(&refunds); err != nil {
			return fmt.Errorf("count refunds of %s: %w", o.ID, err)
		}
		if refunds > 0 {
			return refuse(statusConflict, CodeOrderHasRefunds, "order %s has %d refunds and cannot be changed", o.ID, refunds)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO orders (id, amount, currency, customer) VALUES (?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET amount = excluded.amount, currency = excluded.currency, customer = excluded.customer`,
			o.ID, o.Amount, o.Currency, o.Customer)
		if err != nil {
			return fmt.Errorf("write order %s: %w", o.ID, err)
		}
		return nil
	})
	return created, err
}
