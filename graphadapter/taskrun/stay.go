package taskrun

import (
	"context"
	"sync"
	"time"

	"superstep.dev/graphadapter"
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

// heir goes on with the result of a node that has kept the goroutine which it was called on. It is told at most once, on
// another goroutine.
type heir interface{ inherit(result) }

// stay runs node and branches on the goroutine of its caller: to give each node one of its own would cost more than all
// else of an attempt. The price is that a node which does not come back soon after its context, ctx, is done, or which ends
// its goroutine, takes that along. Then the heir goes on with the result, and stay says that its caller does not (here is
// false), if it comes back at all. over watches over the context that ctx was made of; nil watches over ctx itself.
func (t *TaskRun) stay(ctx context.Context, next heir, over *vigil) (r result, here bool) {
	s := &t.stayed
	s.begin(ctx, next)
	if over == nil {
		over = watchOver(ctx)
		defer over.end()
	}
	over.add(s)
	if ctx.Err() != nil { // a bound of the attempt's own was over before there was a node to wait for
		s.wait()
	}
	came := false
	defer func() {
		over.remove(s)
		panicked := recover()
		switch here = s.back(); {
		case panicked != nil:
			r = result{err: graphadapter.NewPanicError(panicked)}
		case here && !came:
			here = false
			go next.inherit(result{err: &graphadapter.PanicError{Message: "the node ended its goroutine (runtime.Goexit)"}})
		}
	}()
	r = t.result(t.in(ctx))
	came = true
	return r, here
}

// stayed is a node that has the goroutine of its caller. The zero value has none.
type stayed struct {
	mu    sync.Mutex
	ctx   context.Context
	next  heir // nil before it has one, and once somebody goes on
	grace *time.Timer
}

func (s *stayed) begin(ctx context.Context, next heir) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.next = ctx, next
}

// wait has the heir go on unless the node comes back soon: its context is done.
func (s *stayed) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil || s.grace != nil {
		return
	}
	s.grace = time.AfterFunc(abandonAfter, func() {
		if next, ok := s.goOn(); ok {
			next.inherit(result{err: context.Cause(s.ctx), left: true})
		}
	})
}

// back reports whether the node is back before its heir went on.
func (s *stayed) back() bool {
	_, first := s.goOn()
	if s.grace != nil { // nobody sets it any more
		s.grace.Stop()
	}
	return first
}

// goOn reports whether nobody has gone on yet; the caller does.
func (s *stayed) goOn() (next heir, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, s.next = s.next, nil
	return next, next != nil
}

// vigil watches over the nodes that stay on their callers' goroutines until a context is done.
type vigil struct {
	end func() bool // ends the watch

	mu    sync.Mutex
	over  bool // the context is done
	stays map[*stayed]struct{}
}

func watchOver(ctx context.Context) *vigil {
	v := &vigil{stays: map[*stayed]struct{}{}}
	v.end = context.AfterFunc(ctx, v.done)
	return v
}

func (v *vigil) done() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	for s := range v.stays {
		s.wait()
	}
}

func (v *vigil) add(s *stayed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stays[s] = struct{}{}
	if v.over {
		s.wait()
	}
}

func (v *vigil) remove(s *stayed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.stays, s)
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
		err = graphadapter.ErrYielded
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
