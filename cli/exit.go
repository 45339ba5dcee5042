package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"superstep.dev/cli/screen"
	"superstep.dev/store"
	"superstep.dev/thread"
)

// The exit codes.
const (
	// ExitOK: what was asked is done; run --follow: the run finished.
	ExitOK = 0
	// ExitFailed: the run failed, or something went wrong that has no code of its own.
	ExitFailed = 1
	// ExitUsage: the command line or the input is not acceptable, or a run is in no state for it; nothing was changed.
	ExitUsage = 2
	// ExitWaiting: the run rests: it waits for answers or events, stopped at a breakpoint, or is paused.
	ExitWaiting = 3
	// ExitNotFound: no such thread, question, graph or item.
	ExitNotFound = 4
	// ExitRefused: the answer was not taken: the question is not open, or is not for whoever answers; or rules do not allow it.
	ExitRefused = 5
	// ExitUnreachable: no server answers, or no worker with that graph, or all are busy, or a stored value or the store is not to be had.
	ExitUnreachable = 6
	// ExitCancelled: the run was cancelled.
	ExitCancelled = 7
	// ExitNotBegun: the worker could not begin to serve, for a reason on its own machine: the address of its metrics is taken,
	// its ready file cannot be written.
	ExitNotBegun = 8
	// ExitInterrupted: Ctrl-C. A followed run goes on.
	ExitInterrupted = 130
)

// exits maps what went wrong to exit codes. The first match counts.
var exits = []struct {
	kind error
	name string
	code int
}{
	{errInterrupted, "interrupted", ExitInterrupted},
	{errNotBegun, "not_begun", ExitNotBegun},
	{thread.ErrBadInput, "bad_input", ExitUsage},
	{thread.ErrRunning, "running", ExitUsage},
	{thread.ErrErasing, "erasing", ExitUsage},
	{thread.ErrNotFailed, "not_failed", ExitUsage},
	{thread.ErrAnswerRefused, "answer_refused", ExitRefused},
	{thread.ErrNotFound, "not_found", ExitNotFound},
	{thread.ErrNoServer, "no_server", ExitUnreachable},
	{thread.ErrNoWorker, "no_worker", ExitUnreachable},
	{thread.ErrBusy, "busy", ExitUnreachable},
	{thread.ErrStorage, "storage", ExitUnreachable},
	{store.ErrBadInput, "bad_input", ExitUsage},
	{store.ErrNotFound, "not_found", ExitNotFound},
	{store.ErrUnavailable, "store", ExitUnreachable},
}

// exitOf returns an error's kind, as programs see it, and its exit code.
func exitOf(err error) (kind string, code int) {
	for _, e := range exits {
		if errors.Is(err, e.kind) {
			return e.name, e.code
		}
	}
	return "failed", ExitFailed
}

// exitOfRun is the exit code of a followed run that stands at status.
func exitOfRun(status thread.Status) int {
	switch status {
	case thread.StatusFinished:
		return ExitOK
	case thread.StatusCancelled:
		return ExitCancelled
	}
	if status.Rests() {
		return ExitWaiting
	}
	return ExitFailed
}

// statusExit ends a command with an exit code and no message: its screen has said everything.
type statusExit int

// Error implements error.
func (s statusExit) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// exitWith returns the error that ends a command with code, nil for success.
func exitWith(code int) error {
	if code == ExitOK {
		return nil
	}
	return statusExit(code)
}

// isSilent reports whether err is an exit code without a message.
func isSilent(err error) bool {
	var silent statusExit
	return errors.As(err, &silent)
}

// errorView is an error in -o json mode.
type errorView struct {
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Do       string `json:"do,omitempty"`
	Command  string `json:"command,omitempty"`
	Graph    string `json:"graph,omitempty"`
	Thread   string `json:"thread,omitempty"`
	Node     string `json:"node,omitempty"`
	Question string `json:"question,omitempty"`
	Exit     int    `json:"exit"`
}

// viewOf turns an error into what a program reads.
func viewOf(err error) errorView {
	kind, code := exitOf(err)
	v := errorView{Kind: kind, Message: err.Error(), Exit: code}
	var usage *usageError
	if errors.As(err, &usage) {
		if v.Message = usage.message; usage.hint != "" {
			v.Do, v.Command = "See how it is used", usage.hint
		}
		return v
	}
	var known *thread.Error
	if !errors.As(err, &known) {
		return v
	}
	v.Graph, v.Thread, v.Node, v.Question = known.Graph, known.Thread, known.Node, known.Question
	if err == error(known) { // wrapped further, the whole text says more than the parts
		v.Message, v.Do = known.Message, known.Do
		if known.Cause != nil {
			v.Message += ": " + known.Cause.Error()
		}
	}
	return v
}

// canType reports whether the command of an error does in this program what the error says: only the program that has
// a graph can serve that graph.
func (a *app) canType(e *thread.Error) bool {
	if e.Command[0] != "worker" {
		return true
	}
	if e.Graph == "" {
		return len(a.graphs)+len(a.leaders) > 0
	}
	_, has := a.graph(e.Graph)
	return has
}

// report writes err to stderr, as one line, and returns the exit code.
func (a *app) report(err error) int {
	var silent statusExit
	if err == nil {
		return ExitOK
	}
	if errors.As(err, &silent) {
		return int(silent)
	}
	v := viewOf(err)
	text := err.Error()
	var known *thread.Error
	if errors.As(err, &known) && len(known.Command) > 0 {
		// The command as it can be typed here: this program's name, this connection.
		typed := "superstep " + strings.Join(known.Command, " ")
		if a.canType(known) {
			v.Command = a.commandLine(known.Command...)
			text = strings.Replace(text, typed, v.Command, 1)
		} else {
			text = strings.Replace(text, ": "+typed, "", 1)
		}
	}
	if !a.JSON() {
		fmt.Fprintln(a.stderr, a.secrets.Redact(screen.Clean(text)))
		return v.Exit
	}
	v.Message = a.secrets.Redact(v.Message)
	encoded, encodeErr := json.Marshal(map[string]errorView{"error": v})
	if encodeErr != nil {
		encoded = fmt.Appendf(nil, `{"error":{"kind":"failed","exit":%d}}`, v.Exit)
	}
	fmt.Fprintf(a.stderr, "%s\n", encoded)
	return v.Exit
}

// errInterrupted is the kind of an error that Ctrl-C or a termination signal caused.
var errInterrupted = errors.New("interrupted")

// errNotBegun is the kind of an error that keeps a worker from serving and lies on its own machine.
var errNotBegun = errors.New("the worker could not begin")

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
		return []error{thread.ErrBadInput}
	}
	return []error{thread.ErrBadInput, e.err}
}

// kindError is an error of one of the kinds above.
type kindError struct {
	kind    error
	message string
	cause   error
}

// Error implements error.
func (e *kindError) Error() string { return e.message }

// Unwrap gives the kind, and the cause if there is one.
func (e *kindError) Unwrap() []error { return []error{e.kind, e.cause} }

// notBegun says what keeps a worker from serving: the system's error about a flag.
func notBegun(flag string, err error) error {
	return &kindError{errNotBegun, fmt.Sprintf("%s: %v", flag, err), err}
}

// interrupt is the error of a command that stopped because the user asked it to.
func interrupt(message string) error { return &kindError{kind: errInterrupted, message: message} }

// interrupted returns err, or an interrupt in its place when ctx ended: what a call reports after its context was
// cancelled says nothing of its own. message says what the interruption means.
func interrupted(ctx context.Context, err error, message string) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, errInterrupted) || isSilent(err) {
		return err
	}
	return interrupt(message)
}
