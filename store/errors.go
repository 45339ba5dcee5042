package store

import (
	"errors"
	"fmt"
	"strings"
)

// Why a call failed. Callers tell them apart with errors.Is.
var (
	// ErrNotFound: there is no such item, or it has expired.
	ErrNotFound = errors.New("not found")
	// ErrBadInput: the call cannot be carried out as it is; tried again it fails again.
	ErrBadInput = errors.New("bad input")
	// ErrUnavailable: the database does not answer, is locked, full or gone. Tried again the call may succeed.
	ErrUnavailable = errors.New("unavailable")
	// ErrNone: this process was given no store.
	ErrNone = errors.New("no store")
	// ErrKept: a write cannot be undone, because what was there before is not kept.
	ErrKept = errors.New("not kept")
)

// Error says what went wrong with which item, and what to do.
type Error struct {
	// Kind is one of the sentinels above.
	Kind error
	// Message says what is wrong, without the item's value.
	Message string
	// Namespace and Key name the item, as far as the call is about one.
	Namespace []string
	Key       string
	// Cause is what the database or the embedder said; nil for nothing.
	Cause error
}

// Error implements error in one line.
func (e *Error) Error() string {
	text := "store: " + e.Message
	if len(e.Namespace) > 0 && e.Key != "" {
		text = fmt.Sprintf("store: item %.100q of %.200q: %s", e.Key, strings.Join(e.Namespace, "."), e.Message)
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap lets errors.Is see the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Permanent says that no retry helps.
func (e *Error) Permanent() bool { return e.Kind == ErrBadInput || e.Kind == ErrKept }

// refuse is an error about what a caller gave.
func refuse(format string, args ...any) *Error {
	return &Error{Kind: ErrBadInput, Message: fmt.Sprintf(format, args...)}
}

// Unavailable is what a [Backend] returns for a database at place that cannot be used now.
func Unavailable(place string, cause error) error {
	return &Error{Kind: ErrUnavailable, Message: place + " cannot be used now: check that it is there, has room and may be written", Cause: cause}
}
