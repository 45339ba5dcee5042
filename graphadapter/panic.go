package graphadapter

import (
	"fmt"
	"runtime/debug"
)

// PanicError says that a node or one of its functions panicked. It is a failure of the node like any other, except
// that the default retry policy does not repeat it: a panic is a mistake in the program.
type PanicError struct {
	// Message is the panic's value as text.
	Message string
	// Stack is the goroutine's stack, for logs; it is not part of the error's message.
	Stack []byte
	// Cause is the panic's value when it was an error.
	Cause error
}

func (e *PanicError) Error() string { return "panic: " + e.Message }

// Unwrap returns the error that was panicked with, nil if it was something else.
func (e *PanicError) Unwrap() error { return e.Cause }

// ErrorType names the kind of failure in stored data.
func (e *PanicError) ErrorType() string { return "Panic" }

// catch turns a panic of the function that defers it into a *PanicError.
func catch(err *error) {
	if r := recover(); r != nil {
		*err = newPanicError(r)
	}
}

func newPanicError(value any) *PanicError {
	cause, _ := value.(error)
	return &PanicError{Message: fmt.Sprint(value), Stack: debug.Stack(), Cause: cause}
}
