package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/thread"
)

// WithAnswerSchema replaces the answer's JSON schema (draft 2020-12), which otherwise follows from its Go type: to
// allow only some values, to bound a number, or for a type that has no schema, such as a recursive one.
func WithAnswerSchema(schema string) CallOption {
	return callOption{"WithAnswerSchema", func(o *callOptions) { o.schema = pregel.Value(schema) }}
}

// WithDeadline bounds how long a question of [Interrupt] waits for its answer, from when it is first asked, across restarts. After that Interrupt
// returns an [*AnswerTimeoutError], or the answer of [WithDefaultAnswer]. The audit of the thread has it either way.
func WithDeadline(within time.Duration) CallOption {
	return callOption{"WithDeadline", func(o *callOptions) { o.within, o.bounded = within, true }}
}

// WithDefaultAnswer is the answer that a question of [Interrupt] has when nobody has answered it at its deadline ([WithDeadline]). It has to
// have the schema of the answer.
func WithDefaultAnswer(answer any) CallOption {
	return callOption{"WithDefaultAnswer", func(o *callOptions) { o.fallback, o.hasFallback = answer, true }}
}

// addDeadline adds to a question until when it waits, and what its answer is then.
func (o *callOptions) addDeadline(q *pregel.Question) error {
	switch {
	case o.hasFallback && !o.bounded:
		return fmt.Errorf("WithDefaultAnswer needs WithDeadline: %w", thread.ErrBadInput)
	case !o.bounded:
		return nil
	case o.within <= 0:
		return fmt.Errorf("the deadline of %v is not above zero: leave it out for a question without one: %w", o.within, thread.ErrBadInput)
	}
	if q.Timeout = wholeMilliseconds(o.within); !o.hasFallback {
		return nil
	}
	var err error
	if q.Default, err = jsonfit.Encode(o.fallback); err != nil {
		return fmt.Errorf("the default answer, a %T, does not encode as JSON: %w", o.fallback, err)
	}
	if err := graphadapter.CheckAnswer(*q, q.Default); err != nil {
		return fmt.Errorf("the default answer is none: %w", err)
	}
	return nil
}

// AnswerTimeoutError says that nobody answered a question before its deadline ([WithDeadline]). It is an [ErrAnswerTimeout].
type AnswerTimeoutError struct {
	Graph, Node, Thread string
	// Question is the question's id.
	Question string
	Timeout  time.Duration
}

// Error implements error in one line.
func (e *AnswerTimeoutError) Error() string {
	return fmt.Sprintf("%snobody answered question %s of thread %q within %v", place(e.Graph, e.Node), e.Question, e.Thread, e.Timeout)
}

// Is makes it an ErrAnswerTimeout.
func (e *AnswerTimeoutError) Is(target error) bool { return target == ErrAnswerTimeout }

// Permanent says that no retry helps: the time is over.
func (e *AnswerTimeoutError) Permanent() bool { return true }

// ErrorType names the kind of failure in stored data.
func (e *AnswerTimeoutError) ErrorType() string { return "AnswerTimeout" }

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
// Several questions in one node, one after the other or in parallel, are each answered by their own id. An answer is for what was asked: the
// node gets it when it asks a question of the same text and schema again, in whatever order, and equal questions of a node are
// told apart by their order, or by [WithKey]. A question that has changed is asked anew, so compute it from the state or in a [Task]: one
// with the time of day in it would be asked for ever.
func Interrupt[A any](ctx context.Context, question any, opts ...CallOption) (A, error) {
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

func questionOf(question any, answer reflect.Type, opts []CallOption) (pregel.Question, error) {
	o, err := callOptionsOf(opts, "WithAnswerSchema", "WithDeadline", "WithDefaultAnswer")
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
	q := pregel.Question{Key: o.Key, Value: value, Schema: schema}
	return q, o.addDeadline(&q)
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
	var late *graphadapter.AnswerTimeoutError
	if errors.As(err, &late) {
		return &AnswerTimeoutError{Graph: late.Graph, Node: late.Node, Thread: late.Thread, Question: late.Question, Timeout: late.Timeout}
	}
	var wrong *graphadapter.AnswerError
	if !errors.As(err, &wrong) {
		return err
	}
	return &AnswerError{Graph: wrong.Graph, Node: wrong.Node, Thread: wrong.Thread,
		Question: wrong.Question, Want: wrong.Want, Cause: wrong.Err}
}

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
// wait is known by its event, and among the node's waits for that event by its order, or by [WithKey].
func WaitEvent[T any](ctx context.Context, name string, timeout time.Duration, opts ...CallOption) (T, error) {
	var zero T
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return zero, fmt.Errorf("wait for event %q: %w", name, ErrOutsideNode)
	}
	q, err := questionOf(nil, reflect.TypeFor[T](), opts)
	if err == nil && q.Timeout > 0 {
		err = fmt.Errorf("a wait has a timeout and no deadline: leave out WithDeadline: %w", thread.ErrBadInput)
	}
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

// RejectedError says that an action was rejected, or approved by nobody in time, so nothing was done: [Effect.Call]
// returns it, and a node with [WithApproval] fails with it.
type RejectedError = taskrun.RejectedError

// DriftError says that what was approved is not what would be done now, so nothing was done; see [approval.Drift].
type DriftError = taskrun.DriftError

// NotAllowedError says that an approval was given, but that the gate does not allow it to be acted upon now, so nothing
// was done. Its Code says why; approval.CodeUnavailable, that the gate could not be asked, is the only one that a retry
// may mend.
type NotAllowedError = taskrun.NotAllowedError

// Approve asks people to approve an action, and returns what they decided. While they have not it returns
// [ErrInterrupted]: the node returns that error, the run waits, and the node runs again from its start when they have.
//
//	decision, err := superstep.Approve(ctx, approval.Action{
//		Tool: "refund", Summary: "Refund 250.00 to order o-7", Params: params, Permissions: []string{"refund.write"},
//	})
//	if err != nil || decision.Verdict != approval.VerdictApprove {
//		return s, err
//	}
//
// An approval is one of exactly this action, with these parameters. Others that an approver proposes are another
// question; when they are approved, Decision.Params has them, and the node has to go on with those. An action that
// has changed since is asked about anew, or a [*DriftError], as its Drift says: so compute it from the state or in a
// [Task]. Right before Approve returns an approval the worker's gate is asked whether it still counts; if not, that is a
// [*NotAllowedError]. A rejection, and a silence that denies, are decisions and no errors.
//
// Tool is the node's name unless the action says so, and Requester who started the run. For a write prefer
// [Effect].Approval: it is checked right before the call, and the ledger says by which decision it was made. An approval
// is known by its action, or by [WithKey]; an action of the same Tool where another one was asked about is that one, which has changed.
func Approve(ctx context.Context, action approval.Action, opts ...CallOption) (approval.Decision, error) {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return approval.Decision{}, fmt.Errorf("approve: %w", ErrOutsideNode)
	}
	o, err := callOptionsOf(opts, "WithAnswerSchema")
	if err == nil && o.schema != nil {
		err = errors.New("an approval's answer has a schema of its own: leave out WithAnswerSchema")
	}
	if err != nil {
		return approval.Decision{}, graphadapter.Permanent(fmt.Errorf("%sapprove: %w", place(t.Info().Graph, t.Info().Node), err))
	}
	decision, err := t.Approve(ctx, taskrun.ApprovalRequest{Action: action, Key: o.Key})
	if err != nil {
		return approval.Decision{}, answerError(err)
	}
	return decision, nil
}

// WithApproval asks people before the node's function runs: ask says what would be done for this input, and false that
// nobody need be asked. In is what the function takes: the state, or the input of a node made with [AddInputNode]. The
// function runs once it is approved; a rejection, or nobody's answer in time, fails the node with a [*RejectedError], for
// an error handler to take over. See [Approve], but nobody can propose other parameters: the function would not see them.
func WithApproval[In any](ask func(In) (approval.Action, bool)) NodeOption {
	return nodeOption(func(n *nodeOptions) {
		n.approval = &nodeApproval{input: reflect.TypeFor[In](), missing: ask == nil, before: approvedFirst(ask)}
	})
}

// nodeKey is the key of a node's own approval.
const nodeKey = "superstep.node"

func approvedFirst[In any](ask func(In) (approval.Action, bool)) func(*router, bool, graphadapter.NodeFunc) graphadapter.NodeFunc {
	return func(r *router, fromState bool, run graphadapter.NodeFunc) graphadapter.NodeFunc {
		return func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			read := in
			if !fromState && read.Arg == nil {
				read.Arg = in.State[pregel.FunctionInput].Value() // an entrypoint's
			}
			sc := taskScope(ctx, r.graph, r.node)
			input, err := readInput[In](sc, read, fromState)
			if err != nil {
				return pregel.Command{}, graphadapter.Permanent(err)
			}
			action, needed := ask(input)
			if err := sc.with(nil); err != nil {
				return pregel.Command{}, err
			}
			if needed {
				if err := approved(ctx, action); err != nil {
					return pregel.Command{}, err
				}
			}
			return run(ctx, in)
		}
	}
}

// approved returns nil once the action is approved.
func approved(ctx context.Context, action approval.Action) error {
	t, _ := taskrun.TaskFrom(ctx)
	d, err := t.Approve(ctx, taskrun.ApprovalRequest{Action: action, Key: nodeKey, NoEdit: true})
	if err != nil {
		return answerError(err)
	}
	if action.Tool == "" {
		action.Tool = t.Info().Node
	}
	return t.Rejected(action.Tool, d)
}

// approvalProblem says what is wrong with a node's approval.
func approvalProblem(n nodeDecl) string {
	a := n.options.approval
	switch {
	case a == nil:
		return ""
	case n.subgraph:
		return "WithApproval is for functions: give it to the nodes of the subgraph"
	case a.missing:
		return "WithApproval has no function"
	case a.input != n.input:
		return "WithApproval takes " + jsonfit.TypeName(a.input) + ", but the node's input is " + jsonfit.TypeName(n.input)
	}
	return ""
}
