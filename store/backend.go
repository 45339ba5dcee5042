package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Backend keeps items. It is safe for concurrent use, and by as many processes as may reach its database. What it is given has been
// checked. Times are to the microsecond, and come from the caller: an item whose Expires is not after Now is not there.
//
// An error is an [*Error], of the kind [ErrUnavailable] unless something else is said, or the end of ctx.
type Backend interface {
	// Get returns an item; false where there is none. With Extend the time of one that expires begins anew, within a hundredth of it.
	Get(ctx context.Context, namespace []string, key string, read Read) (Item, bool, error)
	// Write puts or deletes an item, in one step with the note that the write of its ID was made. A write whose ID was made before
	// changes nothing, and has the Receipt that it had, Repeated. One whose ID was undone, or used for another item, is [ErrBadInput].
	Write(ctx context.Context, w Write) (Receipt, error)
	// Written returns the receipt of the write of an ID, that was not undone; false where there is none.
	Written(ctx context.Context, id string) (Receipt, bool, error)
	// Undo removes the item that the write of an ID has created, unless it was written since; then nothing is left to be undone. A
	// write that has replaced or deleted an item, and after which nobody wrote, is [ErrKept]. An ID that is not known is undone.
	Undo(ctx context.Context, id string) error
	// Search returns a page of the items of a namespace and those below it.
	Search(ctx context.Context, f Find) ([]Hit, error)
	// Namespaces returns a page of the namespaces that have items, in their order: label by label, by bytes.
	Namespaces(ctx context.Context, q NamespaceQuery, now time.Time) ([][]string, error)
	// Sweep removes at most a thousand items that have expired and as many notes of writes that were made before forget, and reports
	// whether more are left. Nobody but it has to remove them.
	Sweep(ctx context.Context, now, forget time.Time) (more bool, err error)
	// Close lets go of the database.
	Close() error
}

// Read says at what time somebody reads, and whether that extends the time of items that expire.
type Read struct {
	Now    time.Time
	Extend bool
}

// Write is one write of an item.
type Write struct {
	Namespace []string
	Key       string
	// Value is the item's JSON; nil deletes the item.
	Value json.RawMessage
	// TTL is how long the item stays, 0 for ever.
	TTL time.Duration
	// Vectors are those of its texts. They replace what the item had.
	Vectors [][]float32
	// ID names the write, "" for no name.
	ID  string
	Now time.Time
}

// Receipt is what became of a write.
type Receipt struct {
	// Version is the item's after a put. After a delete it is that of the item which was deleted, 0 where there was none.
	Version int64 `json:"version"`
	// Repeated says that the write was made before.
	Repeated bool `json:"-"`
}

// Find says what a search is to find.
type Find struct {
	Read
	Prefix []string
	// Matches reports whether an item's value is wanted; nil wants all.
	Matches func(json.RawMessage) bool
	// Vector ranks items by the cosine of their nearest vector, descending; those without one of its length come behind. Nil ranks
	// none: then, and behind, the item that was written last comes first, and of the same microsecond the lesser namespace and key.
	Vector        []float32
	Limit, Offset int
}

// Extended is when an item expires after it is read, and whether that is to be written down: not for less than a hundredth of its time.
func (r Read) Extended(expires time.Time, ttl time.Duration) (time.Time, bool) {
	if !r.Extend || ttl <= 0 {
		return expires, false
	}
	next := r.Now.Add(ttl)
	if next.Sub(expires) < max(ttl/100, time.Microsecond) {
		return expires, false
	}
	return next, true
}

// Page collects a page of hits for a [Backend], with the bounds that every one keeps.
type Page struct {
	find  Find
	seen  int
	bytes int
	hits  []Hit
}

// NewPage returns the page that a search asks for.
func NewPage(f Find) *Page { return &Page{find: f} }

// Full reports whether no more hits are wanted.
func (p *Page) Full() bool { return len(p.hits) >= p.find.Limit }

// Add offers the next item in their order. The error is that the page's values are too large together.
func (p *Page) Add(h Hit) error {
	if p.Full() || p.find.Matches != nil && !p.find.Matches(h.Value) {
		return nil
	}
	if p.seen++; p.seen <= p.find.Offset {
		return nil
	}
	if p.bytes += len(h.Value); p.bytes > MaxPageBytes {
		return refuse("the values of the page have more than %d bytes together: ask for fewer than %d", MaxPageBytes, len(p.hits)+1)
	}
	h.Value = slices.Clone(h.Value)
	p.hits = append(p.hits, h)
	return nil
}

// Hits are those that the page has.
func (p *Page) Hits() []Hit { return p.hits }

// Undoable says what remains to be done to undo a write of that receipt, after which the item was not written again: remove it, or, with
// an error of the kind [ErrKept], nothing that could be done.
func Undoable(put bool, r Receipt) (remove bool, err error) {
	switch {
	case put && r.Version == 1:
		return true, nil
	case !put && r.Version == 0:
		return false, nil
	}
	return false, &Error{Kind: ErrKept, Message: "the write cannot be undone: what was there before is not kept"}
}

// Misused is the error for an ID that another write has had.
func Misused(undone bool) error {
	if undone {
		return refuse("the write of that id was undone: a new one needs an id of its own")
	}
	return refuse("the id is that of a write of another item: a write needs an id of its own")
}
