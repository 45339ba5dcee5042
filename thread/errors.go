package thread

import (
	"crypto/rand"
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
	// ErrNoWorker: no worker with that graph answers: none has asked for work of late.
	ErrNoWorker = errors.New("no worker")
	// ErrBusy: workers asked for tasks within the last minute, and none of them answered by the end of the caller's context, which
	// is the cause: a call that needs a worker is repeated until then. More time helps, and more workers.
	ErrBusy = errors.New("the workers are busy")
	// ErrStorage: a value of the thread lies in a storage that does not have it, does not answer, or was not given to this
	// process; the cause is a *storage.Error. The thread goes on when the value is there again.
	ErrStorage = errors.New("a stored value is not to be had")
	// ErrRunning: the thread's run does not take that as it stands. Mostly it is under way, and the call needs one that is over or
	// waits; or it is paused, being changed or being cancelled, or was continued by somebody else meanwhile; or it keeps as many
	// events as it may that nobody waits for.
	ErrRunning = errors.New("the run is open")
	// ErrErasing: the thread is being erased, and its id is free in a moment.
	ErrErasing = errors.New("the thread is being erased")
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

// MaxID is how many bytes the id of a thread has at most; see [CheckID].
const MaxID = 200

// NewID makes an id for a new thread of a graph, or a job of a leader: the name and 130 random bits in lower-case
// letters and digits, so that nobody guesses it or comes by it again. A name that ids cannot begin with is left out.
func NewID(graph string) string {
	random := strings.ToLower(rand.Text())
	if id := graph + "-" + random; graph != "" && IDProblem(id) == "" {
		return id
	}
	return "thread-" + random
}

// CheckID returns an ErrBadInput when no thread can have that id. An id has 1 to 200 of the printable characters of
// ASCII, is not "." or "..", and neither begins nor ends with a blank: it travels in headers and URLs, is shown on screens
// and typed into shells.
func CheckID(id string) error {
	if problem := IDProblem(id); problem != "" {
		return &Error{Kind: ErrBadInput, Thread: id, Message: problem}
	}
	return nil
}

// IDProblem says why no thread can have that id, "" when one can.
func IDProblem(id string) string {
	const allowed = "letters, digits and the punctuation of ASCII are allowed"
	switch {
	case id == "":
		return "the thread id is empty"
	case len(id) > MaxID:
		return fmt.Sprintf("the thread id has %d bytes, the most is %d", len(id), MaxID)
	case strings.TrimSpace(id) == "":
		return "the thread id has nothing but blanks: " + allowed
	case id == "." || id == "..":
		return fmt.Sprintf("the thread id %q means a directory in URLs and paths: give it a name", id)
	case id[0] == ' ' || id[len(id)-1] == ' ':
		return fmt.Sprintf("the thread id %q begins or ends with a blank, which nobody sees", id)
	}
	for _, r := range id {
		if r < ' ' || r > '~' {
			return fmt.Sprintf("the thread id %q has the character %q: %s", id, r, allowed)
		}
	}
	return ""
}
