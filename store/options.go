package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options say how a [Store] works. The zero value is ready.
type Options struct {
	// TTL is how long an item stays that is put without one of its own; 0 for ever.
	TTL time.Duration
	// KeepTTL leaves the end of an item's time as it is when the item is read; otherwise it begins anew, as in LangGraph.
	KeepTTL bool
	// Index has items found by the meaning of a text; nil for not at all.
	Index *Index
	// Timeout bounds each call to the database; 0 means 10 s. The context of the call bounds it too.
	Timeout time.Duration
	// Remember is for how long a write with an id is known to have been made ([WithID]): at least as long as a task may be repeated
	// whose worker was lost. 0 means 30 days.
	Remember time.Duration
	// Now is the clock; nil means time.Now. It is for tests.
	Now func() time.Time
}

// Embedder makes vectors of texts. It is safe for concurrent use.
type Embedder interface {
	// Embed returns one vector for each text, all of the same length. It should end when ctx does.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Index says what of an item is embedded.
type Index struct {
	Embedder Embedder
	// Dims is how many numbers a vector has, 1 to [MaxDims].
	Dims int
	// Fields are the paths of what is embedded in an item's value: "a.b", "a[0]", "a[-1]", "a[*].c", and "$" for the whole value as
	// JSON, which is meant where there are none.
	Fields []string
}

const (
	defaultTimeout  = 10 * time.Second
	defaultRemember = 30 * 24 * time.Hour
)

// complete checks options and fills in what is left out.
func (o *Options) complete() error {
	if o.TTL < 0 || o.TTL > MaxTTL || o.Timeout < 0 || o.Remember < 0 {
		return refuse("a time of the store's options is negative or above %v", MaxTTL)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Remember == 0 {
		o.Remember = defaultRemember
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Index == nil {
		return nil
	}
	index := *o.Index
	index.Fields = slices.Clone(index.Fields)
	if len(index.Fields) == 0 {
		index.Fields = []string{whole}
	}
	if index.Embedder == nil || index.Dims < 1 || index.Dims > MaxDims {
		return refuse("the store's Index needs an Embedder, and Dims of 1 to %d", MaxDims)
	}
	o.Index = &index
	return checkPaths(index.Fields)
}

// PutOption shapes one [Store.Put] or [Store.Delete].
type PutOption func(*putting)

type putting struct {
	ttl    *time.Duration
	fields []string
	bare   bool
	id     string
}

// WithTTL has the item expire that long after it was last put, or read; 0 means never.
func WithTTL(d time.Duration) PutOption { return func(p *putting) { p.ttl = &d } }

// WithIndex has these paths of the value embedded in place of the store's own; see [Index]. A store without an Index ignores them, as
// LangGraph's do.
func WithIndex(fields ...string) PutOption {
	return func(p *putting) { p.fields, p.bare = fields, false }
}

// WithoutIndex has nothing of the value embedded: no search by meaning ranks the item.
func WithoutIndex() PutOption { return func(p *putting) { p.fields, p.bare = nil, true } }

// WithID names the write: what is written first under an id stands, and whatever comes later with it changes nothing, also with another
// value. An id is remembered for [Options].Remember. It has at most 256 bytes. In a node it is not needed, and refused.
func WithID(id string) PutOption { return func(p *putting) { p.id = id } }

func puttingOf(opts []PutOption) (p putting, err error) {
	for _, o := range opts {
		o(&p)
	}
	switch {
	case p.ttl != nil && (*p.ttl < 0 || *p.ttl > MaxTTL):
		return p, refuse("the TTL %v is not between 0 and %v", *p.ttl, MaxTTL)
	case len(p.id) > maxIDBytes:
		return p, refuse("the write's id has %d bytes, the most is %d", len(p.id), maxIDBytes)
	}
	return p, checkPaths(p.fields)
}

// Query says what a search is to find. The zero value finds the ten items that were put last.
type Query struct {
	// Filter has for members of the value what they are to be: {"status": "open", "age": {"$gte": 18}}. All of them have to fit. It is
	// anything that encodes as a JSON object; nil fits every item. See [Store.Search].
	Filter any
	// Text ranks items by how near they are in meaning. It needs a store with an [Index]; "" for none.
	Text string
	// Limit is the most that is returned, 0 for 10; Offset is how many are left out before.
	Limit, Offset int
	// KeepTTL leaves the end of the found items' time as it is.
	KeepTTL bool
}

// NamespaceQuery says which namespaces are wanted. The zero value has the first hundred.
type NamespaceQuery struct {
	// Prefix and Suffix are labels with which namespaces are to begin and to end; "*" stands for any one label.
	Prefix, Suffix []string
	// MaxDepth cuts namespaces off behind that many labels, each one then comes once; 0 for no cut.
	MaxDepth int
	// Limit is the most that is returned, 0 for 100; Offset is how many are left out before.
	Limit, Offset int
}

// The default sizes of pages.
const (
	DefaultLimit           = 10
	DefaultNamespacesLimit = 100
)

// checkPage fills in a limit, and refuses a page that there is not.
func checkPage(limit *int, offset, usual int) error {
	if *limit == 0 {
		*limit = usual
	}
	if *limit < 0 || *limit > MaxLimit || offset < 0 || offset > MaxOffset {
		return refuse("a limit is from 0 to %d and an offset from 0 to %d, these are %d and %d", MaxLimit, MaxOffset, *limit, offset)
	}
	return nil
}

// check refuses what cannot be asked.
func (q *NamespaceQuery) check() error {
	if err := checkLabels("prefix", q.Prefix); err != nil {
		return err
	}
	if err := checkLabels("suffix", q.Suffix); err != nil {
		return err
	}
	if q.MaxDepth < 0 {
		return refuse("the depth %d is below 0", q.MaxDepth)
	}
	return checkPage(&q.Limit, q.Offset, DefaultNamespacesLimit)
}

// anyLabel stands for any one label in a prefix or suffix.
const anyLabel = "*"

// Literal is the part of the prefix before the first "*".
func (q NamespaceQuery) Literal() []string {
	if i := slices.Index(q.Prefix, anyLabel); i >= 0 {
		return q.Prefix[:i]
	}
	return q.Prefix
}

// Matches reports whether a namespace begins and ends as it should.
func (q NamespaceQuery) Matches(namespace []string) bool {
	fits := func(labels, pattern []string) bool {
		return slices.EqualFunc(labels, pattern, func(label, p string) bool { return p == anyLabel || label == p })
	}
	return len(namespace) >= max(len(q.Prefix), len(q.Suffix)) && fits(namespace[:len(q.Prefix)], q.Prefix) &&
		fits(namespace[len(namespace)-len(q.Suffix):], q.Suffix)
}

// Cut is a namespace without what is deeper than MaxDepth.
func (q NamespaceQuery) Cut(namespace []string) []string {
	if q.MaxDepth > 0 && len(namespace) > q.MaxDepth {
		return namespace[:q.MaxDepth]
	}
	return namespace
}

// ParseNamespace reads a namespace from labels with a period between two, as the agent server's protocol and the command line have it. The
// empty text is no label.
func ParseNamespace(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ".")
}

// asObject encodes what is to be a JSON object.
func asObject(what string, v any, most int) (json.RawMessage, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, &Error{Kind: ErrBadInput, Message: "the " + what + " does not encode as JSON", Cause: err}
	}
	if len(text) > most {
		return nil, refuse("the %s has %d bytes as JSON, the most is %d", what, len(text), most)
	}
	if text[0] != '{' {
		return nil, refuse("the %s is no JSON object: %s", what, fmt.Sprintf("%.60s", text))
	}
	return text, nil
}
