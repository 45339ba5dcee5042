package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"superstep.dev/internal/jsontext"
)

// maxBody bounds a request's body, in bytes: four times what a thread's input may have. maxDepth bounds how deep objects and lists in it
// are within each other: what is stored has to be read within other objects, and decoders go no deeper than 10,000.
const (
	maxBody  = 8 << 20
	maxDepth = 1000
)

// read decodes the body of a request, whatever its content type says. Unknown fields are ignored; no body, or null, is refused.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	text, err := readText(w, r)
	if err != nil {
		return err
	}
	return decode(text, into)
}

// decode decodes a body, or one of several.
func decode(text json.RawMessage, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			at := "it"
			if kind.Field != "" {
				at = kind.Field
			}
			return refuse(http.StatusUnprocessableEntity, "the body does not fit: %s is no %s", at, wanted(kind.Type))
		}
		return refuse(http.StatusUnprocessableEntity, "the body is no JSON: %v", err)
	}
	return fits(text, reflect.TypeOf(into), "")
}

// wanted is what a type is in JSON.
func wanted(t reflect.Type) string {
	if forms, ok := reflect.Zero(t).Interface().(interface{ forms() string }); ok {
		return forms.forms()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	return "whole number"
}

// misfit is the error of a value that is in none of the forms of a type. Its place is the decoder's to say.
func misfit[T any](err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return &json.UnmarshalTypeError{Value: kind.Value, Type: reflect.TypeFor[T](), Offset: kind.Offset}
	}
	return err
}

// readText reads the body of a request. One that says that it is too large is refused before it comes.
func readText(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	tooLarge := refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxBody)
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		readOn(w, r)
		return nil, tooLarge
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(text) > maxBody {
		w.Header().Set("Connection", "close")
		readOn(w, r)
		return nil, tooLarge
	}
	_ = r.Body.Close() // what was read is here
	if err == nil && http.NewResponseController(w).SetReadDeadline(time.Time{}) != nil {
		err = nil // it has none
	}
	switch {
	case errors.Is(err, errFull):
		w.Header().Set("Connection", "close")
		return nil, errFull
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, refuse(http.StatusRequestTimeout, "the body did not come in time")
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body did not come whole")
	}
	switch text := bytes.TrimSpace(text); {
	case len(text) == 0 || string(text) == "null":
		return nil, refuse(http.StatusUnprocessableEntity, "the body is missing: send at least an empty object, {}")
	case depth(text) > maxDepth:
		return nil, refuse(http.StatusUnprocessableEntity, "objects and lists are more than %d deep within each other", maxDepth)
	}
	if err := jsontext.Portable(text); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "the body cannot be kept: %v", err)
	}
	return text, nil
}

// readOn reads on a little in a body that is refused, and drops it: a client that sends all of it before it reads would see a connection
// that breaks off instead of the answer.
func readOn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Expect") != "" { // it waits for a word before it sends
		return
	}
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(readOnTime)) != nil {
		return
	}
	into, n := make([]byte, 64<<10), 0
	for n < maxReadOn {
		some, err := r.Body.Read(into)
		if n += some; err != nil {
			break
		}
		if b, ok := r.Body.(*incoming); ok { // what is dropped takes no room
			b.all.Release(b.has)
			b.has = 0
		}
	}
	_ = r.Body.Close() // nothing of it is kept
}

// The bounds of what is read on.
const (
	maxReadOn  = 16 << 20
	readOnTime = 5 * time.Second
)

// errFull says that too much has come of bodies that are not whole yet.
var errFull = refuse(http.StatusServiceUnavailable, "too many large requests come at once: try again")

// incoming is a body that counts with the others until it is closed.
type incoming struct {
	io.ReadCloser
	all *semaphore.Weighted
	has int64
}

// Read implements io.Reader. It fails with errFull.
func (b *incoming) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if !b.all.TryAcquire(int64(n)) {
		return 0, errFull
	}
	b.has += int64(n)
	return n, err
}

// Close implements io.Closer.
func (b *incoming) Close() error {
	b.all.Release(b.has)
	b.has = 0
	return b.ReadCloser.Close()
}

// depth is how deep objects and lists are within each other in JSON.
func depth(text []byte) (deepest int) {
	at, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			at++
			deepest = max(deepest, at)
		case c == '}' || c == ']':
			at--
		}
	}
	return deepest
}

// threadIn is the id of the thread that a path names.
func threadIn(r *http.Request) (string, error) { return idIn(r, "thread_id") }

// idIn is an id in a path: a UUID, in the one form that it is kept under.
func idIn(r *http.Request, name string) (string, error) {
	id := r.PathValue(name)
	if strings.Contains(id, "/") {
		return "", refuse(http.StatusNotFound, "there is no such path")
	}
	return kept(name, id)
}

// kept is an id that a request gives, a UUID, in the one form that it is kept under.
func kept(name, id string) (string, error) {
	at, err := uuid.Parse(id)
	if err != nil {
		return "", refuse(http.StatusUnprocessableEntity, "%s %q is no UUID", name, id)
	}
	return at.String(), nil
}

// allKept makes each of several ids the one that it is kept under.
func allKept(name string, ids []string) (err error) {
	for i := range ids {
		if ids[i], err = kept(name+":", ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// list is a list in a body: one value stands for a list of one.
type list []string

func (list) forms() string { return "string and no list of strings" }

// UnmarshalJSON takes a string, a list of strings, or null.
func (l *list) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*l = nil
		if string(text) != "null" {
			*l = list{one}
		}
		return nil
	}
	var all []string
	err := json.Unmarshal(text, &all)
	*l = all
	return misfit[list](err)
}

// breakpoints are the names of nodes, or "*" for all of them.
type breakpoints []string

func (breakpoints) forms() string { return `"*" and no list of nodes` }

// UnmarshalJSON takes "*", a list of strings, or null.
func (b *breakpoints) UnmarshalJSON(text []byte) error {
	if string(text) == `"*"` {
		*b = breakpoints{"*"}
		return nil
	}
	return misfit[breakpoints](json.Unmarshal(text, (*[]string)(b)))
}

// listed is a list in a request's query: a parameter that is given several times, names with commas between them, or a list in JSON, as
// version 2.0.0 of the SDK for JavaScript writes one. An empty one says nothing: the SDK for Python sends it for what its caller left out.
func listed(r *http.Request, name string) (all list) {
	for _, value := range r.URL.Query()[name] {
		var some list
		if strings.HasPrefix(value, "[") && some.UnmarshalJSON([]byte(value)) == nil {
			all = append(all, some...)
			continue
		}
		all = append(all, strings.Split(value, ",")...)
	}
	return slices.DeleteFunc(all, func(one string) bool { return one == "" })
}

// affirmed reports whether a parameter of a request's query says yes: clients write true, True or 1.
func affirmed(r *http.Request, name string) bool {
	yes, err := strconv.ParseBool(r.URL.Query().Get(name))
	return err == nil && yes
}

// wantsNothing reports whether a request asks for no body of its answer (RFC 7240).
func wantsNothing(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Prefer"), func(v string) bool { return strings.Contains(strings.ToLower(v), "return=minimal") })
}

// contains reports whether v has all that wanted has: of objects the members, of anything else the value.
func contains(v, wanted json.RawMessage) bool {
	var a, b any
	if json.Unmarshal(v, &a) != nil || json.Unmarshal(wanted, &b) != nil {
		return false
	}
	return holds(a, b)
}

func holds(v, wanted any) bool {
	want, object := wanted.(map[string]any)
	if !object {
		return reflect.DeepEqual(v, wanted)
	}
	has, object := v.(map[string]any)
	if !object {
		return false
	}
	for name := range maps.Keys(want) {
		if at, ok := has[name]; !ok || !holds(at, want[name]) {
			return false
		}
	}
	return true
}

// shownTime is a time with microseconds and offset.
type shownTime time.Time

// MarshalJSON implements json.Marshaler.
func (t shownTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(t).UTC().Format("2006-01-02T15:04:05.000000-07:00"))
}

// page is what of a list a request asks for.
type page struct {
	Limit     *int     `json:"limit"`
	Offset    int      `json:"offset"`
	SortBy    string   `json:"sort_by" says:"word"`
	SortOrder string   `json:"sort_order" says:"word"`
	Select    []string `json:"select"`
	// empty says that a page of nothing may be asked for.
	empty bool
}

const mostListed = 1000

// check refuses a page that there is not.
func (p *page) check(sortable ...string) error {
	if p.Limit == nil {
		ten := 10
		p.Limit = &ten
	}
	least := 1
	if p.empty {
		least = 0
	}
	switch {
	case *p.Limit < least || *p.Limit > mostListed:
		return refuse(http.StatusUnprocessableEntity, "limit %d is not within %d and %d", *p.Limit, least, mostListed)
	case p.Offset < 0:
		return refuse(http.StatusUnprocessableEntity, "offset %d is below 0", p.Offset)
	case p.SortBy != "" && !slices.Contains(sortable, p.SortBy):
		return refuse(http.StatusUnprocessableEntity, "sort_by %q is none of %s", p.SortBy, strings.Join(sortable, ", "))
	case p.SortOrder != "" && p.SortOrder != "asc" && p.SortOrder != "desc":
		return refuse(http.StatusUnprocessableEntity, "sort_order %q is neither asc nor desc", p.SortOrder)
	}
	return nil
}

// of returns the page of a list, and says in headers how many there are and where the next page begins.
func pageOf[T any](w http.ResponseWriter, p page, all []T) []T {
	w.Header().Set("X-Pagination-Total", itoa(len(all)))
	from := min(p.Offset, len(all))
	to := min(from+*p.Limit, len(all))
	if to < len(all) {
		w.Header().Set("X-Pagination-Next", itoa(to))
	}
	return all[from:to]
}

// selects refuses fields that items of a type do not have; more are those that items of other servers have too.
func (p *page) selects(items reflect.Type, more ...string) error {
	for i := range items.NumField() {
		name, _, _ := strings.Cut(items.Field(i).Tag.Get("json"), ",")
		more = append(more, name)
	}
	for _, name := range p.Select {
		if !slices.Contains(more, name) {
			return refuse(http.StatusUnprocessableEntity, "select: there is no field %q, there are %s", name, strings.Join(more, ", "))
		}
	}
	return nil
}

// selected leaves of items the fields that were asked for.
func selected(items any, fields []string) any {
	if len(fields) == 0 {
		return items
	}
	var all []object
	if json.Unmarshal(raw(items), &all) != nil {
		return items
	}
	for _, item := range all {
		maps.DeleteFunc(item, func(name string, _ json.RawMessage) bool { return !slices.Contains(fields, name) })
	}
	return all
}
