package payments

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"time"
)

const selectNotification = `SELECT n, order_id, text, key, created_at FROM notifications WHERE key = ?`

// notify commits a notification once for its key.
func (s *Store) notify(ctx context.Context, key string, n Notification) (out committed[Delivery], err error) {
	if err := n.validate(); err != nil {
		return out, err
	}
	err = s.transact(ctx, func(tx *sql.Tx) error {
		out.value, err = scanDelivery(tx.QueryRowContext(ctx, selectNotification, key))
		known, err := foundRow(err)
		if err != nil {
			return fmt.Errorf("look for key: %w", err)
		}
		if known {
			return sameNotification(out.value, n)
		}
		if out.value, err = s.insertNotification(ctx, tx, key, n); err != nil {
			return err
		}
		out.created = true
		out.fault, err = spendAfter(ctx, tx, PathNotifications)
		return err
	})
	return out, err
}

func sameNotification(stored Delivery, asked Notification) error {
	if stored.OrderID == asked.OrderID && stored.Text == asked.Text {
		return nil
	}
	return refuse(statusInvalid, CodeKeyReused, "the key was used for another notification (%s, order %s)", stored.ID, stored.OrderID)
}

func (s *Store) insertNotification(ctx context.Context, tx *sql.Tx, key string, n Notification) (Delivery, error) {
	if _, err := scanOrder(tx.QueryRowContext(ctx, selectOrder, n.OrderID), n.OrderID); err != nil {
		return Delivery{}, err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO notifications (key, order_id, text, created_at) VALUES (?, ?, ?, ?)`,
		key, n.OrderID, n.Text, s.timestamp())
	if err != nil {
		return Delivery{}, fmt.Errorf("write notification: %w", err)
	}
	delivery, err := scanDelivery(tx.QueryRowContext(ctx, selectNotification, key))
	if err != nil {
		return Delivery{}, fmt.Errorf("read notification back: %w", err)
	}
	return delivery, nil
}

// findNotification looks a notification up by its key, and counts the look-up.
func (s *Store) findNotification(ctx context.Context, key string) (delivery Delivery, err error) {
	found := false
	err = s.transact(ctx, func(tx *sql.Tx) error {
		if err := countLookup(ctx, tx, PathNotifications, key); err != nil {
			return err
		}
		delivery, err = scanDelivery(tx.QueryRowContext(ctx, selectNotification, key))
		found, err = foundRow(err)
		return err
	})
	if err == nil && !found {
		return Delivery{}, refuse(http.StatusNotFound, CodeNotificationNotFound, "there is no notification with that key")
	}
	return delivery, err
}

func scanDelivery(row scanner) (Delivery, error) {
	var (
		d       Delivery
		n       int64
		created string
	)
	if err := row.Scan(&n, &d.OrderID, &d.Text, &d.Key, &created); err != nil {
		return Delivery{}, err
	}
	d.ID = fmt.Sprintf("nt-%d", n)
	var err error
	if d.CreatedAt, err = time.Parse(time.RFC3339Nano, created); err != nil {
		return Delivery{}, fmt.Errorf("notification %s: %w", d.ID, err)
	}
	return d, nil
}
