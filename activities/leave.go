package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"superstep.dev/graphadapter/segment"
)

// asked is told that the server wants the segment to stop: the run has something to do that the segment must not go past,
// or an operator paused the activity, or the run is cancelled. It leaves when no task is under way, in the last case at
// once, and in the second where its superstep is all that it runs.
func (e *segmentRun) asked(why error) {
	if e.req.Single && isSuspended(why) { // as the activity of a task, which runs again
		e.freeze()
		e.lose(why)
		return
	}
	e.leaveSoon()
	if !isCancelled(why) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.describes || e.end == nil {
		return
	}
	e.describes = true
	go func() {
		cancelled := e.runCancelled()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.describes = false
		if cancelled {
			e.end(segment.ErrRunCancelled)
		}
	}()
}

// freeze makes what is on record now what stays on record: how the tasks end that are stopped does not count.
func (e *segmentRun) freeze() {
	now := e.details()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.frozen == nil {
		e.frozen = now
	}
}

// exit is how a segment is told to leave as soon as no task is under way.
type exit struct {
	leave chan struct{}
	once  sync.Once
}

func newExit() *exit { return &exit{leave: make(chan struct{})} }

func (x *exit) leaveSoon() { x.once.Do(func() { close(x.leave) }) }

// describeTimeout bounds the question to the server; the next heartbeat leads to the next one.
const describeTimeout = 5 * time.Second

// runCancelled reports whether the run itself was asked to cancel.
func (e *segmentRun) runCancelled() bool {
	ctx, cancel := context.WithTimeout(context.Background(), describeTimeout)
	defer cancel()
	run := e.info.WorkflowExecution
	described, err := e.client.DescribeWorkflowExecution(ctx, run.ID, run.RunID)
	return err == nil && described.GetWorkflowExtendedInfo().GetCancelRequested()
}

// watch makes the segment leave when this worker stops: between two supersteps while there is time, and then at once.
func (e *segmentRun) watch(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			e.leaveSoon()
		case <-done:
			return
		}
		select {
		case <-ctx.Done():
			e.end(segment.ErrWorkerStops)
		case <-done:
		}
	}()
	return func() { close(done) }
}

// keepEvery is the least time between two heartbeats that store records in the background, from a segment's start to the
// first of them, before which most segments have ended with their result, and between two that a segment waits for in
// async and exit mode: they take a hundredth of its time.
const keepEvery = 100 * time.Millisecond

// keeper stores records in the background: the newest, one heartbeat at a time.
type keeper struct {
	mu      sync.Mutex
	timer   *time.Timer
	pending bool
	stopped bool
	last    time.Time
}

// nudge says that there is something new to store.
func (k *keeper) nudge(l *lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending || k.stopped {
		return
	}
	k.pending = true
	k.timer = time.AfterFunc(keepEvery-time.Since(k.last), func() {
		k.mu.Lock()
		k.pending, k.last = false, time.Now() // what comes from here on needs another one
		stopped := k.stopped
		k.mu.Unlock()
		if !stopped {
			_ = l.Send(context.Background()) // the next one carries the same
		}
	})
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	if k.timer != nil {
		k.timer.Stop()
	}
}
