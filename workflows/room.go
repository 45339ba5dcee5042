package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter"
	"superstep.dev/workflows/protocol"
)

// MaxEvents bounds a run's history, as graphadapter.HistoryRoom bounds its bytes: the server terminates a run at 51,200 events or
// 50 MiB, without a word to the run. Before that the run ends itself, with its state, so that a retry goes on in a new history.
const MaxEvents = 45_000

// HistoryFullError says that a run's history is full. Nothing is lost: a retry of the thread goes on from there.
type HistoryFullError struct {
	Events, Bytes int
	// Cause is why the run was not continued as a new one; nil when it could not be said.
	Cause error
}

func (e *HistoryFullError) Error() string {
	text := fmt.Sprintf("the run's history is full (%d events, %d bytes): retry the thread, it goes on where it stands",
		e.Events, e.Bytes)
	if e.Cause != nil {
		text += "; " + e.Cause.Error()
	}
	return text
}

// Unwrap returns why the run was not continued.
func (e *HistoryFullError) Unwrap() error { return e.Cause }

// ErrorType names the kind of failure in stored data.
func (e *HistoryFullError) ErrorType() string { return "HistoryFull" }

// room is how much a run's history still takes.
type room struct {
	*engine
	// notContinued is why the run could not be continued as a new one, and heldBack the number of events below which that is not
	// tried again.
	notContinued error
	heldBack     int
}

// refuse refuses what would make a run that rests grow beyond what the server keeps.
func (m *room) refuse(ctx workflow.Context) error {
	if m.full(ctx) == nil {
		return nil
	}
	return protocol.Refuse(protocol.ErrTypeBusy, "the run's history is full: cancel the thread, it goes on in a new run, then send this again")
}

// full returns a *HistoryFullError when the run must not grow any more.
func (m *room) full(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	events, bytes := info.GetCurrentHistoryLength(), info.GetCurrentHistorySize()
	if events > MaxEvents || bytes > graphadapter.HistoryRoom {
		return &HistoryFullError{Events: events, Bytes: bytes, Cause: m.notContinued}
	}
	return nil
}

// TooLargeError says that what a run would hand on to the one that continues it does not fit one event.
type TooLargeError struct {
	Bytes, Most int
	Do          string // what to do about it
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the thread's state is too large to go on in a new run (%d bytes with what goes along, at most %d fit): %s",
		e.Bytes, e.Most, e.Do)
}

// retryEvents is by how much the history grows before a state that was too large to be handed on is tried again.
const retryEvents = 1000

// due reports whether a run that rests is long enough to be continued as a new one, which nobody notices.
func (m *room) due(ctx workflow.Context) bool { return m.long(ctx, m.in.ContinueAt.Filled().Updates) }

// dueUnderWay reports whether the run is so long that it does not wait for its rest.
func (m *room) dueUnderWay(ctx workflow.Context) bool {
	return m.long(ctx, m.in.ContinueAt.Filled().MostUpdates)
}

func (m *room) long(ctx workflow.Context, updates int) bool {
	info, at := workflow.GetInfo(ctx), m.in.ContinueAt.Filled()
	events := info.GetCurrentHistoryLength()
	long := at.Long(events, info.GetCurrentHistorySize(), info.GetContinueAsNewSuggested()) || m.updates >= updates
	return long && events >= m.heldBack && workflow.Now(ctx).Sub(info.WorkflowStartTime).Milliseconds() >= at.Life
}

// clock bounds the superstep under way, when the run has a step timeout. Out of time, it cancels the superstep's tasks.
type clock struct {
	step    int
	ends    time.Time
	ctx     workflow.Context // that of the superstep's tasks; nil while no superstep is timed
	stop    workflow.CancelFunc
	expired bool
	timeout *graphadapter.StepTimeoutError
}

// enter starts the clock for the superstep that the engine is at, unless it runs already.
func (c *clock) enter(ctx workflow.Context, e *engine) {
	if e.in.StepTimeout <= 0 || c.ctx != nil && c.step == e.loop.Step() {
		return
	}
	limit, now := time.Duration(e.in.StepTimeout)*time.Millisecond, workflow.Now(ctx)
	ends := now.Add(limit)
	if c.ctx == nil && !c.ends.IsZero() && c.step == e.loop.Step() {
		ends = c.ends // it was timed by the run that this one continues
	}
	c.leave()
	tasks, cancelTasks := workflow.WithCancel(ctx)
	timing, cancelTimer := workflow.WithCancel(ctx)
	*c = clock{step: e.loop.Step(), ends: ends, ctx: tasks, stop: cancelTimer,
		timeout: &graphadapter.StepTimeoutError{Graph: e.in.Graph, Step: e.loop.Step(), Limit: limit}}
	step := c.step
	timer := workflow.NewTimerWithOptions(timing, max(ends.Sub(now), time.Millisecond), workflow.TimerOptions{Summary: "step timeout"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) == nil && c.ctx == tasks && c.step == step {
			c.expired = true
			cancelTasks()
		}
	})
}

// leave stops the clock.
func (c *clock) leave() {
	if c.stop != nil {
		c.stop()
	}
	*c = clock{}
}

// context is that of the superstep's tasks; without a clock it is the run's.
func (c *clock) context(ctx workflow.Context) workflow.Context {
	if c.ctx != nil {
		return c.ctx
	}
	return ctx
}

// GiveWay lets the other coroutines have a turn: what came with one workflow task, as a cancellation and the signal that says
// how, is taken in by all of them before this one goes on.
func GiveWay(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	turned := false
	workflow.Go(ctx, func(workflow.Context) { turned = true }) // the last in turn
	_ = workflow.Await(ctx, func() bool { return turned })
}
