package graphadapter

import (
	"context"
	"sync"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// abandonAfter is how long a node may go on after its context is done before the attempt ends without it.
const abandonAfter = 5 * time.Second

// result is what a node comes back with.
type result struct {
	command pregel.Command
	routes  []pregel.Target
	cached  bool
	err     error
	// left says that the node did not come back in time.
	left bool
}

// elsewhere goes on with the result of a node that has kept the goroutine which it was called on. It is called at most
// once, on another goroutine.
type elsewhere func(result)

// stay runs node and branches on the goroutine of its caller: to give each node one of its own would cost more than all
// else of an attempt. The price is that a node which does not come back soon after its context is done, or which ends its
// goroutine, takes that along. Then others go on with the result, elsewhere, and stay says that its caller does not (here
// is false), if it comes back at all.
func (t *TaskRun) stay(ctx context.Context, others elsewhere) (r result, here bool) {
	s := stayed{others: others}
	stop := context.AfterFunc(ctx, func() { s.wait(ctx) })
	came := false
	defer func() {
		stop()
		panicked := recover()
		switch here = s.back(); {
		case panicked != nil:
			r = result{err: newPanicError(panicked)}
		case here && !came:
			here = false
			go others(result{err: &PanicError{Message: "the node ended its goroutine (runtime.Goexit)"}})
		}
	}()
	r = t.result(t.in(ctx))
	came = true
	return r, here
}

// stayed is a node that has the goroutine of its caller.
type stayed struct {
	others elsewhere

	mu    sync.Mutex
	over  bool // somebody goes on
	grace *time.Timer
}

// wait has others go on unless the node comes back soon: its context, ctx, is done.
func (s *stayed) wait(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.grace = time.AfterFunc(abandonAfter, func() {
		if s.goOn() {
			s.others(result{err: context.Cause(ctx), left: true})
		}
	})
}

// back reports whether the node is back before others went on.
func (s *stayed) back() bool {
	first := s.goOn()
	if s.grace != nil { // nobody sets it any more
		s.grace.Stop()
	}
	return first
}

// goOn reports whether nobody has gone on yet; the caller does.
func (s *stayed) goOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.over
	s.over = true
	return first
}

// result runs node and branches, or takes what is kept of an equal input.
func (t *TaskRun) result(ctx context.Context) (r result) {
	key, keeps := t.cacheKey()
	if keeps {
		if kept, ok := t.reuse(ctx, key); ok {
			return result{command: kept.Command, routes: kept.Routes, cached: true}
		}
	}
	command, err := t.runNode(ctx)
	t.settle()
	if err == nil && t.isYielding() {
		err = ErrYielded
	}
	if err == nil && !t.waits() {
		r.command = command
		r.routes, err = t.route(ctx, command)
	}
	r.err = err
	if keeps && err == nil && !t.waits() {
		t.keepResult(ctx, key, command, r.routes)
	}
	return r
}

// enoughStack gives a new goroutine the stack that most nodes need at once. Otherwise it grows in several steps, each of
// which copies what is on it: more work than all else that an attempt costs.
//
//go:noinline
func enoughStack(at int) byte {
	var room [8 << 10]byte
	room[at]++ // without a use there is no room
	return room[len(room)-1-at]
}
