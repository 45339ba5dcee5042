package graphadapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// Bounds of events, the same on every runtime.
const (
	// MaxEventName and MaxEventBytes bound an event's name and its value.
	MaxEventName  = 256
	MaxEventBytes = 256 << 10
	// MaxKeptEvents and MaxKeptBytes bound the events that a thread keeps for waits to come: in number, and in the bytes of
	// their values together, which have to fit a run's last event beside its state.
	MaxKeptEvents = 100
	MaxKeptBytes  = 512 << 10
	// MaxUnreadEvents and MaxUnreadBytes bound the events that are stored for a run while no worker reads them. The run keeps all of
	// them, beyond the bounds above.
	MaxUnreadEvents = 1000
	MaxUnreadBytes  = 1 << 20
)

// ErrEventTimeout is within every [*EventTimeoutError].
var ErrEventTimeout = errors.New("superstep: the event did not come in time")

// EventTimeoutError says that a task waited for an event in vain. Waiting again is another wait: this one is over for
// every later attempt of the task too.
type EventTimeoutError struct {
	Graph, Node, Thread string
	Event               string
	Timeout             time.Duration
}

func (e *EventTimeoutError) Error() string {
	return fmt.Sprintf("node %q of graph %q, thread %q, waited %v for the event %q, which did not come",
		e.Node, e.Graph, e.Thread, e.Timeout, e.Event)
}

// Is makes it an ErrEventTimeout.
func (e *EventTimeoutError) Is(target error) bool { return target == ErrEventTimeout }

// Permanent says that no retry policy may repeat what failed.
func (e *EventTimeoutError) Permanent() bool { return true }

// ErrorType names the kind of failure in stored data.
func (e *EventTimeoutError) ErrorType() string { return "EventTimeout" }

// EventQuestion is a wait for an event; timeout 0 means without an end. A wait for less than a millisecond is one for a
// millisecond.
func EventQuestion(name string, timeout time.Duration) (pregel.Question, error) {
	if err := CheckEventName(name); err != nil {
		return pregel.Question{}, err
	}
	if timeout < 0 {
		return pregel.Question{}, fmt.Errorf("the timeout %v of the wait for event %q is negative: 0 waits without an end", timeout, name)
	}
	q := pregel.Question{Event: name, Timeout: timeout.Milliseconds()}
	if timeout > 0 {
		q.Timeout = max(1, q.Timeout)
	}
	var err error
	q.Value, err = json.Marshal(struct {
		Event   string `json:"event"`
		Timeout int64  `json:"timeout_ms,omitempty"`
	}{name, q.Timeout})
	return q, err
}

// AnyEventQuestion is a wait for the first of several events; timeout 0 means without an end.
func AnyEventQuestion(events []pregel.Awaited, timeout time.Duration) (pregel.Question, error) {
	var names []string
	for _, e := range events {
		if err := CheckEventName(e.Name); err != nil {
			return pregel.Question{}, err
		}
		if slices.Contains(names, e.Name) {
			return pregel.Question{}, fmt.Errorf("the event %q is waited for twice at once: name it once", e.Name)
		}
		names = append(names, e.Name)
	}
	if len(names) == 0 || len(names) > MaxAwaited {
		return pregel.Question{}, fmt.Errorf("a wait takes the first of 1 to %d events, not of %d", MaxAwaited, len(names))
	}
	q, err := EventQuestion(names[0], timeout)
	if err != nil {
		return q, err
	}
	q.Event, q.Events = strings.Join(names, " or "), events
	q.Value, err = json.Marshal(struct {
		Events  []string `json:"events"`
		Timeout int64    `json:"timeout_ms,omitempty"`
	}{names, q.Timeout})
	return q, err
}

// MaxAwaited is of how many events a wait takes the first.
const MaxAwaited = 16

// AnswerTimeoutError says that nobody answered a question before its deadline.
type AnswerTimeoutError struct {
	Graph, Node, Thread string
	// Question is the question's id.
	Question string
	Timeout  time.Duration
}

func (e *AnswerTimeoutError) Error() string {
	return fmt.Sprintf("node %q of graph %q, thread %q: nobody answered question %s within %v", e.Node, e.Graph, e.Thread, e.Question, e.Timeout)
}

// Permanent says that no retry helps: the time is over.
func (e *AnswerTimeoutError) Permanent() bool { return true }

// ErrorType names the kind of failure in stored data.
func (e *AnswerTimeoutError) ErrorType() string { return "AnswerTimeout" }

// CheckEventName says why an event cannot have that name; nil means it can.
func CheckEventName(name string) error {
	if name == "" || len(name) > MaxEventName {
		return fmt.Errorf("an event's name has 1 to %d bytes, this one has %d", MaxEventName, len(name))
	}
	return nil
}

// CheckEvent says why an event cannot be sent; nil means it can.
func CheckEvent(name string, value pregel.Value) error {
	switch {
	case len(value) > MaxEventBytes:
		return fmt.Errorf("the value of an event has at most %d bytes, this one has %d: keep large values outside and send a "+
			"reference", MaxEventBytes, len(value))
	case len(value) > 0 && !json.Valid(value):
		return fmt.Errorf("the value of the event is not JSON")
	}
	return CheckEventName(name)
}
