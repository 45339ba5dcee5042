package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"superstep.dev/serve/access"
	"superstep.dev/store"
)

// memories are the items of the store.
type memories struct{ *Server }

func (s memories) routes() []route {
	return []route{
		{"PUT", "/store/items", "Writes an item", s.putItem},
		{"GET", "/store/items", "An item, null for none", s.getItem},
		{"DELETE", "/store/items", "Deletes an item", s.deleteItem},
		{"POST", "/store/items/search", "Items of a namespace and those below it", s.searchItems},
		{"POST", "/store/namespaces", "Namespaces that have items", s.namespaces},
	}
}

// itemShown is an item as clients see it.
type itemShown struct {
	Namespace []string        `json:"namespace"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	CreatedAt shownTime       `json:"created_at"`
	UpdatedAt shownTime       `json:"updated_at"`
}

// hitShown is an item that a search has found.
type hitShown struct {
	itemShown
	Score *float64 `json:"score"`
}

func shownItem(i store.Item) itemShown {
	return itemShown{i.Namespace, i.Key, i.Value, shownTime(i.Created), shownTime(i.Updated)}
}

// failed is an error of the store as a response. What is wrong with the database is for the log, and not for clients.
func (s memories) failed(err error) error {
	switch {
	case errors.Is(err, store.ErrNone):
		return refuse(http.StatusNotImplemented, "this server has no store: start it with --store")
	case errors.Is(err, store.ErrBadInput):
		return refuse(http.StatusUnprocessableEntity, "%v", err)
	case errors.Is(err, store.ErrUnavailable):
		s.log.Errorw("the store cannot be used", "error", err)
		return refuse(http.StatusServiceUnavailable, "the store cannot be used now: try again")
	}
	return err
}

// itemName names an item.
type itemName struct {
	Namespace []string `json:"namespace"`
	Key       string   `json:"key" says:"always"`
}

// itemBody is what is written as an item.
type itemBody struct {
	itemName
	Value json.RawMessage `json:"value" says:"always"`
	Index json.RawMessage `json:"index" says:"null"`
	TTL   *float64        `json:"ttl" says:"null"` // minutes
}

// mayEnter refuses a namespace whose items are not there for the caller.
func mayEnter(r *http.Request, namespace []string) error {
	_, err := mayFind(r.Context(), access.Resource{Kind: access.Store, ID: strings.Join(namespace, "."), Metadata: object{access.Namespace: raw(namespace)}})
	return err
}

// options are what a body says beside the value: the paths that are embedded, false for none, and for how many minutes the item stays.
func (b itemBody) options() (opts []store.PutOption, err error) {
	var paths []string
	switch text := string(b.Index); {
	case text == "" || text == "null":
	case text == "false":
		opts = append(opts, store.WithoutIndex())
	case json.Unmarshal(b.Index, &paths) == nil:
		opts = append(opts, store.WithIndex(paths...))
	default:
		return nil, refuse(http.StatusUnprocessableEntity, "index is neither false nor a list of paths")
	}
	if b.TTL != nil {
		ttl := *b.TTL * float64(time.Minute)
		if !(ttl >= 0 && ttl <= float64(store.MaxTTL)) {
			return nil, refuse(http.StatusUnprocessableEntity, "ttl %v is not within 0 and %v minutes", *b.TTL, store.MaxTTL.Minutes())
		}
		opts = append(opts, store.WithTTL(time.Duration(ttl)))
	}
	return opts, nil
}

// reservedRoot begins no namespace.
const reservedRoot = "langgraph"

func (s memories) putItem(w http.ResponseWriter, r *http.Request) error {
	var b itemBody
	err := read(w, r, &b)
	if err == nil {
		err = mayEnter(r, b.Namespace)
	}
	if err != nil {
		return err
	}
	switch {
	case len(b.Namespace) == 0:
		return refuse(http.StatusBadRequest, "namespace is empty")
	case b.Namespace[0] == reservedRoot:
		return refuse(http.StatusBadRequest, "namespace begins with %q, which is not for callers", reservedRoot)
	}
	if len(b.Value) == 0 || b.Value[0] != '{' {
		return refuse(http.StatusUnprocessableEntity, "value is no object")
	}
	opts, err := b.options()
	if err == nil {
		err = s.cfg.Store.Put(r.Context(), b.Namespace, b.Key, b.Value, opts...)
	}
	if err != nil {
		return s.failed(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s memories) getItem(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	namespace := store.ParseNamespace(query.Get("namespace"))
	switch {
	case len(namespace) == 0:
		return refuse(http.StatusUnprocessableEntity, "namespace is empty")
	case query.Get("key") == "":
		return refuse(http.StatusBadRequest, "key is missing")
	}
	if err := mayEnter(r, namespace); err != nil {
		return err
	}
	var opts []store.GetOption
	if text := query.Get("refresh_ttl"); text != "" {
		refresh, err := strconv.ParseBool(text)
		if err != nil {
			return refuse(http.StatusUnprocessableEntity, "refresh_ttl is neither true nor false")
		}
		if !refresh {
			opts = append(opts, store.KeepTTL())
		}
	}
	item, err := s.cfg.Store.Get(r.Context(), namespace, query.Get("key"), opts...)
	switch {
	case errors.Is(err, store.ErrNotFound):
		answer(w, http.StatusOK, nil)
	case err != nil:
		return s.failed(err)
	default:
		answer(w, http.StatusOK, shownItem(item))
	}
	return nil
}

func (s memories) deleteItem(w http.ResponseWriter, r *http.Request) error {
	var b itemName
	err := read(w, r, &b)
	if err == nil {
		err = mayEnter(r, b.Namespace)
	}
	if err != nil {
		return err
	}
	if len(b.Namespace) == 0 || b.Namespace[0] == reservedRoot { // nothing is there
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err := s.cfg.Store.Delete(r.Context(), b.Namespace, b.Key); err != nil {
		return s.failed(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// itemSearch is what is searched.
type itemSearch struct {
	page
	Prefix     []string        `json:"namespace_prefix" says:"null"`
	Filter     json.RawMessage `json:"filter" says:"null"`
	Query      string          `json:"query" says:"null"`
	RefreshTTL *bool           `json:"refresh_ttl" says:"null"`
}

func (s memories) searchItems(w http.ResponseWriter, r *http.Request) error {
	b := itemSearch{page: page{empty: true}}
	err := read(w, r, &b)
	if err == nil {
		err = b.check()
	}
	if err == nil {
		err = mayEnter(r, b.Prefix)
	}
	if err != nil {
		return err
	}
	q := store.Query{Limit: *b.Limit, Offset: b.Offset, KeepTTL: b.RefreshTTL != nil && !*b.RefreshTTL}
	if len(b.Filter) > 0 {
		q.Filter = b.Filter
	}
	if s.cfg.Store.Indexed() { // as LangGraph's: without an index a text ranks nothing
		q.Text = b.Query
	}
	shown := []hitShown{}
	if q.Limit > 0 {
		hits, err := s.cfg.Store.Search(r.Context(), b.Prefix, q)
		if err != nil {
			return s.failed(err)
		}
		for _, h := range hits {
			shown = append(shown, hitShown{shownItem(h.Item), h.Score})
		}
	}
	answer(w, http.StatusOK, map[string]any{"items": shown})
	return nil
}

// namespaceSearch is which namespaces are wanted.
type namespaceSearch struct {
	page
	Prefix   []string `json:"prefix"`
	Suffix   []string `json:"suffix"`
	MaxDepth int      `json:"max_depth"`
}

func (s memories) namespaces(w http.ResponseWriter, r *http.Request) error {
	b := namespaceSearch{page: page{empty: true}}
	err := read(w, r, &b)
	if b.Limit == nil {
		usual := store.DefaultNamespacesLimit
		b.Limit = &usual
	}
	if err == nil {
		err = b.check()
	}
	if err == nil {
		err = mayEnter(r, b.Prefix)
	}
	if err != nil {
		return err
	}
	all := [][]string{}
	if *b.Limit > 0 {
		found, err := s.cfg.Store.Namespaces(r.Context(), store.NamespaceQuery{Prefix: b.Prefix, Suffix: b.Suffix, MaxDepth: b.MaxDepth, Limit: *b.Limit, Offset: b.Offset})
		if err != nil {
			return s.failed(err)
		}
		all = append(all, found...)
	}
	answer(w, http.StatusOK, map[string]any{"namespaces": all})
	return nil
}
