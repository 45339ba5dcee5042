package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/message"
	"superstep.dev/thread"
)

// CallOption shapes one call of a [Task], an [Effect] or a question. Each option says which of them take it; the others refuse it
// with [thread.ErrBadInput].
type CallOption interface{ applyCall(*callOptions) }

type callOptions struct {
	graphadapter.CallOptions
	keyed   bool
	schema  pregel.Value // of a question's answer
	within  time.Duration
	bounded bool // within is given
	// fallback is the answer at the deadline, where hasFallback says that there is one.
	fallback    any
	hasFallback bool
	special     []string // options that not every call takes, by name
}

// callOption is one option; those that every call takes have no name.
type callOption struct {
	name  string
	apply func(*callOptions)
}

func (o callOption) applyCall(c *callOptions) {
	o.apply(c)
	if o.name != "" {
		c.special = append(c.special, o.name)
	}
}

// callOptionsOf are the options of a call that takes these besides a key.
func callOptionsOf(opts []CallOption, takes ...string) (o callOptions, err error) {
	for _, opt := range opts {
		opt.applyCall(&o)
	}
	for _, name := range o.special {
		if !slices.Contains(takes, name) {
			return o, fmt.Errorf("%s is no option of this call: leave it out: %w", name, thread.ErrBadInput)
		}
	}
	if o.keyed && o.Key == "" {
		return o, fmt.Errorf("WithKey needs a key that is not empty, and so does WithThreadKey: %w", thread.ErrBadInput)
	}
	return o, nil
}

// Task makes a call whose result is remembered: when the node runs again, after a crash, a retry or an answer, Task
// returns the recorded result without calling. R has to encode as JSON, and is decoded from it the first time too, so
// that a node sees the same value each time. An error is not remembered.
//
// Use it for what is slow, costly or different each time: a model call, the clock, a random number. For a write to the
// outside use an [Effect], because a call whose result was not recorded is made again. A task is known by its name and
// its order among the tasks of that name, or by [WithKey]. Tasks, effects and questions inside call are numbered by
// themselves.
//
// The order says which call is which only on the goroutine that runs the node. A Task without a key that a goroutine of the node's own
// calls is not remembered, which the log says: it is called again whenever the node runs again. Give it a key, or start it with [Go].
//
// On Temporal the result is stored before Task returns (durability sync).
func Task[R any](ctx context.Context, name string, call func(context.Context) (R, error), opts ...CallOption) (R, error) {
	t, o, err := taskOf(ctx, name, opts)
	if err != nil {
		var zero R
		return zero, err
	}
	memo := t.Memo
	if o.ThreadWide {
		memo = t.ThreadMemo
	}
	raw, err := memo(ctx, name, o.Key, memoised(t, name, call))
	return result[R](t, name, raw, err)
}

// Go is [Task] in a goroutine of its own. Tasks are numbered in the order of the calls of Go, not of their ends. The
// node does not end before the task did; the error of a task that nobody waits for is dropped, as in LangGraph.
func Go[R any](ctx context.Context, name string, call func(context.Context) (R, error), opts ...CallOption) *Future[R] {
	t, o, err := taskOf(ctx, name, opts)
	if err != nil {
		return &Future[R]{err: err}
	}
	memo := t.MemoGo
	if o.ThreadWide {
		memo = t.ThreadMemoGo
	}
	return &Future[R]{task: t, name: name, pending: memo(ctx, name, o.Key, memoised(t, name, call))}
}

// Future is the result of a [Go], now or later. It is safe for concurrent use.
type Future[R any] struct {
	task    *taskrun.TaskRun
	name    string
	pending *taskrun.Pending
	err     error
}

// Get waits for the result. It returns ctx's cause when ctx ends first, and may be called again.
func (f *Future[R]) Get(ctx context.Context) (R, error) {
	if f.err != nil {
		var zero R
		return zero, f.err
	}
	raw, err := f.pending.Get(ctx)
	return result[R](f.task, f.name, raw, err)
}

// Usage is what a node spends: Tokens, MicroUSD (money, in millionths of a dollar) and Writes; see [Spend].
type Usage = taskrun.Spending

// Spend notes what a node spends: tokens of a model call, money, and writes that are no [Effect], which counts by itself. It is
// counted against the budget of the run's thread ([WithBudget]), and in an expert of a job against the attempt's allowance.
// A budget that is spent stops the run behind the superstep; Spend says nothing of it.
//
// Call it within the [Task] that spends: there each note counts, also of a call that failed, or was lost with its worker, and
// is made again. Outside of a Task a note is remembered as a Task is, so that a node that runs again notes it once. A note is
// stored before Spend returns, as far as the run's durability stores what a Task returned.
//
// Errors: [ErrOutsideNode]; [thread.ErrBadInput] for an amount below 0 or above 1e15; those of [Task].
func Spend(ctx context.Context, u Usage) error {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return fmt.Errorf("spend: %w", ErrOutsideNode)
	}
	if min(u.Tokens, u.MicroUSD, u.Writes) < 0 || max(u.Tokens, u.MicroUSD, u.Writes) > pregel.MaxAmount {
		return fmt.Errorf("spend %d tokens, %d millionths of a dollar, %d writes: an amount is from 0 to 1e15: %w", u.Tokens, u.MicroUSD, u.Writes,
			thread.ErrBadInput)
	}
	return t.Spend(ctx, u)
}

func taskOf(ctx context.Context, name string, opts []CallOption) (*taskrun.TaskRun, callOptions, error) {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return nil, callOptions{}, fmt.Errorf("task %q: %w", name, ErrOutsideNode)
	}
	o, err := callOptionsOf(opts, "WithThreadKey")
	if err != nil {
		return nil, o, fmt.Errorf("task %q: %w", name, err)
	}
	return t, o, nil
}

func memoised[R any](t *taskrun.TaskRun, name string, call func(context.Context) (R, error)) taskrun.MemoFunc {
	return func(ctx context.Context) (pregel.Value, error) {
		r, err := call(ctx)
		if err != nil {
			return nil, err
		}
		raw, err := jsonfit.Encode(r)
		if err != nil {
			return nil, recordError(t, "task", name, reflect.TypeFor[R](), true, err)
		}
		return raw, nil
	}
}

func result[R any](t *taskrun.TaskRun, name string, raw pregel.Value, err error) (R, error) {
	var r, zero R
	if err != nil {
		return zero, err
	}
	if err := jsonfit.Decode(raw, &r); err != nil {
		return zero, recordError(t, "task", name, reflect.TypeFor[R](), false, err)
	}
	return r, nil
}

// RecordError says that a Go type and the record of a [Task] or [Effect] do not fit: a value that does not encode as
// JSON, or a recorded one that does not decode. It fails the node; running it again does not help.
type RecordError struct {
	Graph, Node, Thread string
	// Call is "task" or "effect", Name its name, Type the Go type.
	Call, Name, Type string
	// Write says that the value was to be recorded.
	Write bool
	Cause error
}

// Error implements error in one line.
func (e *RecordError) Error() string {
	where := fmt.Sprintf("%s %q of node %q, graph %q, thread %q", e.Call, e.Name, e.Node, e.Graph, e.Thread)
	if e.Write {
		return fmt.Sprintf("%s: its %s does not encode as JSON: %v", where, e.Type, e.Cause)
	}
	return fmt.Sprintf("%s: what was recorded does not decode as %s: %v. If the type changed, give the %s a new name",
		where, e.Type, e.Cause, e.Call)
}

// Unwrap returns the error of the encoder or decoder.
func (e *RecordError) Unwrap() error { return e.Cause }

// Permanent says that no retry helps.
func (e *RecordError) Permanent() bool { return true }

func recordError(t *taskrun.TaskRun, call, name string, typ reflect.Type, write bool, err error) error {
	info := t.Info()
	return &RecordError{Graph: info.Graph, Node: info.Node, Thread: info.Thread, Call: call, Name: name,
		Type: jsonfit.TypeName(typ), Write: write, Cause: err}
}

// ConflictError says that a key was used again with other parameters; nothing was called.
type ConflictError = ledger.ConflictError

// WithKey names a call or a question within its node, where otherwise its position among those of the same name does.
// Use it when the order of calls depends on something that may change: a loop over a map, goroutines of your own. Two
// calls with the same key are the same call, and two equal questions with the same key are the same question; a question with another text or
// schema is another one, whatever its key. The key is empty by mistake only, so that is an error.
func WithKey(key string) CallOption {
	return callOption{"", func(o *callOptions) { o.Key, o.keyed, o.ThreadWide = key, true, false }}
}

// WithThreadKey names a call within its whole thread: the business key of a write that must not happen twice, whichever
// node makes it, and however often an agent comes back to it.
//
//	refund.Call(ctx, params, superstep.WithThreadKey("order/"+order))
//
// The first call with the key is made; every other one, in a loop, in a parallel task, after a retry, from an earlier
// checkpoint or in a later run of the thread, returns its receipt, or fails with a [ConflictError] when its parameters are
// other ones. Different effects with one key are different calls, and so are those of a forked thread.
//
// A task that uses a key for the first time is given back and begins again as its owner, so its node runs from its start
// up to there. A task that wants the key meanwhile waits until the owner's task has ended. A thread keeps up to 10,000
// keys, each with a receipt of up to about 3 KiB, and of all keys and receipts together 1 MiB: a task that claims a key beyond
// that fails for good, and the thread's work goes on in a new one. A larger receipt is looked up when it is needed.
func WithThreadKey(key string) CallOption {
	return callOption{"WithThreadKey", func(o *callOptions) { o.Key, o.keyed, o.ThreadWide = key, true, true }}
}

// Permanent marks an error as final: no retry policy repeats the attempt. It returns nil for nil. An error type says
// so of itself with a method Permanent() bool.
func Permanent(err error) error { return graphadapter.Permanent(err) }

// RetryAfter has err ask for a wait before the next attempt, as a provider's Retry-After header does: a [RetryPolicy] that repeats the
// attempt waits as long, at most its MaxRetryAfter, in place of its own wait. The wait is the server's and outlasts workers. It
// returns nil for nil. An error type asks for itself with a method RetryAfter() time.Duration.
//
//	if reply.StatusCode == http.StatusTooManyRequests {
//		return s, superstep.RetryAfter(errors.New("the model has too many callers"), 30*time.Second)
//	}
func RetryAfter(err error, wait time.Duration) error { return graphadapter.WithRetryAfter(err, wait) }

// TaskInfo says which task a node runs for.
type TaskInfo struct {
	// Graph is the graph's name, inside a subgraph the subgraph's.
	Graph, Node, Thread string
	// Step is the superstep; the first nodes of a thread run at 1.
	Step int
	// Attempt counts the attempts of this task, from 1.
	Attempt int
	// StepsLeft counts the supersteps that may still run after this one before the recursion limit (LangGraph's
	// RemainingSteps), and LastStep says that it is 1: the last superstep after which the run can still finish. A
	// subgraph counts its own.
	StepsLeft int
	LastStep  bool
	// Namespace and Path place the task in its thread: the subgraph it runs in, "" for none, and its place in the
	// superstep, which tells the tasks of several Sends to one node apart.
	Namespace, Path string
	// Requester is on whose behalf the run is, "" when nobody said; see [WithRequester].
	Requester string
}

// Info says which task runs. Outside a node it returns the zero TaskInfo. The result of a node [WithCache] that calls it is not kept.
func Info(ctx context.Context) TaskInfo {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return TaskInfo{}
	}
	taskrun.DependsOn(ctx, "superstep.Info")
	i := t.Info()
	return TaskInfo{
		Graph: i.Graph, Node: i.Node, Thread: i.Thread, Step: i.Step, Attempt: i.Attempt, StepsLeft: i.StepsLeft,
		LastStep: i.LastStep, Namespace: i.Namespace, Path: i.Path, Requester: i.Requester,
	}
}

// RunContext returns the value that the run was given by [WithContext], in a node, a routing function, an effect's
// functions and an error handler, of subgraphs too. It fails with a *[StateError] when the run was given none, or one
// that is not a T, members that T does not have included; no retry policy repeats that.
func RunContext[T any](ctx context.Context) (T, error) {
	var out T
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return out, fmt.Errorf("run context: %w", ErrOutsideNode)
	}
	raw, err := t.RunContext(), error(nil)
	if raw == nil {
		err = errors.New("the run was given none: start it with superstep.WithContext")
	} else {
		err = jsonfit.Explain(jsonfit.DecodeStrict(raw, &out), reflect.TypeFor[T](), raw)
	}
	if err != nil {
		var zero T
		return zero, graphadapter.Permanent(&StateError{Graph: t.Info().Graph, Node: t.Info().Node, Context: true,
			Type: jsonfit.TypeName(reflect.TypeFor[T]()), Cause: err})
	}
	return out, nil
}

// Drain asks the run to stop before its next superstep, for that reason, which is cut at 1 KiB: what runs now ends and is
// kept, this node included. The run then stands still, and goes on when the thread is invoked without input. When
// nothing was left to run it finishes as if nothing had been asked. Outside a node it does nothing.
func Drain(ctx context.Context, reason string) {
	if t, ok := taskrun.TaskFrom(ctx); ok {
		t.Drain(reason)
	}
}

// Heartbeat says that the node makes progress, which restarts the idle time of [WithTimeout]. Emitting a value and
// finishing a Task or an Effect say so too. Outside a node it does nothing.
func Heartbeat(ctx context.Context) {
	if t, ok := taskrun.TaskFrom(ctx); ok {
		t.Beat()
	}
}

// Emit puts a value, which encodes as JSON, on the run's custom stream: at once for those who listen, and with the
// node's result for those who read later. A node that runs again emits again. One attempt may emit 10,000 values, of
// 256 KiB each and 1 MiB together; beyond that Emit fails and the value is dropped.
func Emit(ctx context.Context, v any) error {
	return emit(ctx, v, (*taskrun.TaskRun).Emit)
}

// EmitMessage is Emit for the messages stream: m is a message, or a piece of one that has the id of the whole. A
// message with that id that the node then writes is not streamed again, so emit all of it, or only others. The bounds
// are those of Emit, and both count together.
func EmitMessage(ctx context.Context, m message.Message) error {
	return emit(ctx, m, (*taskrun.TaskRun).EmitMessage)
}

func emit(ctx context.Context, v any, to func(*taskrun.TaskRun, json.RawMessage) error) error {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return fmt.Errorf("emit: %w", ErrOutsideNode)
	}
	raw, err := jsonfit.Encode(v)
	if err != nil {
		return graphadapter.Permanent(fmt.Errorf("%semit: a value of type %v does not encode as JSON: %w",
			place(t.Info().Graph, t.Info().Node), reflect.TypeOf(v), err))
	}
	return to(t, raw)
}
