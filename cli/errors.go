package cli

import (
	"context"
	"errors"
	"fmt"

	"superstep.dev"
)

// errInterrupted is the kind of an error that Ctrl-C or a termination signal caused.
var errInterrupted = errors.New("interrupted")

// errNotBegun is the kind of an error that keeps a worker from serving and lies on its own machine.
var errNotBegun = errors.New("the worker could not begin")

// notBegun says what keeps a worker from serving.
type notBegun struct {
	flag string
	err  error
}

// Error implements error.
func (e *notBegun) Error() string { return fmt.Sprintf("%s: %v", e.flag, e.err) }

// Unwrap gives the kind, and the system's error.
func (e *notBegun) Unwrap() []error { return []error{errNotBegun, e.err} }

// usageError is a command line that cannot be carried out as it stands. Nothing was sent anywhere.
type usageError struct {
	message string
	// hint is a command line that explains the right use.
	hint string
	err  error
}

// usagef returns a usage error without a hint, which [app.asUsageError] adds. An error given for %w is its cause.
func usagef(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &usageError{message: err.Error(), err: errors.Unwrap(err)}
}

// wrongUse makes err a usage error with the same text.
func wrongUse(err error) error { return usagef("%w", err) }

// Error implements error in one line.
func (e *usageError) Error() string {
	if e.hint == "" {
		return e.message
	}
	return e.message + " (see " + e.hint + ")"
}

// Unwrap makes every usage error a bad input.
func (e *usageError) Unwrap() []error {
	if e.err == nil {
		return []error{superstep.ErrBadInput}
	}
	return []error{superstep.ErrBadInput, e.err}
}

// interrupt is a command that stopped because the user asked it to.
type interrupt struct{ message string }

// Error implements error.
func (e *interrupt) Error() string { return e.message }

// Unwrap gives the kind.
func (e *interrupt) Unwrap() error { return errInterrupted }

// interrupted returns err, or an interrupt in its place when ctx ended: what a call reports after its context was
// cancelled says nothing of its own. message says what the interruption means.
func interrupted(ctx context.Context, err error, message string) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, errInterrupted) || isSilent(err) {
		return err
	}
	return &interrupt{message: message}
}
