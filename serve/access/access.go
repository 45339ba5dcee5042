// Package access says who asks a server of the agent server's protocol, and what they may do. [Keys] and [Tokens] find out who asks;
// an [Authorize] says what is theirs, and [Own] is the one that counts when no other is given.
package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Identity is who asks.
type Identity struct {
	// Name is who it is: at most 200 bytes, without control characters. It owns what is made in its name, and what it answers is kept
	// as answered by it.
	Name string
	// Permissions are what it may do beyond that. See [Admin].
	Permissions []string
	// Claims are what else is known of it, nil for nothing: those of a token.
	Claims map[string]any
	// Expires is when what proves it is good no more, zero for never. A stream that is open then ends.
	Expires time.Time
}

// Admin is the permission to see and change what is of others, and what is of nobody.
const Admin = "superstep:admin"

// Can reports whether somebody has a permission.
func (i Identity) Can(permission string) bool { return slices.Contains(i.Permissions, permission) }

// maxName bounds the name of an identity, in bytes.
const maxName = 200

// Check refuses a name that cannot be kept.
func (i Identity) Check() error {
	if strings.TrimSpace(i.Name) == "" || len(i.Name) > maxName || !utf8.ValidString(i.Name) || slices.ContainsFunc([]rune(i.Name), unicode.IsControl) {
		return fmt.Errorf("%w: the name is blank, longer than %d bytes, or has control characters", ErrUnauthenticated, maxName)
	}
	return nil
}

// Authenticate finds out who sends a request, from its headers alone.
//
// Errors: [ErrNoCredential] for a request without a credential of its kind, [ErrUnauthenticated] for one that proves nothing, and any
// other for a credential that cannot be looked at just now. Clients are told of the first two without the text of the error.
type Authenticate func(r *http.Request) (Identity, error)

// The errors that a server tells apart.
var (
	// ErrNoCredential says that a request has no credential of the kind that is looked for.
	ErrNoCredential = errors.New("the request has no credential")
	// ErrUnauthenticated says that a credential proves nothing: it is unknown, has expired, or is for another server.
	ErrUnauthenticated = errors.New("the credential proves nothing")
	// ErrForbidden says that somebody may not do that, and may know that it is there.
	ErrForbidden = errors.New("that is not allowed")
)

// First is who the first of several ways to find out says.
func First(ways ...Authenticate) Authenticate {
	return func(r *http.Request) (Identity, error) {
		for _, way := range ways {
			if who, err := way(r); !errors.Is(err, ErrNoCredential) {
				return who, err
			}
		}
		return Identity{}, ErrNoCredential
	}
}

// Kind is what something is.
type Kind string

// The kinds of what there is.
const (
	Threads    Kind = "threads"
	Assistants Kind = "assistants"
	Crons      Kind = "crons"
	Store      Kind = "store"
)

// Action is what is done to something.
type Action string

// The actions. A run is asked for, cancelled or forgotten on a thread that one may [Run]; a thread's runs and states are read by who may
// [Read] it, and its state is changed by who may [Update] it.
const (
	Create Action = "create"
	Read   Action = "read"
	Update Action = "update"
	Delete Action = "delete"
	Search Action = "search"
	Run    Action = "create_run"
)

// Metadata is a JSON object.
type Metadata = map[string]json.RawMessage

// Resource is what somebody wants to do something to.
type Resource struct {
	Kind Kind
	// ID is "" for what is searched for.
	ID string
	// Graph is that of an assistant, and of a thread that has run; "" where it is not known.
	Graph string
	// System says that it is a graph's own assistant, which is there as long as the graph is served.
	System bool
	// Metadata is what it has, and of what is made what the caller gave.
	Metadata Metadata
}

// Grant is what somebody is granted. The zero value is everything.
type Grant struct {
	// Filter is what the metadata of things has to have for the caller to find them: a value for each field, or {"$eq": value}, or
	// {"$contains": value} for a list that has the value. Things without it are not there for the caller.
	Filter map[string]any
	// Metadata is set on what is made or changed, whatever the caller gave. A thread that a run makes gets it too.
	Metadata map[string]any
}

// Authorize says what somebody may do. It is asked at least once for each request, for each kind of thing that the request is about,
// and is called by several goroutines.
//
// Errors: [ErrForbidden]; any other one is that of the server.
type Authorize func(ctx context.Context, who Identity, do Action, on Resource) (Grant, error)

// Owner is the field of metadata in which [Own] keeps whose something is.
const Owner = "owner"

// Namespace is the field of an item's metadata that has its namespace: items of the store have no other.
const Namespace = "namespace"

// Own lets everybody do everything to what they made themselves. Graphs' own assistants are there for all, and changed by those who have
// the permission [Admin]; these find what is of others too, and may make something for somebody by giving its metadata an owner. Items of
// the store are those of whose name their namespace begins with.
func Own(_ context.Context, who Identity, do Action, on Resource) (Grant, error) {
	if on.Kind == Store && !who.Can(Admin) {
		var namespace []string
		if json.Unmarshal(on.Metadata[Namespace], &namespace) != nil || len(namespace) == 0 || namespace[0] != who.Name {
			return Grant{}, fmt.Errorf("%w: your items are in namespaces that begin with your name", ErrForbidden)
		}
		return Grant{}, nil
	}
	mine := map[string]any{Owner: who.Name}
	switch {
	case who.Can(Admin) && do == Create && on.Metadata[Owner] == nil, who.Can(Admin) && do == Run && on.Metadata[Owner] == nil:
		return Grant{Metadata: mine}, nil
	case who.Can(Admin), on.System && do == Read:
		return Grant{}, nil
	case on.System:
		return Grant{}, fmt.Errorf("%w: the assistant is the graph's own, and changed by who has the permission %s", ErrForbidden, Admin)
	}
	return Grant{Filter: mine, Metadata: mine}, nil
}

// Finds reports whether things with that metadata are there for who has the grant.
func (g Grant) Finds(m Metadata) bool {
	for field, wanted := range g.Filter {
		if !fits(m[field], wanted) {
			return false
		}
	}
	return true
}

func fits(has json.RawMessage, wanted any) bool {
	var v any
	if has == nil || json.Unmarshal(has, &v) != nil {
		return false
	}
	test, ok := wanted.(map[string]any)
	if !ok {
		return reflect.DeepEqual(v, plain(wanted))
	}
	for operator, operand := range test {
		var good bool
		switch operator {
		case "$eq":
			good = reflect.DeepEqual(v, plain(operand))
		case "$contains":
			list, _ := v.([]any)
			good = slices.ContainsFunc(list, func(one any) bool { return reflect.DeepEqual(one, plain(operand)) })
		}
		if !good {
			return false
		}
	}
	return len(test) > 0
}

// plain is a value as JSON has it: a number is a float64.
func plain(v any) (out any) {
	text, err := json.Marshal(v)
	if err != nil || json.Unmarshal(text, &out) != nil {
		return errors.New("no JSON") // which no metadata is equal to
	}
	return out
}

// Set is metadata with what the grant sets.
func (g Grant) Set(m Metadata) (Metadata, error) {
	if len(g.Metadata) == 0 {
		return m, nil
	}
	out := maps.Clone(m)
	if out == nil {
		out = Metadata{}
	}
	for field, v := range g.Metadata {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("the metadata of a grant is no JSON: %w", err)
		}
		out[field] = text
	}
	return out, nil
}
