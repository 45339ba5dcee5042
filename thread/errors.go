package thread

import (
	"errors"
	"fmt"
	"strings"

	"superstep.dev/approval"
)

// The errors that callers tell apart with errors.Is. The command line's exit codes follow them.
var (
	// ErrNotFound: no such thread, or no such question on it.
	ErrNotFound = errors.New("not found")
	// ErrBadInput: the input, the answer or an option is not acceptable; nothing was changed.
	ErrBadInput = errors.New("bad input")
	// ErrAnswerRefused: the question is not open: already answered, expired, or not yours.
	ErrAnswerRefused = errors.New("answer refused")
	// ErrNoServer: no Temporal server answers at the address.
	ErrNoServer = errors.New("no server")
	// ErrNoWorker: no worker with that graph answers.
	ErrNoWorker = errors.New("no worker")
	// ErrRunning: the thread's run is open, and the call needs a closed one.
	ErrRunning = errors.New("the run is open")
	// ErrNotFailed: retry of a run that did not fail.
	ErrNotFailed = errors.New("the run did not fail")
)

// Error is a failed call on a thread: what failed, where, and what to do about it.
type Error struct {
	// Kind is one of the sentinels above.
	Kind error
	// Graph, Thread, Node and Question are those concerned, as far as known.
	Graph, Thread, Node, Question string
	// Message says what is wrong; Do says what to do next, in words.
	Message, Do string
	// Command is what to type for that: the arguments of the superstep command, nil if there is none.
	Command []string
	// Code is why an answer to an approval does not count, "" for everything else.
	Code approval.Code
	// Cause is the underlying error, nil if there is none.
	Cause error
}

// Error implements error in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if e.Do != "" {
		b.WriteString(". " + e.Do)
	}
	if len(e.Command) > 0 {
		b.WriteString(": superstep " + strings.Join(e.Command, " "))
	}
	return b.String()
}

// Unwrap lets errors.Is see the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
