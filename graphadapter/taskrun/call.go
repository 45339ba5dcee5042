package taskrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
)

// Lease says for how long a task is certainly one execution's. It is safe for concurrent use.
type Lease interface {
	// Held returns nil while no other execution can have taken the task over, as far as the clocks tell at the moment of
	// asking; else why not. It makes no call.
	Held() error
	// Confirm makes sure that the server has taken the task for this execution's since it began. An error means that
	// nobody knows.
	Confirm(ctx context.Context) error
}

// ErrCallOver says that the time of a call to the outside is over: nothing more may be sent for it. It is a
// context.DeadlineExceeded.
var ErrCallOver error = callOver{}

type callOver struct{}

func (callOver) Error() string {
	return "superstep: the time of this call is over: nothing more may be sent for it"
}

// Is makes it the end of a context's time.
func (callOver) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout makes it a timeout to net.Error.
func (callOver) Timeout() bool { return true }

// Call is one call of the user's code to the outside: a Do, a Lookup or a Compensate. It is safe for concurrent use.
//
// Another execution waits for the call's time before it believes that nothing arrives any more. So nothing may leave
// after that, also when the process, or the machine, stood still in between: timers and contexts then end late, beside
// the code that they are to stop.
type Call struct {
	began time.Time // by both clocks
	most  time.Duration
	lease Lease           // nil for none
	inner context.Context // ends with the call
	end   context.CancelCauseFunc
}

// CallFrom returns the call that ctx belongs to.
func CallFrom(ctx context.Context) (*Call, bool) {
	c, ok := ctx.Value(callKey{}).(*Call)
	return c, ok
}

// Deadline is when the call's time is over. What reaches the target later must not be acted upon.
func (c *Call) Deadline() time.Time { return c.began.Add(c.most) }

// Check returns nil while something may be sent for the call. Else it returns [ErrCallOver], [ErrFenced], or why the call
// or its execution ended before, and ends the call's context, if that has not ended yet.
//
// It asks the clocks, not timers: both the monotonic one, which goes on while a process is stopped, and the wall clock,
// which goes on while a machine sleeps.
func (c *Call) Check() error {
	if c.inner.Err() != nil {
		return context.Cause(c.inner)
	}
	if Elapsed(c.began, time.Now()) >= c.most {
		c.end(ErrCallOver)
	} else if c.lease != nil {
		if lost := c.lease.Held(); lost != nil {
			c.end(lost)
		}
	}
	if c.inner.Err() == nil {
		return nil
	}
	return context.Cause(c.inner)
}

// Elapsed is how long ago since was, by the clock that has gone on further. Both times have to come from time.Now.
func Elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

type callKey struct{}

// inCall returns the context of a call that begins now and may take that long. It tells the truth when it is asked: Err,
// Done and Deadline look at the clocks first. Contexts that are made of it end as those of the standard library do.
func inCall(ctx context.Context, most time.Duration, lease Lease) (context.Context, context.CancelFunc) {
	ended, end := context.WithCancelCause(ctx)
	c := &Call{began: time.Now(), most: most, lease: lease, end: end}
	var stop context.CancelFunc
	c.inner, stop = context.WithDeadlineCause(ended, c.Deadline(), ErrCallOver)
	return &callContext{c.inner, c}, func() {
		stop()
		end(nil)
	}
}

type callContext struct {
	context.Context
	call *Call
}

// Done implements context.Context.
func (c *callContext) Done() <-chan struct{} {
	_ = c.call.Check()
	return c.Context.Done()
}

// Err implements context.Context.
func (c *callContext) Err() error {
	if why := c.call.Check(); errors.Is(why, context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return c.Context.Err()
}

// Deadline implements context.Context.
func (c *callContext) Deadline() (time.Time, bool) {
	_ = c.call.Check()
	return c.Context.Deadline()
}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

// inTime makes one call of the user's code that may take that long. One that does not heed its context is left behind soon
// after its time.
func inTime[T any](ctx context.Context, most time.Duration, lease Lease, call func(context.Context) (T, error)) (T, error) {
	type reply struct {
		value T
		err   error
	}
	ctx, end := inCall(ctx, most, lease)
	defer end()
	if ctx.Err() != nil {
		var none T
		return none, context.Cause(ctx)
	}
	done := make(chan reply, 1)
	go func() {
		r := reply{err: &graphadapter.PanicError{Message: "the function ended its goroutine (runtime.Goexit)"}}
		defer func() { done <- r }()
		defer graphadapter.Catch(&r.err)
		r.value, r.err = call(ctx)
	}()
	var r reply
	select {
	case r = <-done:
	case <-ctx.Done():
		select {
		case r = <-done: // one that heeds its context says more
		case <-time.After(callGrace):
			r.err = context.Cause(ctx)
		}
	}
	return r.value, late(ctx, most, r.err)
}

// callGrace is how long a call may go on after its context ended.
const callGrace = 100 * time.Millisecond

// late adds to an error of a call that its time was over.
func late(ctx context.Context, most time.Duration, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrCallOver) {
		return fmt.Errorf("no answer within %v: %w", most, err)
	}
	return err
}
