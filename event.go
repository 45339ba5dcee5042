package superstep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
)

// ErrEventTimeout is what [WaitEvent] returns when the event did not come in time, as an [*EventTimeoutError].
var ErrEventTimeout = graphadapter.ErrEventTimeout

// EventTimeoutError says that a node waited for an event in vain.
type EventTimeoutError struct {
	Graph, Node, Thread string
	Event               string
	Timeout             time.Duration
}

// Error implements error in one line.
func (e *EventTimeoutError) Error() string {
	return fmt.Sprintf("%sthread %q waited %v for the event %q, which did not come", place(e.Graph, e.Node), e.Thread, e.Timeout, e.Event)
}

// Is makes it an ErrEventTimeout.
func (e *EventTimeoutError) Is(target error) bool { return target == ErrEventTimeout }

// Permanent says that no retry helps: this wait is over.
func (e *EventTimeoutError) Permanent() bool { return true }

// ErrorType names the kind of failure in stored data.
func (e *EventTimeoutError) ErrorType() string { return "EventTimeout" }

// WaitEvent waits for the event of that name, which a program sends with [Thread.SendEvent], [Client.SendEvent] or
// superstep event, and returns its value as a T. While it has not come it returns [ErrInterrupted]: the node returns that
// error, the run waits without holding a process, with [StatusWaitingEvent], and when the event comes the node runs again
// from its start, with its Tasks and Effects remembered.
//
//	settled, err := superstep.WaitEvent[Settlement](ctx, "payment.settled", 48*time.Hour)
//	if errors.Is(err, superstep.ErrEventTimeout) {
//		return refund(ctx, s)
//	}
//	if err != nil {
//		return s, err
//	}
//
// An event answers every task of the thread that waits for it. One that nobody waits for yet is kept, and given to the
// first wait for its name. After the timeout, which counts from the moment when the node first waits and goes on across
// restarts, WaitEvent returns an [*EventTimeoutError]; 0 waits without an end. A name has at most 256 bytes.
//
// The JSON schema of T is recorded, and an event that does not have it is refused when it is sent, as for [Interrupt]. A
// wait is known by its order among the node's questions and waits, or by [WithKey].
func WaitEvent[T any](ctx context.Context, name string, timeout time.Duration, opts ...QuestionOption) (T, error) {
	var zero T
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return zero, fmt.Errorf("wait for event %q: %w", name, ErrOutsideNode)
	}
	q, err := questionOf(nil, reflect.TypeFor[T](), opts)
	if err == nil {
		key, schema := q.Key, q.Schema
		q, err = graphadapter.EventQuestion(name, timeout)
		q.Key, q.Schema = key, schema
	}
	if err != nil {
		return zero, graphadapter.Permanent(fmt.Errorf("%swait for event %q: %w", place(t.Info().Graph, t.Info().Node), name, err))
	}
	answer, err := t.AskFor(ctx, q)
	var late *graphadapter.EventTimeoutError
	if errors.As(err, &late) {
		return zero, &EventTimeoutError{Graph: late.Graph, Node: late.Node, Thread: late.Thread, Event: late.Event, Timeout: late.Timeout}
	}
	if err != nil {
		return zero, answerError(err)
	}
	var value T
	if err := decodeJSON(answer.Value, &value); err != nil {
		info := t.Info()
		return zero, &AnswerError{Graph: info.Graph, Node: info.Node, Thread: info.Thread,
			Question: answer.QuestionID, Want: typeName(reflect.TypeFor[T]()), Cause: err}
	}
	return value, nil
}
