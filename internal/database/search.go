package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"superstep.dev/store"
)

// where is the condition for the items of a prefix that have not expired, with its parameters behind those given.
func where(prefix []string, now time.Time, args ...any) (string, []any) {
	args = append(args, now.UnixMicro())
	text := fmt.Sprintf(`(i.expires_at IS NULL OR i.expires_at > $%d)`, len(args))
	if len(prefix) > 0 {
		args = append(args, joined(prefix), joined(prefix)+between, joined(prefix)+below)
		n := len(args)
		text += fmt.Sprintf(` AND (i.namespace = $%d OR i.namespace >= $%d AND i.namespace < $%d)`, n-2, n-1, n)
	}
	return text, args
}

// newestFirst is the order of what nothing ranks.
const newestFirst = `i.updated_at DESC, i.namespace, i.key`

// Search implements [store.Backend].
func (s *Items) Search(ctx context.Context, f store.Find) ([]store.Hit, error) {
	db, err := s.pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	var rows []*row
	var hits []store.Hit
	if f.Vector != nil && s.dialect.Score == "" {
		hits, rows, err = s.nearest(ctx, db, f)
	} else {
		hits, rows, err = s.page(ctx, db, f)
	}
	if err == nil {
		err = s.extend(ctx, f.Read, rows)
	}
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	for i, r := range rows {
		hits[i].Expires = r.Expires
	}
	return hits, nil
}

// page reads items in the database's own order until the page is full.
func (s *Items) page(ctx context.Context, db *sql.DB, f store.Find) ([]store.Hit, []*row, error) {
	var args []any
	name, score, order := "page", `NULL`, newestFirst
	if f.Vector != nil {
		name, args = "scored", append(args, s.dialect.Vector(f.Vector))
		score, order = s.dialect.Score, `score DESC NULLS LAST, `+newestFirst
	}
	condition, args := where(f.Prefix, f.Now, args...)
	query := `SELECT ` + columns + `, ` + score + ` AS score FROM superstep_store_items i WHERE ` + condition + ` ORDER BY ` + order
	if f.Matches == nil {
		query += fmt.Sprintf(` LIMIT %d`, f.Limit+f.Offset)
	}
	page := store.NewPage(f)
	ttls := map[string]time.Duration{}
	err := s.each(ctx, db, name, query, args, func(rows *sql.Rows) (bool, error) {
		var r row
		var score *float64
		if err := r.scan(rows.Scan, &score); err != nil {
			return false, err
		}
		if r.ttl > 0 {
			ttls[joined(r.Namespace)+between+between+r.Key] = r.ttl
		}
		err := page.Add(store.Hit{Item: r.Item, Score: score})
		return err == nil && !page.Full(), err
	})
	var kept []*row
	for _, h := range page.Hits() {
		kept = append(kept, &row{h.Item, ttls[joined(h.Namespace)+between+between+h.Key]})
	}
	return page.Hits(), kept, err
}

// each calls do for the rows of a query while it says so. All queries of a name have the same columns: connections remember what those of
// a cursor are by its name.
func (s *Items) each(ctx context.Context, db *sql.DB, name, query string, args []any, do func(*sql.Rows) (more bool, err error)) error {
	if !s.dialect.Cursor {
		_, _, err := eachRow(ctx, db, query, args, do)
		return err
	}
	const atOnce = 500
	cursor := "superstep_store_" + name
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it has read only
	if _, err := tx.ExecContext(ctx, `DECLARE `+cursor+` NO SCROLL CURSOR FOR `+query, args...); err != nil {
		return err
	}
	for {
		n, more, err := eachRow(ctx, tx, fmt.Sprintf(`FETCH %d FROM %s`, atOnce, cursor), nil, do)
		if err != nil || !more || n < atOnce {
			return err
		}
	}
}

// eachRow reports how many rows it has read, and whether more are wanted.
func eachRow(ctx context.Context, q querier, query string, args []any, do func(*sql.Rows) (bool, error)) (n int, more bool, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, false, err
	}
	more = true
	for more && rows.Next() {
		n++
		if more, err = do(rows); err != nil {
			return n, false, errors.Join(err, rows.Close())
		}
	}
	return n, more, cmp.Or(rows.Err(), rows.Close())
}

// ranked is an item and how near it is.
type ranked struct {
	namespace, key string
	updated        int64
	score          *float64
}

func (a ranked) compare(b ranked) int {
	switch {
	case a.score != nil && b.score == nil:
		return -1
	case a.score == nil && b.score != nil:
		return 1
	case a.score != nil && *a.score != *b.score:
		return cmp.Compare(*b.score, *a.score)
	}
	return cmp.Or(cmp.Compare(b.updated, a.updated), strings.Compare(a.namespace, b.namespace), strings.Compare(a.key, b.key))
}

// nearest compares all vectors of the prefix here, keeps of the items that are wanted the nearest, and reads the page's.
func (s *Items) nearest(ctx context.Context, db *sql.DB, f store.Find) ([]store.Hit, []*row, error) {
	best, err := s.rank(ctx, db, f)
	if err != nil {
		return nil, nil, err
	}
	page := store.NewPage(store.Find{Limit: f.Limit})
	var rows []*row
	for _, at := range best[min(f.Offset, len(best)):] {
		r, ok, err := s.get(ctx, db, at.namespace, at.key, f.Now)
		if err == nil && ok {
			rows = append(rows, &r)
			err = page.Add(store.Hit{Item: r.Item, Score: at.score})
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return page.Hits(), rows, nil
}

// rank returns the nearest items, as many as the page and what is before it have.
func (s *Items) rank(ctx context.Context, db *sql.DB, f store.Find) (best []ranked, err error) {
	most := f.Limit + f.Offset
	condition, args := where(f.Prefix, f.Now)
	into, vector := s.dialect.ScanVector()
	err = s.each(ctx, db, "ranked", `SELECT `+columns+`, v.embedding FROM superstep_store_items i
		LEFT JOIN superstep_store_vectors v ON v.namespace = i.namespace AND v.key = i.key WHERE `+condition+` ORDER BY i.namespace, i.key`, args,
		func(rows *sql.Rows) (bool, error) {
			var r row
			if err := r.scan(rows.Scan, into); err != nil {
				return false, err
			}
			at := ranked{joined(r.Namespace), r.Key, r.Updated.UnixMicro(), nil}
			if v := vector(); len(v) == len(f.Vector) {
				score := store.Cosine(v, f.Vector)
				at.score = &score
			}
			switch last := len(best) - 1; {
			case last >= 0 && best[last].namespace == at.namespace && best[last].key == at.key:
				if at.compare(best[last]) < 0 {
					best[last] = at
				}
				return true, nil
			case f.Matches != nil && !f.Matches(r.Value):
				return true, nil
			case len(best) >= 2*most+1000: // its last item may have more vectors to come
				slices.SortFunc(best[:last], ranked.compare)
				best = append(best[:most], best[last])
			}
			best = append(best, at)
			return true, nil
		})
	slices.SortFunc(best, ranked.compare)
	return best[:min(most, len(best))], err
}

// Namespaces implements [store.Backend].
func (s *Items) Namespaces(ctx context.Context, q store.NamespaceQuery, now time.Time) (all [][]string, err error) {
	db, err := s.pool.Get(ctx)
	if err != nil {
		return nil, err
	}
	condition, args := where(q.Literal(), now)
	left := q.Offset
	var last []string
	err = s.each(ctx, db, "namespaces", `SELECT DISTINCT i.namespace FROM superstep_store_items i WHERE `+condition+` ORDER BY i.namespace`, args,
		func(rows *sql.Rows) (bool, error) {
			var column string
			if err := rows.Scan(&column); err != nil {
				return false, err
			}
			namespace := parted(column)
			if !q.Matches(namespace) {
				return true, nil
			}
			if namespace = q.Cut(namespace); slices.Equal(namespace, last) {
				return true, nil
			}
			last = namespace
			if left--; left >= 0 {
				return true, nil
			}
			all = append(all, namespace)
			return len(all) < q.Limit, nil
		})
	return all, s.failed(ctx, err)
}
