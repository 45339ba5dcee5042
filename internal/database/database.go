package database

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"superstep.dev/store"
)

// Dialect is what one database does in its own way. Statements have parameters $1, $2.
type Dialect struct {
	// Migrations are the statements of each version of the tables, the first version's first. One that was released never changes.
	Migrations [][]string
	// Alone is a statement with which one process at a time migrates; "" where every transaction that writes is alone.
	Alone string
	// Skip ends a query for rows to be removed, so that those which others hold are left to them.
	Skip string
	// Cursor reads long results through a cursor, so that what nobody wants is never sent.
	Cursor bool
	// Failed makes an error of the database a store's. It is not asked about the end of the caller's context.
	Failed func(error) error
	// Vector is a vector as a parameter; ScanVector is where a column's goes, and what reads it from there.
	Vector     func([]float32) any
	ScanVector func() (into any, vector func() []float32)
	// Score is an expression for the score of item i with the parameter $1, a vector; "" computes it here.
	Score string
}

// Pool is where connections come from.
type Pool interface {
	// Get returns the pool, or why the database cannot be used now.
	Get(ctx context.Context) (*sql.DB, error)
	Close() error
}

// Items is a [store.Backend].
type Items struct {
	pool    Pool
	dialect Dialect
}

// New returns a backend over tables that are there; see [Migrate].
func New(p Pool, d Dialect) *Items { return &Items{p, d} }

// Close implements [store.Backend].
func (s *Items) Close() error { return s.pool.Close() }

// between separates the labels of a namespace in a column. No label has it, and all that labels have is above it, so that columns are in
// the order of namespaces; below is what ends the range of those with a common beginning.
const (
	between = "\x1f"
	below   = "\x20"
)

func joined(namespace []string) string { return strings.Join(namespace, between) }

func parted(column string) []string { return strings.Split(column, between) }

// failed is an error as the store's callers see it.
func (s *Items) failed(ctx context.Context, err error) error {
	var own *store.Error
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return s.dialect.Failed(err)
}

// within does something in one transaction.
func (s *Items) within(ctx context.Context, do func(*sql.Tx) error) error {
	db, err := s.pool.Get(ctx)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return s.failed(ctx, err)
	}
	if err = do(tx); err == nil {
		err = tx.Commit()
	} else {
		_ = tx.Rollback() // the first error says what is wrong
	}
	return s.failed(ctx, err)
}

// Write implements [store.Backend].
func (s *Items) Write(ctx context.Context, w store.Write) (receipt store.Receipt, err error) {
	err = s.within(ctx, func(tx *sql.Tx) error {
		if w.ID != "" {
			var repeated bool
			if receipt, repeated, err = note(ctx, tx, w); err != nil || repeated {
				return err
			}
		}
		if w.Value == nil {
			receipt.Version, err = remove(ctx, tx, w)
		} else {
			receipt.Version, err = s.put(ctx, tx, w)
		}
		if err == nil && w.ID != "" {
			_, err = tx.ExecContext(ctx, `UPDATE superstep_store_writes SET version = $1 WHERE id = $2`, receipt.Version, w.ID)
		}
		return err
	})
	if err != nil {
		return store.Receipt{}, err
	}
	return receipt, nil
}

// note notes that the write of an id is made, unless it was: then it returns its receipt. Of two that come at once one waits for the other.
func note(ctx context.Context, tx *sql.Tx, w store.Write) (r store.Receipt, repeated bool, err error) {
	noted, err := tx.ExecContext(ctx, `INSERT INTO superstep_store_writes (id, namespace, key, put, version, undone, written_at)
		VALUES ($1, $2, $3, $4, 0, 0, $5) ON CONFLICT (id) DO NOTHING`, w.ID, joined(w.Namespace), w.Key, number(w.Value != nil), w.Now.UnixMicro())
	if err != nil {
		return r, false, err
	}
	if n, err := noted.RowsAffected(); err != nil || n > 0 {
		return r, false, err
	}
	was, _, err := writeOf(ctx, tx, w.ID)
	if err == nil && (was.undone || was.namespace != joined(w.Namespace) || was.key != w.Key || was.put != (w.Value != nil)) {
		err = store.Misused(was.undone)
	}
	return store.Receipt{Version: was.version, Repeated: true}, true, err
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// written is what is noted of a write.
type written struct {
	namespace, key string
	put, undone    bool
	version        int64
}

// querier is a pool or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func writeOf(ctx context.Context, q querier, id string) (w written, ok bool, err error) {
	var put, undone int
	err = q.QueryRowContext(ctx, `SELECT namespace, key, put, undone, version FROM superstep_store_writes WHERE id = $1`, id).
		Scan(&w.namespace, &w.key, &put, &undone, &w.version)
	w.put, w.undone = put != 0, undone != 0
	if errors.Is(err, sql.ErrNoRows) {
		return w, false, nil
	}
	return w, err == nil, err
}

// put writes an item and returns its version. One that has expired counts as none.
func (s *Items) put(ctx context.Context, tx *sql.Tx, w store.Write) (version int64, err error) {
	var expires *int64
	if w.TTL > 0 {
		at := w.Now.Add(w.TTL).UnixMicro()
		expires = &at
	}
	namespace, now := joined(w.Namespace), w.Now.UnixMicro()
	err = tx.QueryRowContext(ctx, `INSERT INTO superstep_store_items AS was (namespace, key, value, version, created_at, updated_at, ttl, expires_at, write_id)
		VALUES ($1, $2, $3, 1, $4, $4, $5, $6, $7)
		ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at, ttl = excluded.ttl,
			expires_at = excluded.expires_at, write_id = excluded.write_id,
			version = CASE WHEN was.expires_at <= excluded.updated_at THEN 1 ELSE was.version + 1 END,
			created_at = CASE WHEN was.expires_at <= excluded.updated_at THEN excluded.created_at ELSE was.created_at END
		RETURNING version`, namespace, w.Key, string(w.Value), now, w.TTL.Microseconds(), expires, w.ID).Scan(&version)
	if err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM superstep_store_vectors WHERE namespace = $1 AND key = $2`, namespace, w.Key); err != nil {
		return 0, err
	}
	for n, v := range w.Vectors {
		if _, err := tx.ExecContext(ctx, `INSERT INTO superstep_store_vectors (namespace, key, n, embedding) VALUES ($1, $2, $3, $4)`,
			namespace, w.Key, n, s.dialect.Vector(v)); err != nil {
			return 0, err
		}
	}
	return version, nil
}

// remove deletes an item and returns the version that it had, 0 where it was not there.
func remove(ctx context.Context, tx *sql.Tx, w store.Write) (version int64, err error) {
	var expires *int64
	err = tx.QueryRowContext(ctx, `DELETE FROM superstep_store_items WHERE namespace = $1 AND key = $2 RETURNING version, expires_at`,
		joined(w.Namespace), w.Key).Scan(&version, &expires)
	if errors.Is(err, sql.ErrNoRows) || err == nil && expires != nil && *expires <= w.Now.UnixMicro() {
		return 0, nil
	}
	return version, err
}

// Written implements [store.Backend].
func (s *Items) Written(ctx context.Context, id string) (store.Receipt, bool, error) {
	db, err := s.pool.Get(ctx)
	if err != nil {
		return store.Receipt{}, false, err
	}
	w, ok, err := writeOf(ctx, db, id)
	return store.Receipt{Version: w.version}, ok && !w.undone, s.failed(ctx, err)
}

// Undo implements [store.Backend].
func (s *Items) Undo(ctx context.Context, id string) error {
	return s.within(ctx, func(tx *sql.Tx) error {
		// Noting it first keeps writers of the same id out.
		noted, err := tx.ExecContext(ctx, `UPDATE superstep_store_writes SET undone = 1 WHERE id = $1 AND undone = 0`, id)
		if err != nil {
			return err
		}
		if n, err := noted.RowsAffected(); err != nil || n == 0 {
			return err
		}
		w, _, err := writeOf(ctx, tx, id)
		if err != nil {
			return err
		}
		var last string
		err = tx.QueryRowContext(ctx, `SELECT write_id FROM superstep_store_items WHERE namespace = $1 AND key = $2`, w.namespace, w.key).Scan(&last)
		there := err == nil
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if there != w.put || there && last != id {
			return nil // written since
		}
		removes, err := store.Undoable(w.put, store.Receipt{Version: w.version})
		if err != nil || !removes {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM superstep_store_items WHERE namespace = $1 AND key = $2 AND write_id = $3`, w.namespace, w.key, id)
		return err
	})
}

// columns are those that [row.scan] reads.
const columns = `i.namespace, i.key, i.value, i.version, i.created_at, i.updated_at, i.ttl, i.expires_at`

// row is an item as it is stored.
type row struct {
	store.Item
	ttl time.Duration
}

// scan reads an item's columns, and behind them more.
func (r *row) scan(scan func(...any) error, more ...any) error {
	var namespace string
	var value []byte
	var created, updated, ttl int64
	var expires *int64
	if err := scan(append([]any{&namespace, &r.Key, &value, &r.Version, &created, &updated, &ttl, &expires}, more...)...); err != nil {
		return err
	}
	r.Namespace, r.Value, r.ttl = parted(namespace), value, time.Duration(ttl)*time.Microsecond
	r.Created, r.Updated, r.Expires = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC(), time.Time{}
	if expires != nil {
		r.Expires = time.UnixMicro(*expires).UTC()
	}
	return nil
}

// Get implements [store.Backend].
func (s *Items) Get(ctx context.Context, namespace []string, key string, read store.Read) (store.Item, bool, error) {
	db, err := s.pool.Get(ctx)
	if err != nil {
		return store.Item{}, false, err
	}
	r, ok, err := s.get(ctx, db, joined(namespace), key, read.Now)
	if err != nil || !ok {
		return store.Item{}, false, s.failed(ctx, err)
	}
	return r.Item, true, s.extend(ctx, read, []*row{&r})
}

func (s *Items) get(ctx context.Context, q querier, namespace, key string, now time.Time) (r row, ok bool, err error) {
	err = r.scan(q.QueryRowContext(ctx, `SELECT `+columns+` FROM superstep_store_items i WHERE i.namespace = $1 AND i.key = $2
		AND (i.expires_at IS NULL OR i.expires_at > $3)`, namespace, key, now.UnixMicro()).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, err
}

// extend writes down that the time of items which expire begins anew.
func (s *Items) extend(ctx context.Context, read store.Read, items []*row) error {
	var later []*row
	for _, r := range items {
		if next, ok := read.Extended(r.Expires, r.ttl); ok {
			r.Expires = next
			later = append(later, r)
		}
	}
	if len(later) == 0 {
		return nil
	}
	return s.within(ctx, func(tx *sql.Tx) error {
		for _, r := range later {
			if _, err := tx.ExecContext(ctx, `UPDATE superstep_store_items SET expires_at = $1 WHERE namespace = $2 AND key = $3 AND expires_at < $1 AND version = $4`,
				r.Expires.UnixMicro(), joined(r.Namespace), r.Key, r.Version); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweepAtOnce is how much of a kind one sweep removes.
const sweepAtOnce = 1000

// Sweep implements [store.Backend].
func (s *Items) Sweep(ctx context.Context, now, forget time.Time) (more bool, err error) {
	err = s.within(ctx, func(tx *sql.Tx) error {
		for _, one := range []struct {
			statement string
			before    time.Time
		}{
			{`DELETE FROM superstep_store_items WHERE (namespace, key) IN (SELECT namespace, key FROM superstep_store_items
				WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2` + s.dialect.Skip + `)`, now},
			{`DELETE FROM superstep_store_writes WHERE id IN (SELECT id FROM superstep_store_writes
				WHERE written_at < $1 ORDER BY written_at LIMIT $2` + s.dialect.Skip + `)`, forget},
		} {
			swept, err := tx.ExecContext(ctx, one.statement, one.before.UnixMicro(), sweepAtOnce)
			if err != nil {
				return err
			}
			n, err := swept.RowsAffected()
			if err != nil {
				return err
			}
			more = more || n == sweepAtOnce
		}
		return nil
	})
	return more, err
}
