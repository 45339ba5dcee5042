package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/clip"
	"superstep.dev/thread/storage"
)

// lease is a host.Server: the one place where an execution's heartbeats are sent. Every heartbeat blocks until it is stored and carries
// the newest details, so a later one never takes back what an earlier one stored. The SDK's own throttled heartbeats are
// never mixed in.
type lease struct {
	client  client.Client
	info    activity.Info
	details func() []any      // the newest; called without a lock of the lease
	asked   func(error)       // is told that the server asks to stop; nil ends the held context
	sending sync.Mutex        // one heartbeat at a time
	began   time.Time         // when the execution began, which is a heartbeat to the server
	before  graphadapter.Beat // the last heartbeat of the executions before this one, as far as it is stored

	mu       sync.Mutex
	expiry   *time.Timer // ends the held context before the server gives the task away
	told     time.Time   // when the newest heartbeat was sent that the server replied to; zero before the first
	lostWhy  error       // why the task is no longer ours
	unstored string      // why the result is held back: see graphadapter.Progress
	cancel   context.CancelCauseFunc
}

// hold beats until released, from a third of the heartbeat timeout on: a short node pays nothing. The returned context
// ends when the task is no longer ours. Of a run that lost its worker it takes leave of that worker, beside what the caller
// does.
func (l *lease) hold(ctx context.Context, tally *host.Tally) (held context.Context, release func()) {
	held, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	l.cancel = cancel
	if l.info.HeartbeatTimeout > 0 {
		l.expiry = time.AfterFunc(l.leaseFrom(l.began), func() { l.lose(graphadapter.ErrFenced) })
	}
	l.mu.Unlock()
	var beside sync.WaitGroup
	if tally.Counted() > 0 {
		beside.Go(func() { l.unstick(context.WithoutCancel(ctx)) })
	}
	beside.Go(func() { l.beat(held) })
	return held, func() {
		cancel(nil)
		beside.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.expiry != nil {
			l.expiry.Stop()
		}
	}
}

// unstickWithin bounds a call of unstick: a wait of more than the second that it saves would buy nothing.
const unstickWithin = time.Second

// unstick makes the run's next workflow task go to any worker. The server offers the task to the worker that had the last
// one, which was probably lost together with the execution before this one: the task would lie there until the sticky
// schedule-to-start timeout, a second, is over. The call changes nothing else. A run that gets no reply waits that second.
func (l *lease) unstick(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, unstickWithin)
	defer cancel()
	run := l.info.WorkflowExecution
	_, err := l.client.WorkflowService().ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{
		Namespace: l.info.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: run.ID, RunId: run.RunID}})
	if err != nil {
		activity.GetLogger(ctx).Warn("the run waits for its lost worker for a moment, as the server did not reset its sticky task queue", "error", err)
	}
}

// Now implements host.Server.
func (l *lease) Now() time.Time { return l.info.StartedTime.Add(time.Since(l.began)) }

// leaseFrom is how long the task is certainly ours after a heartbeat that was sent at that time. The server gives the
// task away one timeout after it stored the last one; the node stops a tenth of it before.
func (l *lease) leaseFrom(sent time.Time) time.Duration {
	return l.allowance() - time.Since(sent)
}

func (l *lease) allowance() time.Duration { return l.info.HeartbeatTimeout * 9 / 10 }

// Held implements taskrun.Lease. The timer that ends the held context may be late: a process that was stopped goes on
// with its code and its timers at once. An execution that was told so once is over: were a heartbeat still to renew the lease, the
// task that gave up would be taken for one that failed.
func (l *lease) Held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lostWhy != nil || l.info.HeartbeatTimeout <= 0 {
		return l.lostWhy
	}
	if taskrun.Elapsed(l.heardAt(), time.Now()) >= l.allowance() {
		l.end(graphadapter.ErrFenced)
	}
	return l.lostWhy
}

// Confirm implements taskrun.Lease: before its first heartbeat the server has heard nothing of this execution, which
// was perhaps frozen before it began.
func (l *lease) Confirm(ctx context.Context) error {
	l.mu.Lock()
	told := !l.told.IsZero()
	l.mu.Unlock()
	if !told {
		if err := l.Store(ctx); err != nil {
			return err
		}
	}
	return l.Held()
}

// heardAt is when the newest heartbeat was sent that counts, for who has the lock.
func (l *lease) heardAt() time.Time {
	if l.told.IsZero() {
		return l.began
	}
	return l.told
}

// mostWait bounds a heartbeat by what is left of the lease: to send it again sooner would ask a busy server for more, and win nothing. One
// that is sent behind the lease's end has a second.
func (l *lease) mostWait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.leaseFrom(l.heardAt()); left > 0 {
		return left
	}
	return time.Second
}

func (l *lease) beat(ctx context.Context) {
	timeout := l.info.HeartbeatTimeout
	if timeout <= 0 {
		return
	}
	tick := time.NewTicker(timeout / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// One that fails is followed by the next; without any that succeeds the lease runs out.
			_ = l.Send(ctx)
		}
	}
}

// Send implements host.Server: it stores the newest details. An error means that they may not be stored.
func (l *lease) Send(ctx context.Context) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	if lost := l.Lost(); lost != nil && !isSuspended(lost) {
		return lost
	}
	sendCtx, cancel := context.WithTimeout(ctx, l.mostWait())
	defer cancel()
	sent := time.Now()
	err := l.client.RecordActivityHeartbeat(storage.Inline(sendCtx), l.info.TaskToken, l.signed(l.details())...)
	return l.heard(sent, err)
}

// hand hands a result of about that size to the server while the task is still held, where it goes by reference: a storage may be away
// for longer than the server waits for a heartbeat, and what the node did would be for nothing. Heartbeats say so meanwhile. It returns
// activity.ErrResultPending when the server has the result, nil when it is to be returned as any other, or why the task is not held any more.
func (l *lease) hand(held context.Context, encodes converter.DataConverter, result any, size int) error {
	if !storage.Refers(encodes, size) {
		return nil
	}
	for wait := storeAgain; ; wait = min(2*wait, storeLate) {
		err := l.client.CompleteActivity(storage.Within(held, l.info.Namespace, l.info.WorkflowExecution.ID), l.info.TaskToken, result, nil)
		var away *storage.Error
		switch {
		case err == nil:
			return activity.ErrResultPending
		case !errors.As(err, &away) && held.Err() == nil:
			return nil // the server says why when it is returned
		}
		activity.GetLogger(held).Warn("the result waits until it can be stored", "error", err)
		l.mu.Lock()
		l.unstored = clip.Line(err.Error())
		l.mu.Unlock()
		select {
		case <-held.Done():
			return context.Cause(held)
		case <-time.After(wait):
		}
	}
}

// storeAgain is the wait after a heartbeat that got no answer, and the first one before a result is stored again; storeLate is the longest
// of those.
const (
	storeAgain = 50 * time.Millisecond
	storeLate  = 2 * time.Second
)

// Store implements host.Server: it stores the newest details, however often it takes while the task is ours: a server that is slow or away for a
// moment is no failure of the node.
func (l *lease) Store(ctx context.Context) error {
	for {
		err := l.Send(ctx)
		if err == nil || !unanswered(err) {
			return err
		}
		select {
		case <-time.After(storeAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if lost := l.Lost(); lost != nil {
			return lost
		}
	}
}

// unanswered reports whether a call got no answer, or was told to come again.
func unanswered(err error) bool {
	var away *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	var busy *serviceerror.ResourceExhausted
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &away) || errors.As(err, &late) || errors.As(err, &busy)
}

// heard reads the server's reply to a heartbeat. Cancelled, paused and reset mean: stored, now stop. Not found means
// that another execution owns the task, or that the run is over.
func (l *lease) heard(sent time.Time, err error) error {
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		l.renew(sent)
		return nil
	case (isCancelled(err) || isSuspended(err)) && l.asked != nil:
		l.renew(sent)
		l.asked(err)
		return nil
	case isCancelled(err), isSuspended(err):
		l.lose(err)
		return nil
	case errors.As(err, &gone):
		l.lose(graphadapter.ErrFenced)
		return graphadapter.ErrFenced
	default:
		return fmt.Errorf("the heartbeat was not confirmed: %w", err)
	}
}

// renew puts off the end of the lease: a heartbeat that was sent at that time is stored.
func (l *lease) renew(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = sent
	if l.expiry != nil && l.lostWhy == nil {
		l.expiry.Reset(l.leaseFrom(sent))
	}
}

// silence is how long the server has told nothing to the execution.
func (l *lease) silence() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.heardAt())
}

// Lost implements host.Server: it says why the task is no longer ours; nil while it is.
func (l *lease) Lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostWhy
}

// lose ends the held context: the task is no longer ours.
func (l *lease) lose(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(why)
}

// end is lose, for who has the lock.
func (l *lease) end(why error) {
	if l.lostWhy == nil {
		l.lostWhy = why
	}
	if l.cancel != nil {
		l.cancel(why)
	}
}

// countGivenBack records that this worker gives the activity back: it does not serve it, or it stops.
func (l *lease) countGivenBack(ctx context.Context, tally *host.Tally) error {
	tally.End()
	return l.Send(ctx)
}

// givenBack ends this execution without a word about what it was to do: another worker takes that.
func (l *lease) givenBack(ctx context.Context, tally *host.Tally, kind string, err error) error {
	if recorded := l.countGivenBack(ctx, tally); recorded != nil {
		err = errors.Join(err, recorded)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), kind, err)
}

// run names the run that the activity is of.
func (l *lease) run() Run {
	return Run{l.info.Namespace, l.info.WorkflowExecution.ID, l.info.WorkflowExecution.RunID}
}

// isSuspended reports whether an operator paused or reset the activity: it is still this execution's until its end.
func isSuspended(err error) bool {
	return errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

func isCancelled(err error) bool {
	var cancelled *temporal.CanceledError
	return errors.As(err, &cancelled)
}

// retryIn is the error after which the server runs the task again in that time; the server's own policy has no say. It
// goes without its cause, whose text nothing bounds: an error that is too large to report looks like a lost worker.
func retryIn(wait time.Duration, why string) error {
	return temporal.NewApplicationErrorWithOptions(why, graphadapter.NodeRetryType, temporal.ApplicationErrorOptions{
		NextRetryDelay: max(wait, time.Millisecond), // 0 would mean the activity's own interval
	})
}

// turn is of those activities that are on trial: one at a time in a process, as its end is the end of all that it runs. See
// graphadapter.Losses.
var turn = make(chan struct{}, 1)

// onTrial makes an execution whose losses want it run on trial. It stores that before it returns: an execution that is lost
// later has begun. The error gives the activity back while another one has the turn; it must not be accounted for.
//
// The turn ends with release, or when the execution has run long enough to be cleared.
func (l *lease) onTrial(ctx context.Context, tally *host.Tally) (release func(), err error) {
	needed, wanted := tally.Trial()
	if !wanted {
		return func() {}, nil
	}
	select {
	case turn <- struct{}{}:
	default:
		return nil, temporal.NewApplicationError("its last workers were lost: it runs when no other such task runs on the same "+
			"worker, to find out which of them it is", graphadapter.NodeStoppedType)
	}
	free := sync.OnceFunc(func() { <-turn })
	tally.Try()
	if err := l.Store(ctx); err != nil {
		free()
		return nil, temporal.NewApplicationErrorWithCause("it does not run, as that could not be recorded", graphadapter.NodeStoppedType, err)
	}
	cleared := time.AfterFunc(needed, func() {
		tally.Clear()
		_ = l.Send(context.Background()) // one that fails is followed by the next
		free()
	})
	return func() {
		cleared.Stop()
		free()
	}, nil
}
