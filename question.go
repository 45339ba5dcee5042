package superstep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
)

// ErrInterrupted is what [Interrupt] returns while there is no answer. A node returns it; the task then waits, even if
// the node swallows it.
var ErrInterrupted = graphadapter.ErrInterrupted

// ErrUndone is what [Effect.Call] fails with when the target had a part of the write and a person had that undone. No retry
// policy repeats it; a retry of the thread makes another write, under a key of its own.
var ErrUndone = taskrun.ErrUndone

// QuestionOption shapes one [Interrupt]. [WithKey] is one.
type QuestionOption interface{ applyQuestion(*questionOptions) }

type questionOptions struct {
	key    keyOption
	schema pregel.Value
}

type questionOption func(*questionOptions)

func (o questionOption) applyQuestion(q *questionOptions) { o(q) }

// WithAnswerSchema replaces the answer's JSON schema (draft 2020-12), which otherwise follows from its Go type: to
// allow only some values, to bound a number, or for a type that has no schema, such as a recursive one.
func WithAnswerSchema(schema string) QuestionOption {
	return questionOption(func(q *questionOptions) { q.schema = pregel.Value(schema) })
}

// Interrupt asks a question, any value that encodes as JSON, and returns its answer as an A. While there is no answer
// it returns [ErrInterrupted]: the node returns that error, the run waits without holding a process, and when the
// answer comes the node runs again from its start, with its Tasks and Effects remembered.
//
//	approved, err := superstep.Interrupt[bool](ctx, "Refund 250.00 to order o-7?")
//	if err != nil {
//		return s, err
//	}
//
// The JSON schema of A is recorded with the question, and an answer that does not have it is refused when it is given:
// struct fields are required unless their tag says omitempty or omitzero, and others are not allowed. Integers arrive
// exactly; inside an any they are a json.Number. An answer that got in otherwise and does not fit fails the node with
// an [AnswerError].
//
// A question and the schema of its answer have at most 1,536 KiB as JSON: one that nobody could be shown fails the node with
// a [QuestionTooLargeError] when it is asked.
//
// Several questions in one node, one after the other or in parallel [Go]s, are each answered by their own id. A
// question is known by its order in the node, or by [WithKey].
func Interrupt[A any](ctx context.Context, question any, opts ...QuestionOption) (A, error) {
	var zero A
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return zero, fmt.Errorf("interrupt: %w", ErrOutsideNode)
	}
	q, err := questionOf(question, reflect.TypeFor[A](), opts)
	if err != nil {
		return zero, graphadapter.Permanent(fmt.Errorf("%sinterrupt: %w", place(t.Info().Graph, t.Info().Node), err))
	}
	answer, err := t.AskFor(ctx, q)
	if err != nil {
		return zero, answerError(err)
	}
	var a A
	if err := jsonfit.Decode(answer.Value, &a); err != nil {
		info := t.Info()
		return zero, &AnswerError{Graph: info.Graph, Node: info.Node, Thread: info.Thread,
			Question: answer.QuestionID, Want: jsonfit.TypeName(reflect.TypeFor[A]()), Cause: err}
	}
	return a, nil
}

func questionOf(question any, answer reflect.Type, opts []QuestionOption) (pregel.Question, error) {
	var o questionOptions
	for _, opt := range opts {
		opt.applyQuestion(&o)
	}
	key, err := o.key.value()
	if err != nil {
		return pregel.Question{}, err
	}
	value, err := jsonfit.Encode(question)
	if err != nil {
		return pregel.Question{}, fmt.Errorf("the question, a %T, does not encode as JSON: %w", question, err)
	}
	schema := o.schema
	if schema == nil {
		schema, err = jsonfit.Schema(answer)
	} else {
		err = jsonfit.CheckSchema(schema)
	}
	if err != nil {
		return pregel.Question{}, err
	}
	return pregel.Question{Key: key, Value: value, Schema: schema}, nil
}

// QuestionTooLargeError says that a node asks more than anybody could be shown: ask with a reference to the large value.
type QuestionTooLargeError = taskrun.QuestionTooLargeError

// AnswerError says that an answer does not fit its question. The node fails; asking anew is not possible, so running
// it again does not help.
type AnswerError struct {
	Graph, Node, Thread string
	// Question is the question's id.
	Question string
	// Want is the Go type or the JSON schema that the answer should have.
	Want  string
	Cause error
}

// Error implements error in one line.
func (e *AnswerError) Error() string {
	return fmt.Sprintf("%sthe answer to question %s of thread %q does not fit: %v (wanted: %s)",
		place(e.Graph, e.Node), e.Question, e.Thread, e.Cause, e.Want)
}

// Unwrap returns what does not fit.
func (e *AnswerError) Unwrap() error { return e.Cause }

// Permanent says that no retry helps.
func (e *AnswerError) Permanent() bool { return true }

func answerError(err error) error {
	var wrong *graphadapter.AnswerError
	if !errors.As(err, &wrong) {
		return err
	}
	return &AnswerError{Graph: wrong.Graph, Node: wrong.Node, Thread: wrong.Thread,
		Question: wrong.Question, Want: wrong.Want, Cause: wrong.Err}
}

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
// error, the run waits without holding a process, with [thread.StatusWaitingEvent], and when the event comes the node runs again
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
	if err := jsonfit.Decode(answer.Value, &value); err != nil {
		info := t.Info()
		return zero, &AnswerError{Graph: info.Graph, Node: info.Node, Thread: info.Thread,
			Question: answer.QuestionID, Want: jsonfit.TypeName(reflect.TypeFor[T]()), Cause: err}
	}
	return value, nil
}
