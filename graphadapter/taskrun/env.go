package taskrun

import (
	"context"
	"strconv"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// Env is what whoever runs tasks gives to one attempt.
type Env struct {
	// Thread is the thread's id.
	Thread string
	// Context is the run's context value; nil for none.
	Context pregel.Value
	// Attempt counts the attempts that the node's retry policy sees, from 1.
	Attempt int
	// Suspect says that an earlier execution may have acted outside without a trace in the journal.
	Suspect bool
	// Behind is set when the thread goes on behind a run that failed, was cancelled or was terminated: at least that long
	// ago. What a worker of that run was about to call, and what is not in the journal, may still arrive.
	Behind time.Duration
	// Alone says that no other task of the thread can use its thread-wide keys: they are used without a claim.
	Alone bool
	// Outbox keeps the task's memoised calls and effects, and counts its attempts; nil means one in memory that begins with
	// what the task was handed out with.
	Outbox *Outbox
	// Journal stands between the node and the Outbox; nil for nothing.
	Journal Journal
	// Emit is given each emitted value as it comes, in order, one at a time; nil keeps them for the outcome alone.
	Emit func(pregel.Emission)
	// Beat is called when the node says that it makes progress; it may be nil.
	Beat func()
	// Lost says that one of those was lost, and may go on without a trace in the journal.
	Lost bool
	// Lease says for how long the task is this execution's; nil for always.
	Lease Lease
	// Begin returns when a memoised call or an effect may begin, or why it may not; nil lets all begin.
	Begin func(ctx context.Context) error
	// Warn is told of what went wrong without harm to the task: a cache that cannot be used, a result
	// that is too large to be remembered. It must not block. Nil logs it.
	Warn func(error)
	// Duplicate is told of a write that the outside has twice, by the effect's name: this execution lost its task while it called,
	// or has called again for one that was lost.
	// Nil hears of none, and none is looked for.
	Duplicate func(effect string)
	// Tracer makes spans of what the task does; nil makes none.
	Tracer Tracer
	// Asked answers questions while the node runs; nil, but in tests of a node, leaves them open.
	Asked Asked
	// Outside stands for what the task's effects reach, but in tests nil.
	Outside *Outside
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string
	// Elsewhere says that the goroutine which uses the node's context is not the one that the node runs on, but stands for it: in tests of
	// a node.
	Elsewhere bool
	// Use says whether an approval may be acted upon; nil is closed: none may.
	Use graphadapter.UseGate

	outer   *TaskRun  // the task whose code called the graph
	decoded *sync.Map // of the driver that runs the task; nil for none
}

// Tracer makes spans of a task's attempts, and of the calls to the outside in them. It is safe for concurrent use.
type Tracer interface {
	// Attempt begins the span of the task's attempt of that number, and returns the context that the node has. The end is told
	// how the attempt ended, and of what type its error was, "" for none.
	Attempt(ctx context.Context, attempt int) (context.Context, func(outcome, failed string))
	// Call begins the span of a call: its context is the caller's, and returned is the one that Do or Lookup has. The end is told
	// the type of the call's error, "" for none.
	Call(ctx context.Context, c TracedCall) (context.Context, func(failed string))
}

// TracedCall is one call to the outside.
type TracedCall struct {
	Kind   string // one of the Call constants
	Effect string
	Key    string
	Number int // among those of the key and kind in the attempt, from 1
}

// The kinds of calls.
const (
	CallDo     = "do"
	CallLookUp = "lookup"
	CallUndo   = "undo"
)

// Asked is called for each question that a task asks and has no answer to, in the order in which they are asked. With
// true the question is answered by the value as if it had been before the task ran; with false it waits. It is called
// with the task locked, so it must not call into it.
//
// A node under test has to be answered while it runs: its question's id, by which answers are given, is not known
// before it asks.
type Asked func(q pregel.Question) (answer pregel.Value, answered bool)

// Outside stands between a task and what its effects reach. Graphs that the node's code calls have the same.
type Outside struct {
	// Effect returns what is called instead of an effect of the graph; nil changes nothing.
	Effect func(graphadapter.Effect) graphadapter.Effect
	// Wait takes the place of waiting until an earlier call has settled, which takes that long; nil waits. The error is
	// the cause of ctx when that ends first.
	Wait func(ctx context.Context, d time.Duration) error
}

func (o *Outside) effect(e graphadapter.Effect) graphadapter.Effect {
	if o == nil || o.Effect == nil {
		return e
	}
	return o.Effect(e)
}

func (o *Outside) wait(ctx context.Context, d time.Duration) error {
	if o != nil && o.Wait != nil {
		return o.Wait(ctx, d)
	}
	if !pause(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}

// Info says which task runs.
type Info struct {
	Graph, Node, Thread string
	// Origin is the thread's, see [pregel.Thread.Begin].
	Origin string
	// Namespace, Step, Path and Branch place the task in its thread; see pregel.Task.
	Namespace, Path, Branch string
	Step                    int
	// Attempt counts the executions of this task that the node's retry policy sees, from 1.
	Attempt int
	// StepsLeft counts the supersteps that may still run in this run after this one.
	StepsLeft int
	// LastStep says that this is the last superstep after which the run can still finish within its recursion limit
	// (LangGraph's IsLastStep; StepsLeft is its RemainingSteps).
	LastStep bool
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string
	// Suspect says that an earlier execution of this task may have acted outside without a trace: effects look up
	// before they call.
	Suspect bool
	// Lost says that such an execution was lost with its worker, or with its run: it may go on when that thaws.
	Lost bool
}

func (i *Info) hash(parts ...string) string {
	place := []string{i.Thread, i.Branch, i.Namespace, strconv.Itoa(i.Step), i.Path}
	return ledger.Hash(append(place, parts...)...)
}

// Journal is where a running task keeps what must survive it: the ledger of its memoised calls and effects. It is safe
// for concurrent use.
type Journal interface {
	// Entry returns the entry of that key.
	Entry(key string) (ledger.Entry, bool)
	// Record stores an entry, replacing the one of the same key. It returns when the entry is durable: nil means it
	// will be seen by every later execution of the task, any error that it may not be. [ErrFenced] means another
	// execution owns the task: stop, start no new call.
	Record(ctx context.Context, e ledger.Entry) error
	// Entries returns all entries in the order in which they were first recorded.
	Entries() []ledger.Entry
}

// pause waits; it reports false when ctx ended first.
func pause(ctx context.Context, wait time.Duration) bool {
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// idleTimer calls expired after limit without progress. A nil timer does nothing.
type idleTimer struct {
	limit time.Duration

	mu    sync.Mutex
	holds int
	timer *time.Timer
}

func startIdleTimer(limit time.Duration, expired func()) *idleTimer {
	return &idleTimer{limit: limit, timer: time.AfterFunc(limit, expired)}
}

// progress starts the time anew.
func (t *idleTimer) progress() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holds == 0 {
		t.timer.Reset(t.limit)
	}
}

// hold stops the time until the returned function is called: a wait that the engine prescribes is not the node's.
func (t *idleTimer) hold() (release func()) {
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds++
	t.timer.Stop()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.holds--
		if t.holds == 0 {
			t.timer.Reset(t.limit)
		}
	}
}

func (t *idleTimer) stop() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds++ // later progress must not start it again
	t.timer.Stop()
}
