package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// Server is what an execution's heartbeats reach. They carry [Task.Progress] as it is then. A Server is safe for concurrent
// use.
type Server interface {
	taskrun.Lease
	// Send sends one heartbeat. After an error nobody knows whether it is stored, and [graphadapter.ErrFenced] says that
	// another execution owns the task.
	Send(ctx context.Context) error
	// Store sends heartbeats until one is stored, or the task is not this execution's any more, which is the error.
	Store(ctx context.Context) error
	// Lost says why the task is not this execution's any more; nil while it is.
	Lost() error
	// Now is the server's clock, as far as this execution knows.
	Now() time.Time
}

// Execution says which execution of an activity this is.
type Execution struct {
	Attempt int32 // the activity's, from 1
	// Repeated says that an execution was before it. An activity that was reset counts from 1 again, but has the progress of
	// those before.
	Repeated bool
	// Reset says that the run was reset: executions before may be missing from its record.
	Reset bool
}

// Task is one execution of one task. It is safe for concurrent use.
type Task struct {
	*Tally
	*taskrun.Outbox
	req    *graphadapter.NodeRequest
	of     Execution
	server Server

	mu       sync.Mutex
	returns  int
	settling *graphadapter.Settling
}

// Open returns the execution of the request's task, with what the heartbeats of executions before it have stored.
func Open(req *graphadapter.NodeRequest, of Execution, kept graphadapter.Progress, server Server) (t *Task, err error) {
	t = &Task{Tally: NewTally(of.Attempt, kept), req: req, of: of, server: server}
	t.Outbox, err = taskrun.OpenOutbox(&req.Task, kept.Tasks[req.Task.Key()], store{t}, req.Durability)
	return t, err
}

// Progress is what a heartbeat carries: what the request did not bring, as far as there is room. In exit mode it is life and
// the count of attempts, no record.
func (t *Task) Progress() graphadapter.Progress {
	p := t.Tally.Progress(t.IsFurther() && t.req.Durability != graphadapter.DurabilityExit)
	if beat := t.Beat(t.most()); beat != nil {
		p.Tasks = map[string]pregel.Value{t.req.Task.Key(): beat}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.Returns, p.Settling = t.returns, t.settling
	return p
}

// defaultBeatBytes bounds what a heartbeat carries when the request does not say.
const defaultBeatBytes = 128 << 10

func (t *Task) most() int { return cmp.Or(t.req.LedgerBytes, defaultBeatBytes) }

// store is a task as the taskrun.Store of its outbox.
type store struct{ *Task }

// Keep implements taskrun.Store. In async and exit mode the entry leaves with a later heartbeat or the task's end, which is
// why a repeated task is suspect.
func (s store) Keep(ctx context.Context) error {
	if graphadapter.IsRelaxed(s.req.Durability) {
		return s.server.Lost()
	}
	return s.server.Store(ctx)
}

// Room implements taskrun.Store.
func (s store) Room(*taskrun.Outbox) int { return s.most() }

// onTime is how much before its time an execution counts as in time: the server's timers and clock have no finer sense.
const onTime = 50 * time.Millisecond

// Holds implements taskrun.Store: the wait for an attempt is the server's, and holds no worker.
func (s store) Holds(_ context.Context, wait time.Duration, failed bool) bool {
	return !failed && wait <= onTime
}

// Leaving implements taskrun.Store.
func (s store) Leaving() <-chan struct{} { return nil }

// Now implements taskrun.Store.
func (s store) Now() time.Time { return s.server.Now() }

// RetryError says that the task is to be executed again, after a wait, with what its heartbeats have stored.
type RetryError struct {
	After time.Duration
	Why   string // the last attempt failed
}

func (e *RetryError) Error() string { return e.Why }

// Early says how long it is before the task's next attempt may begin; nil when it may now. The server runs a task too early
// when a worker was lost after it had recorded a failed attempt and before it could report it.
func (t *Task) Early() *RetryError {
	if wait := t.Wait(); wait > onTime {
		return &RetryError{After: wait, Why: cmp.Or(t.CarryOver().Failed, "the wait before the next attempt is not over")}
	}
	return nil
}

// Run runs the task with what env has beside the request: attempt by attempt, until the task ends, waits or is given back.
// An outcome with an Error has failed for good.
//
// The error is a [*RetryError]; what [taskrun.RunTask] says of a task that was stopped; or that a failed attempt could not
// be recorded. Then the outcome has what was emitted, and the task is executed again.
func (t *Task) Run(ctx context.Context, g *graphadapter.Graph, env taskrun.Env) (pregel.Outcome, error) {
	env.Thread, env.Context, env.Requester = t.req.Thread, t.req.Context, t.req.Requester
	env.Behind, env.Suspect, env.Lost = graphadapter.Milliseconds(t.req.Behind), t.IsSuspect(), t.MayGoOn()
	env.Outbox, env.Lease = t.Outbox, t.server
	out, why := taskrun.RunTask(ctx, g, &t.req.Task, env)
	var unserved *graphadapter.UnservedError
	switch {
	case errors.Is(why, taskrun.ErrReturned):
		return t.again(ctx)
	case ctx.Err() != nil, errors.As(why, &unserved), errors.Is(why, graphadapter.ErrFenced):
		return out, why
	}
	return out, nil
}

// Fail records a failed attempt of what is no node, such as a call of a planner. The error is a [*RetryError], or says that
// the failed attempt could not be recorded.
func (t *Task) Fail(ctx context.Context, wait time.Duration, failure *pregel.NodeError) error {
	t.Outbox.Fail(ctx, wait, failure, nil)
	_, err := t.again(ctx)
	return err
}

// again gives the task back after a failed attempt. The attempt is on record before: whoever is lost from here on, it counts
// once, and the wait is not shortened. The server would keep the record only as long as nobody cancels the run: of an
// activity that waits for its next attempt it then forgets everything. So a task that has news leaves them with the run.
func (t *Task) again(ctx context.Context) (pregel.Outcome, error) {
	if t.HasNews() {
		return t.Yield(false)
	}
	t.End()
	if err := t.server.Send(ctx); err != nil {
		return pregel.Outcome{}, fmt.Errorf("the failed attempt could not be recorded: %w", err)
	}
	return pregel.Outcome{}, &RetryError{After: t.Wait(), Why: t.CarryOver().Failed}
}

// Yield gives the task back with what it has recorded, for another activity to go on: in the middle of an attempt that has
// begun, or between two.
func (t *Task) Yield(begun bool) (pregel.Outcome, error) {
	return t.Outbox.Yield(t.Entries(), begun, t.IsSuspect(), t.MayGoOn())
}

// IsSuspect reports whether an earlier execution of this task may have acted outside without a trace: it was repeated
// after a lost worker, the activity or the run was reset, or the thread continues a run that ended badly.
func (t *Task) IsSuspect() bool {
	return t.req.Suspect || t.of.Repeated || t.of.Reset || t.CarryOver().Suspect
}

// MayGoOn reports whether an execution of this task was lost, and may have called without a trace. In sync mode a call
// begins when its intent is stored: the ledger knows of it.
func (t *Task) MayGoOn() bool {
	return t.req.Lost || t.of.Reset || t.CarryOver().Lost || graphadapter.IsRelaxed(t.req.Durability) && t.HasLost()
}

// Announce stores how large the result is that this execution is about to return.
func (t *Task) Announce(ctx context.Context, size int) error {
	t.mu.Lock()
	t.returns = size
	t.mu.Unlock()
	return t.server.Store(ctx)
}

// Settling notes for which earlier call a compensation waits, and until when: whoever looks at the run sees it. The zero
// time means that it waits no more. A heartbeat that fails says so by itself.
func (t *Task) Settling(ctx context.Context, e ledger.Entry, until time.Time) {
	t.mu.Lock()
	t.settling = nil
	if !until.IsZero() {
		t.settling = &graphadapter.Settling{Effect: e.Name, Key: e.Key, Until: until}
	}
	t.mu.Unlock()
	_ = t.server.Store(ctx)
}

// Tally counts the executions of an activity that were lost with their workers, for the execution that follows them. It is
// safe for concurrent use.
type Tally struct {
	attempt int32
	began   time.Time

	mu     sync.Mutex
	losses graphadapter.Losses
	lost   bool // one before those in losses was lost, too
}

// NewTally returns the tally of an execution that begins now: the attempt of that number, from 1, with what the executions
// before it have left.
func NewTally(attempt int32, kept graphadapter.Progress) *Tally {
	return &Tally{attempt: attempt, began: time.Now(), losses: kept.Since(attempt), lost: kept.Lost}
}

// Counted is how many losses in a row count against the activity: after [graphadapter.MostLosses] a person is asked.
func (t *Tally) Counted() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.losses.Counted(t.attempt)
}

// HasLost reports whether an execution was lost with its worker.
func (t *Tally) HasLost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost || t.losses.Any(t.attempt)
}

// IsBehindLoss reports whether the execution before this one was lost with its worker.
func (t *Tally) IsBehindLoss() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.losses.Any(t.attempt)
}

// Trial reports whether this execution is to run on trial, and for how long.
func (t *Tally) Trial() (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.losses.TrialTime(), t.losses.OnTrial(t.attempt)
}

// Try says that this execution runs on trial.
func (t *Tally) Try() { t.change(graphadapter.Losses.Tried) }

// Clear says that this execution has run on trial for long enough.
func (t *Tally) Clear() {
	t.change(func(l graphadapter.Losses) graphadapter.Losses { return l.Cleared(t.attempt) })
}

// End says that the end of this execution is known: it is not lost.
func (t *Tally) End() {
	t.change(func(l graphadapter.Losses) graphadapter.Losses { return l.Ended(t.attempt) })
}

func (t *Tally) change(next func(graphadapter.Losses) graphadapter.Losses) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = t.lost || t.losses.Any(t.attempt)
	t.losses = next(t.losses)
}

// Progress is what a heartbeat carries of the tally. further says that this execution came further than those before it,
// which were lost at something else then.
func (t *Tally) Progress(further bool) graphadapter.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := graphadapter.Progress{Losses: t.losses.Ran(time.Since(t.began)), Lost: t.lost}
	if further {
		p.Lost, p.Losses = p.Lost || p.Any(t.attempt), p.Cleared(t.attempt)
	}
	return p
}
