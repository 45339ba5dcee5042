package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/thread"
)

// Awaited is one of the events that a [WaitAny] waits for. Make one with [EventOf].
type Awaited struct {
	event pregel.Awaited
	err   error
}

// EventOf is the event of that name for [WaitAny]. The JSON schema of T is recorded: an event that does not have it is refused when it is
// sent.
func EventOf[T any](name string) Awaited {
	schema, err := jsonfit.Schema(reflect.TypeFor[T]())
	return Awaited{pregel.Awaited{Name: name, Schema: schema}, err}
}

// ArrivedEvent is the event that ended a [WaitAny].
type ArrivedEvent struct {
	Name  string
	Value json.RawMessage
}

// Decode reads the event's value into a pointer. Integers arrive exactly.
func (e ArrivedEvent) Decode(into any) error {
	if err := jsonfit.Decode(pregel.Value(e.Value), into); err != nil {
		return Permanent(fmt.Errorf("the value of the event %q does not fit a %T: %w", e.Name, into, err))
	}
	return nil
}

// WaitAny waits for the first of several events, at most that long, and returns which one it was. It waits as [WaitEvent] does.
//
//	first, err := superstep.WaitAny(ctx, []superstep.Awaited{
//		superstep.EventOf[Settlement]("payment.settled"), superstep.EventOf[string]("payment.failed"),
//	}, 48*time.Hour)
//	switch {
//	case errors.Is(err, superstep.ErrEventTimeout): // none came in time
//	case err != nil:
//		return s, err
//	case first.Name == "payment.failed":
//	}
//
// Of events that came before the wait the oldest counts. The others stay for later waits, as do those that come afterwards. After the timeout the error is an
// [*EventTimeoutError]; 0 waits without an end. A wait takes at most 16 events. It is known by its events, and among the node's waits
// for the same by its order, or by [WithKey].
func WaitAny(ctx context.Context, events []Awaited, timeout time.Duration, opts ...CallOption) (ArrivedEvent, error) {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return ArrivedEvent{}, fmt.Errorf("wait for the first of several events: %w", ErrOutsideNode)
	}
	q, err := anyEvent(events, timeout, opts)
	if err != nil {
		return ArrivedEvent{}, graphadapter.Permanent(fmt.Errorf("%swait for the first of several events: %w", place(t.Info().Graph, t.Info().Node), err))
	}
	answer, err := t.AskFor(ctx, q)
	var late *graphadapter.EventTimeoutError
	if errors.As(err, &late) {
		return ArrivedEvent{}, &EventTimeoutError{Graph: late.Graph, Node: late.Node, Thread: late.Thread, Event: late.Event, Timeout: late.Timeout}
	}
	if err != nil {
		return ArrivedEvent{}, answerError(err)
	}
	return ArrivedEvent{Name: answer.Event, Value: json.RawMessage(answer.Value)}, nil
}

func anyEvent(events []Awaited, timeout time.Duration, opts []CallOption) (pregel.Question, error) {
	o, err := callOptionsOf(opts)
	if err != nil {
		return pregel.Question{}, err
	}
	all := make([]pregel.Awaited, len(events))
	for i, e := range events {
		if e.err != nil {
			return pregel.Question{}, fmt.Errorf("the event %q: %w", e.event.Name, e.err)
		}
		all[i] = e.event
	}
	q, err := graphadapter.AnyEventQuestion(all, timeout)
	if err != nil {
		return q, fmt.Errorf("%w: %w", err, thread.ErrBadInput)
	}
	q.Key = o.Key
	return q, nil
}
