package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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

// usagef returns a usage error without a hint; [app.command] adds the one of its command.
func usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

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
		v.Message, v.Do = usage.message, usage.hint
		return v
	}
	var known *superstep.Error
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
func (a *app) canType(e *superstep.Error) bool {
	if e.Command[0] != "worker" {
		return true
	}
	if e.Graph == "" {
		return len(a.graphs)+len(a.leaders) > 0
	}
	_, ok := a.graph(e.Graph)
	return ok
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
	var known *superstep.Error
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
	if !a.json() {
		fmt.Fprintln(a.stderr, a.redact(clean(text)))
		return v.Exit
	}
	v.Message = a.redact(v.Message)
	encoded, encodeErr := json.Marshal(map[string]errorView{"error": v})
	if encodeErr != nil {
		encoded = fmt.Appendf(nil, `{"error":{"kind":"failed","exit":%d}}`, v.Exit)
	}
	fmt.Fprintf(a.stderr, "%s\n", encoded)
	return v.Exit
}
