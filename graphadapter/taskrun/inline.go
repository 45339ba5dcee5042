package taskrun

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

// resumer takes the result of a node whose caller cannot take it, because the node has kept the caller's goroutine. resume
// is called at most once, on another goroutine.
type resumer interface{ resume(result) }

// inlineRun is a node under way on its caller's goroutine. The zero value is no node.
type inlineRun struct {
	mu    sync.Mutex
	ctx   context.Context
	next  resumer // nil before it has one, and once somebody goes on
	grace *time.Timer
}

func (s *inlineRun) begin(ctx context.Context, next resumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.next = ctx, next
}

// wait is called when the node's context is done. A node that has not returned after abandonAfter is left behind, and the
// resumer takes over.
func (s *inlineRun) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil || s.grace != nil {
		return
	}
	s.grace = time.AfterFunc(abandonAfter, func() {
		if next, ok := s.goOn(); ok {
			next.resume(result{err: context.Cause(s.ctx), left: true})
		}
	})
}

// back reports whether the node has returned before the resumer took over.
func (s *inlineRun) back() bool {
	_, first := s.goOn()
	if s.grace != nil { // nobody sets it any more
		s.grace.Stop()
	}
	return first
}

// goOn reports whether the caller is the first to go on with the task: either the node's own goroutine or the resumer does.
func (s *inlineRun) goOn() (next resumer, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, s.next = s.next, nil
	return next, next != nil
}

// deadlineWatch tells the nodes that run inline when the context of all of them is done. One watch serves a whole superstep.
type deadlineWatch struct {
	end func() bool // ends the watch

	mu    sync.Mutex
	over  bool // the context is done
	nodes map[*inlineRun]struct{}
}

func watchDeadline(ctx context.Context) *deadlineWatch {
	v := &deadlineWatch{nodes: map[*inlineRun]struct{}{}}
	v.end = context.AfterFunc(ctx, v.done)
	return v
}

func (v *deadlineWatch) done() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	for s := range v.nodes {
		s.wait()
	}
}

func (v *deadlineWatch) add(s *inlineRun) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.nodes[s] = struct{}{}
	if v.over {
		s.wait()
	}
}

func (v *deadlineWatch) remove(s *inlineRun) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.nodes, s)
}
