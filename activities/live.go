package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Live is where emissions go while their nodes run.
type Live interface {
	// Publish hands an emission to those who listen.
	Publish(context.Context, graphadapter.LiveEmission) error
	// Ended says that a task emits nothing more, and that its outcome has what it emitted.
	Ended(context.Context, graphadapter.LiveTask) error
}

// publishTimeout bounds how long one emission, or a task's end, may keep its node waiting.
const publishTimeout = 250 * time.Millisecond

// publisher publishes the emissions of one execution of a task. After a failure the rest of the execution is not published:
// listeners take it from the result. A nil publisher publishes nothing.
type publisher struct {
	ctx    context.Context
	live   Live
	task   graphadapter.LiveTask
	info   activity.Info
	next   int
	failed bool
}

// emit is what publishes an emission, nil for a nil publisher. It is called for one emission at a time.
func (p *publisher) emit() func(pregel.Emission) {
	if p == nil {
		return nil
	}
	return func(emitted pregel.Emission) {
		if p.failed {
			return
		}
		bounded, cancel := context.WithTimeout(p.ctx, publishTimeout)
		defer cancel()
		err := p.live.Publish(bounded, graphadapter.LiveEmission{
			Thread: p.task.Thread, Run: p.task.Run, Task: p.task.Task,
			Scheduled: p.info.ScheduledTime, Execution: p.info.Attempt, Sequence: p.next, Emission: emitted,
		})
		p.next++
		if p.failed = err != nil; p.failed {
			activity.GetLogger(p.ctx).Warn("what the node emits comes with its result only", "error", err)
		}
	}
}

// ended says that the task is over, if this execution or one before may have published something of it. ctx bounds it further.
func (p *publisher) ended(ctx context.Context, repeated bool) {
	if p == nil || p.next == 0 && !repeated {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := p.live.Ended(bounded, p.task); err != nil {
		activity.GetLogger(p.ctx).Warn("what the node emitted may be kept for readers although it has ended", "error", err)
	}
}

// over reports whether a task's activity ends the task: otherwise it is to run again.
func over(outcome pregel.Outcome, err error) bool {
	var failure *temporal.ApplicationError
	switch {
	case err == nil:
		return !outcome.Yielded
	case errors.Is(err, activity.ErrResultPending):
		return true // cancelled, or handed over
	}
	return isCancelled(err) || errors.As(err, &failure) && failure.NonRetryable()
}

// ends say that tasks have ended, all of them at once.
type ends struct {
	mu   sync.Mutex
	all  []func(context.Context)
	said bool
}

// keep keeps one for say. It reports false when that has been called.
func (e *ends) keep(one func(context.Context)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.said {
		e.all = append(e.all, one)
	}
	return !e.said
}

// say takes as long as the end of one task may: a workflow task may be waiting.
func (e *ends) say() {
	bounded, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = true
	for _, one := range e.all {
		one(bounded)
	}
	e.all = nil
}
