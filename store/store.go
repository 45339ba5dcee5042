package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Store is long-term memory: items under namespaces and keys. It is safe for concurrent use. Its calls fail with an [*Error].
type Store struct {
	backend Backend
	opts    Options
	swept   *atomic.Int64 // when, in Unix microseconds
	writer  Writer
}

// New returns a store over a database, which Close closes. Errors: [ErrBadInput].
func New(b Backend, opts Options) (*Store, error) {
	if b == nil {
		return nil, refuse("a store needs a Backend: store.NewMemory, sqlite.Open or postgres.Open")
	}
	if err := opts.complete(); err != nil {
		return nil, err
	}
	return &Store{backend: b, opts: opts, swept: &atomic.Int64{}}, nil
}

// Close lets go of the database. It is for who opened the store.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	return s.backend.Close()
}

// Indexed reports whether items are found by the meaning of a text.
func (s *Store) Indexed() bool { return s != nil && s.opts.Index != nil }

// Around returns the store over a backend of one's own that calls the store's: one that counts, delays, or fails on purpose.
func (s *Store) Around(wrap func(Backend) Backend) *Store {
	around := *s
	around.backend = wrap(s.backend)
	return &around
}

// Writer makes a write that [Store.Write] takes.
type Writer func(ctx context.Context, w Change) error

// Through returns the store with its writes made by w, which calls [Store.Apply] of s.
func (s *Store) Through(w Writer) *Store {
	through := *s
	through.writer = w
	return &through
}

// Change is a write that was checked and not made yet.
type Change struct {
	write  Write
	fields []string
}

// Item is what the write is of, and whether it puts an item, or deletes it.
func (c Change) Item() (namespace []string, key string, put bool) {
	return c.write.Namespace, c.write.Key, c.write.Value != nil
}

// Value is the JSON that is put, nil for a delete. It must not be changed.
func (c Change) Value() json.RawMessage { return c.write.Value }

// Put stores a value, which encodes as a JSON object, under a namespace and a key: a new item, or a new version of the one that is there.
// Another process sees it as soon as Put returns. Nil deletes the item, as in LangGraph.
//
// Errors: [ErrBadInput]; [ErrUnavailable], after which it may be stored or not; what the [Embedder] says, then nothing is stored. In a node
// also those of superstep.Effect.Call.
func (s *Store) Put(ctx context.Context, namespace []string, key string, value any, opts ...PutOption) error {
	text, err := encode(value)
	if err != nil {
		return err
	}
	return s.change(ctx, namespace, key, text, opts)
}

// Delete removes an item. One that is not there is no error. Errors: those of Put.
func (s *Store) Delete(ctx context.Context, namespace []string, key string, opts ...PutOption) error {
	return s.change(ctx, namespace, key, nil, opts)
}

func (s *Store) change(ctx context.Context, namespace []string, key string, value json.RawMessage, opts []PutOption) error {
	if s == nil {
		return None()
	}
	p, err := puttingOf(opts)
	if err == nil {
		err = cmp.Or(CheckNamespace(namespace), CheckKey(key))
	}
	if err != nil {
		return err
	}
	c := Change{write: Write{Namespace: slices.Clone(namespace), Key: key, Value: value, TTL: s.opts.TTL, ID: p.id}}
	if p.ttl != nil {
		c.write.TTL = *p.ttl
	}
	if s.opts.Index != nil && value != nil && !p.bare {
		c.fields = s.opts.Index.Fields
		if len(p.fields) > 0 {
			c.fields = p.fields
		}
	}
	if s.writer != nil {
		if p.id != "" {
			return refuse("WithID is not for nodes: there a write has the key of its task")
		}
		return s.writer(ctx, c)
	}
	_, err = s.Apply(ctx, c, c.write.ID)
	return err
}

// Apply makes a write under an id, as [Backend].Write does; "" for none.
func (s *Store) Apply(ctx context.Context, c Change, id string) (Receipt, error) {
	w := c.write
	w.ID = id
	if len(c.fields) > 0 {
		texts, err := textsOf(w.Value, c.fields)
		if err == nil && len(texts) > 0 {
			w.Vectors, err = s.embed(ctx, texts)
		}
		if err != nil {
			return Receipt{}, err
		}
	}
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	w.Now = s.now()
	receipt, err := s.backend.Write(bounded, w)
	if err != nil {
		return receipt, s.failed(ctx, err, w.Namespace, w.Key)
	}
	s.sweepNow(bounded, w.Now)
	return receipt, nil
}

// Written returns the receipt of the write of an id, false where it was not made, was undone, or is forgotten.
func (s *Store) Written(ctx context.Context, id string) (Receipt, bool, error) {
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	receipt, ok, err := s.backend.Written(bounded, id)
	return receipt, ok, s.failed(ctx, err, nil, "")
}

// Undo takes a write back, as [Backend].Undo does.
func (s *Store) Undo(ctx context.Context, id string) error {
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	return s.failed(ctx, s.backend.Undo(bounded, id), nil, "")
}

// Get returns an item, whose time, if it has an end, begins anew.
//
// Errors: [ErrNotFound]; [ErrBadInput]; [ErrUnavailable].
func (s *Store) Get(ctx context.Context, namespace []string, key string, opts ...GetOption) (Item, error) {
	if s == nil {
		return Item{}, None()
	}
	if err := cmp.Or(CheckNamespace(namespace), CheckKey(key)); err != nil {
		return Item{}, err
	}
	read := Read{Now: s.now(), Extend: !s.opts.KeepTTL}
	for _, o := range opts {
		o(&read)
	}
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	item, ok, err := s.backend.Get(bounded, namespace, key, read)
	if err == nil && !ok {
		err = &Error{Kind: ErrNotFound, Message: "there is no such item"}
	}
	return item, s.failed(ctx, err, namespace, key)
}

// GetOption shapes one [Store.Get].
type GetOption func(*Read)

// KeepTTL leaves the end of the item's time as it is.
func KeepTTL() GetOption { return func(r *Read) { r.Extend = false } }

// Search returns a page of the items of a namespace and of those below it; the empty prefix has all items. It is ordered by how near items
// are to Query.Text in meaning, those that are not embedded behind; without a text the item that was put last comes first.
//
// A filter has the members that the value is to have. An object in it wants at least its members, a list the same list, anything else an
// equal value; what is not there is null. Operators stand in an object in place of the value: $eq and $ne, and $gt, $gte, $lt and $lte,
// which compare numbers with numbers and texts, by their bytes, with texts. Each item of the prefix is read until the page is full: a
// filter costs what it leaves out.
//
// Errors: [ErrBadInput]; [ErrUnavailable]; what the [Embedder] says.
func (s *Store) Search(ctx context.Context, prefix []string, q Query) ([]Hit, error) {
	if s == nil {
		return nil, None()
	}
	if err := cmp.Or(checkLabels("prefix", prefix), checkPage(&q.Limit, q.Offset, DefaultLimit)); err != nil {
		return nil, err
	}
	f, err := parseFilter(q.Filter)
	if err != nil {
		return nil, err
	}
	find := Find{Prefix: prefix, Limit: q.Limit, Offset: q.Offset}
	if f != nil {
		find.Matches = f.matches
	}
	if find.Vector, err = s.vectorOf(ctx, q.Text); err != nil {
		return nil, err
	}
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	find.Read = Read{Now: s.now(), Extend: !s.opts.KeepTTL && !q.KeepTTL}
	hits, err := s.backend.Search(bounded, find)
	return hits, s.failed(ctx, err, nil, "")
}

// vectorOf embeds a query, nil for none.
func (s *Store) vectorOf(ctx context.Context, text string) ([]float32, error) {
	switch {
	case text == "":
		return nil, nil
	case s.opts.Index == nil:
		return nil, refuse("items are found by the meaning of a text only in a store with an Index: see store.Options")
	case len(text) > MaxTextBytes:
		return nil, refuse("the query's text has %d bytes, the most is %d", len(text), MaxTextBytes)
	}
	vectors, err := s.embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// embed makes vectors, and refuses what are none.
func (s *Store) embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := s.opts.Index.Embedder.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("store: embed: %w", err)
	}
	if len(vectors) != len(texts) {
		return nil, refuse("the Embedder made %d vectors of %d texts", len(vectors), len(texts))
	}
	for _, v := range vectors {
		if len(v) != s.opts.Index.Dims {
			return nil, refuse("the Embedder made a vector of %d numbers, and the Index has Dims %d", len(v), s.opts.Index.Dims)
		}
		if !finite(v) {
			return nil, refuse("the Embedder made a vector with a number that is none")
		}
	}
	return vectors, nil
}

// Namespaces returns a page of the namespaces that have items, in their order.
//
// Errors: [ErrBadInput]; [ErrUnavailable].
func (s *Store) Namespaces(ctx context.Context, q NamespaceQuery) ([][]string, error) {
	if s == nil {
		return nil, None()
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	all, err := s.backend.Namespaces(bounded, q, s.now())
	return all, s.failed(ctx, err, nil, "")
}

// Sweep removes what has expired from the database. Nobody sees it anyway, and writes remove some of it once a minute.
func (s *Store) Sweep(ctx context.Context) error {
	for more := true; more; {
		var err error
		now := s.now()
		if more, err = s.backend.Sweep(ctx, now, now.Add(-s.opts.Remember)); err != nil {
			return s.failed(ctx, err, nil, "")
		}
	}
	return nil
}

// sweepEvery is how often writes sweep.
const sweepEvery = time.Minute

// sweepNow sweeps once, if nobody did lately. That it fails is no failure of the write, which was made.
func (s *Store) sweepNow(ctx context.Context, now time.Time) {
	last := s.swept.Load()
	if now.UnixMicro()-last < sweepEvery.Microseconds() || !s.swept.CompareAndSwap(last, now.UnixMicro()) {
		return
	}
	_, _ = s.backend.Sweep(ctx, now, now.Add(-s.opts.Remember))
}

// now is the clock's time as it is stored.
func (s *Store) now() time.Time { return s.opts.Now().UTC().Truncate(time.Microsecond) }

func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.opts.Timeout)
}

// failed says of which item an error is, and of a call that the store's own timeout has ended that the database did not answer.
func (s *Store) failed(ctx context.Context, err error, namespace []string, key string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable):
		err = &Error{Kind: ErrUnavailable, Message: fmt.Sprintf("the database has not answered within %v", s.opts.Timeout), Cause: err}
	}
	var own *Error
	if errors.As(err, &own) && own.Key == "" && key != "" {
		named := *own
		named.Namespace, named.Key = namespace, key
		return &named
	}
	return err
}

// None is the error of a process that was given no store.
func None() error {
	return &Error{Kind: ErrNone, Message: "this process was given none: give it one (--store, SUPERSTEP_STORE, WorkerConfig.Store or superstep.WithStore)"}
}
