package graphadapter

import (
	"context"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// abandonAfter is how long a node may go on after its context is done before the attempt ends without it.
const abandonAfter = 5 * time.Second

// lane is a goroutine that runs nodes, one after the other. Where tasks run one at a time a new goroutine with a new stack
// for each would cost more than all else of an attempt. A node that does not come back in time, or ends its goroutine,
// takes it along: the next one is given another. The zero value has none yet; of a nil lane every node has its own.
type lane struct {
	work chan work // nil while there is no goroutine
	done chan result
}

// work is a node to run.
type work struct {
	ctx context.Context
	run *TaskRun
}

// result is what the node's goroutine comes back with.
type result struct {
	command pregel.Command
	routes  []pregel.Target
	cached  bool
	err     error
	// left says that the node did not come back in time.
	left bool
	// gone says that it ended its goroutine.
	gone bool
}

// run runs a node and its branches, and waits for them a little longer than ctx.
func (l *lane) run(ctx context.Context, t *TaskRun) result {
	if l == nil {
		done := make(chan result, 1)
		go func() {
			enoughStack(0)
			t.execute(ctx, done)
		}()
		return await(ctx, done)
	}
	if l.work == nil {
		l.work, l.done = make(chan work), make(chan result, 1)
		go serveLane(l.work, l.done)
	}
	l.work <- work{ctx, t}
	r := await(ctx, l.done)
	if r.left || r.gone {
		l.end()
	}
	return r
}

// end ends the goroutine, as soon as the node that it may run comes back.
func (l *lane) end() {
	if l.work != nil {
		close(l.work)
		l.work, l.done = nil, nil
	}
}

// serveLane runs nodes until there are no more.
func serveLane(all <-chan work, done chan<- result) {
	enoughStack(0)
	for w := range all {
		w.run.execute(w.ctx, done)
	}
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

// await waits for the node, and a little longer than its context.
func await(ctx context.Context, done <-chan result) result {
	select {
	case r := <-done:
		return r
	case <-ctx.Done():
	}
	grace := time.NewTimer(abandonAfter)
	defer grace.Stop()
	select {
	case r := <-done:
		return r
	case <-grace.C:
		return result{err: context.Cause(ctx), left: true}
	}
}

// execute runs node and branches, and always sends one result, also when the node ends its goroutine.
func (t *TaskRun) execute(ctx context.Context, done chan<- result) {
	r := result{err: &PanicError{Message: "the node ended its goroutine (runtime.Goexit)"}, gone: true}
	defer func() { done <- r }()
	r = t.result(t.in(ctx))
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
