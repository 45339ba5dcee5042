package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// NewMemory returns a store in this process's memory, for tests and for programs that remember nothing beyond their own life.
// Errors: [ErrBadInput].
func NewMemory(opts Options) (*Store, error) { return New(Memory(), opts) }

// Memory returns a [Backend] in this process's memory.
func Memory() Backend {
	return &memory{items: map[place]*kept{}, writes: map[string]*written{}}
}

// place is a namespace, its labels joined, and a key.
type place struct{ namespace, key string }

func placeOf(namespace []string, key string) place {
	return place{strings.Join(namespace, "."), key} // no label has a period
}

type kept struct {
	Item
	ttl     time.Duration
	vectors [][]float32
	id      string // of the last write
}

type written struct {
	place
	put, undone bool
	receipt     Receipt
	at          time.Time
}

type memory struct {
	mu     sync.Mutex
	items  map[place]*kept
	writes map[string]*written
}

// gone reports whether an item has expired.
func (k *kept) gone(now time.Time) bool { return !k.Expires.IsZero() && !k.Expires.After(now) }

// read returns an item for a reader, and extends its time.
func (k *kept) read(r Read) Item {
	if next, ok := r.Extended(k.Expires, k.ttl); ok {
		k.Expires = next
	}
	item := k.Item
	item.Namespace, item.Value = slices.Clone(item.Namespace), slices.Clone(item.Value)
	return item
}

// Get implements [Backend].
func (m *memory) Get(_ context.Context, namespace []string, key string, r Read) (Item, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.items[placeOf(namespace, key)]
	if !ok || k.gone(r.Now) {
		return Item{}, false, nil
	}
	return k.read(r), true, nil
}

// Write implements [Backend].
func (m *memory) Write(_ context.Context, w Write) (Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := placeOf(w.Namespace, w.Key)
	if was, ok := m.writes[w.ID]; ok && w.ID != "" {
		if was.undone || was.place != at || was.put != (w.Value != nil) {
			return Receipt{}, Misused(was.undone)
		}
		receipt := was.receipt
		receipt.Repeated = true
		return receipt, nil
	}
	before := m.items[at]
	if before != nil && before.gone(w.Now) {
		before = nil
	}
	var receipt Receipt
	if w.Value == nil {
		if before != nil {
			receipt.Version = before.Version
		}
		delete(m.items, at)
	} else {
		receipt.Version = m.put(at, w, before)
	}
	if w.ID != "" {
		m.writes[w.ID] = &written{place: at, put: w.Value != nil, receipt: receipt, at: w.Now}
	}
	return receipt, nil
}

func (m *memory) put(at place, w Write, before *kept) int64 {
	next := &kept{Item: Item{Namespace: w.Namespace, Key: w.Key, Value: w.Value, Created: w.Now, Updated: w.Now, Version: 1},
		ttl: w.TTL, vectors: w.Vectors, id: w.ID}
	if w.TTL > 0 {
		next.Expires = w.Now.Add(w.TTL)
	}
	if before != nil {
		next.Created, next.Version = before.Created, before.Version+1
	}
	m.items[at] = next
	return next.Version
}

// Written implements [Backend].
func (m *memory) Written(_ context.Context, id string) (Receipt, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.writes[id]
	if !ok || w.undone {
		return Receipt{}, false, nil
	}
	return w.receipt, true, nil
}

// Undo implements [Backend].
func (m *memory) Undo(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.writes[id]
	if !ok || w.undone {
		return nil
	}
	now, there := m.items[w.place]
	if there == w.put && (!there || now.id == id) {
		remove, err := Undoable(w.put, w.receipt)
		if err != nil {
			return err
		}
		if remove {
			delete(m.items, w.place)
		}
	}
	w.undone = true
	return nil
}

// Search implements [Backend].
func (m *memory) Search(ctx context.Context, f Find) ([]Hit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	type found struct {
		*kept
		score *float64
	}
	var all []found
	for _, k := range m.items {
		if Within(k.Namespace, f.Prefix) && !k.gone(f.Now) {
			all = append(all, found{k, k.score(f.Vector)})
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(compareScores(a.score, b.score), b.Updated.Compare(a.Updated), slices.Compare(a.Namespace, b.Namespace), strings.Compare(a.Key, b.Key))
	})
	page := NewPage(f)
	for _, k := range all {
		if page.Full() || ctx.Err() != nil {
			break
		}
		if err := page.Add(Hit{k.Item, k.score}); err != nil {
			return nil, err
		}
	}
	hits := page.Hits()
	for i, h := range hits {
		hits[i].Item = m.items[placeOf(h.Namespace, h.Key)].read(f.Read)
	}
	return hits, ctx.Err()
}

// score is that of the nearest of an item's vectors, nil where none can be compared.
func (k *kept) score(to []float32) (best *float64) {
	for _, v := range k.vectors {
		if to == nil || len(v) != len(to) {
			continue
		}
		if s := Cosine(v, to); best == nil || s > *best {
			best = &s
		}
	}
	return best
}

// compareScores puts the higher score first, and those without one behind.
func compareScores(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*b, *a)
}

// Namespaces implements [Backend].
func (m *memory) Namespaces(_ context.Context, q NamespaceQuery, now time.Time) ([][]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all [][]string
	for _, k := range m.items {
		if !k.gone(now) && q.Matches(k.Namespace) {
			all = append(all, slices.Clone(q.Cut(k.Namespace)))
		}
	}
	slices.SortFunc(all, slices.Compare[[]string])
	all = slices.CompactFunc(all, slices.Equal[[]string])
	from := min(q.Offset, len(all))
	return all[from:min(from+q.Limit, len(all))], nil
}

// sweepAtOnce is how much one sweep removes.
const sweepAtOnce = 1000

// Sweep implements [Backend].
func (m *memory) Sweep(_ context.Context, now, forget time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := sweepAtOnce
	for at, k := range m.items {
		if k.gone(now) && left > 0 {
			delete(m.items, at)
			left--
		}
	}
	for id, w := range m.writes {
		if w.at.Before(forget) {
			delete(m.writes, id)
		}
	}
	return left == 0, nil
}

// Close implements [Backend].
func (m *memory) Close() error { return nil }
