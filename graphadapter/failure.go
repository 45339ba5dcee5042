package graphadapter

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
)

// maxMessage bounds a stored failure's message, in bytes.
const maxMessage = 4 << 10

// FailureOf returns a final failure as data that survives this process. Type is what the error's ErrorType method
// says, if it or an error that it wraps has one, else the name of the first Go type in its chain that is not a mere
// wrapper, else "NodeFailure". A context error that the node itself returned is "NodeCancelled" or "DeadlineExceeded".
// The message is bounded to 4 KiB of valid UTF-8.
func FailureOf(graph, node string, err error) *pregel.NodeError {
	return &pregel.NodeError{Type: errorType(err), Message: Bounded(fmt.Sprint(err)), Graph: graph, Node: node,
		Final: IsPermanent(err), Wait: WaitOf(err).Milliseconds()}
}

func errorType(err error) string {
	var named interface {
		error
		ErrorType() string
	}
	var stored *pregel.NodeError
	switch {
	case errors.As(err, &named):
		return named.ErrorType()
	case errors.As(err, &stored):
		return stored.Type
	case errors.Is(err, ErrOutsideNode):
		return "OutsideNode"
	case errors.Is(err, ErrNotRegistered):
		return "NotRegistered"
	}
	for ; err != nil; err = errors.Unwrap(err) {
		switch err {
		case context.Canceled:
			return "NodeCancelled" // by itself: a task stopped from outside is pregel.CancelledType
		case context.DeadlineExceeded:
			return "DeadlineExceeded"
		}
		t := reflect.TypeOf(err)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if !wrapper(t) {
			return t.Name()
		}
	}
	return "NodeFailure"
}

// wrapper reports whether an error of that type says nothing about the kind of failure.
func wrapper(t reflect.Type) bool {
	switch t.PkgPath() {
	case "", "errors", "fmt":
		return true
	}
	return t == reflect.TypeFor[permanentError]() || t == reflect.TypeFor[waitingError]() || t == reflect.TypeFor[EffectError]()
}

// Bounded cuts text at maxMessage bytes, between characters. fmt.Sprint, which made it, catches a panicking Error.
func Bounded(text string) string { return clip.Text(text, maxMessage) }
