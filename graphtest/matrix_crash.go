package graphtest

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/taskrun"
)

// process is a worker that runs tasks until it crashes. What its goroutines do then has no effect: each of them ends at
// the next point that it comes to.
type process struct {
	of     *trial
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// crashes are what one run is to crash at, and the points that it comes to. It is safe for concurrent use.
type crashes struct {
	mu   sync.Mutex
	left []string // still to come, in order
	dead map[*process]bool
	seen []string // each point once, since the last crash
	met  map[string]bool
}

// at is a point: the worker crashes there if it is told to. It does not return in a worker that has crashed.
func (w *process) at(point string) {
	if w.crash(point) {
		runtime.Goexit()
	}
}

// crash is at for goroutines that have to come back: it reports whether the worker is no more.
func (w *process) crash(point string) bool {
	dead := w.of.crashes.reach(w, point)
	if dead {
		w.cancel(ErrCrashed)
	}
	return dead
}

// reach notes that a worker came to a point, and reports whether it is no more.
func (c *crashes) reach(w *process, point string) (dead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead[w] {
		return true
	}
	if len(c.left) > 0 && c.left[0] == point {
		c.left, c.dead[w] = c.left[1:], true
		c.seen, c.met = nil, map[string]bool{}
		return true
	}
	if !c.met[point] {
		c.met[point] = true
		c.seen = append(c.seen, point)
	}
	return false
}

// alive does something unless the worker has crashed, and reports whether it did.
func (c *crashes) alive(w *process, do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead[w] {
		return false
	}
	do()
	return true
}

// next reports whether the worker is to crash at that point, without being there.
func (c *crashes) next(w *process, point string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead[w] && len(c.left) > 0 && c.left[0] == point
}

func (c *crashes) isDead(w *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead[w]
}

// unused are the points that the run was to crash at and did not come to.
func (c *crashes) unused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// execution is one execution of one task by a worker.
type execution struct {
	*process
	task string // its part of the points' names

	mu      sync.Mutex
	times   map[string]int
	wrote   map[string]string // effects that replied, by their keys
	journal taskrun.Journal
}

func (w *process) execution(task string) *execution {
	return &execution{process: w, task: pointName(task), times: map[string]int{}, wrote: map[string]string{}}
}

// calls notes that an effect is about to call: its intent must be recorded.
func (x *execution) calls(effect, key string) {
	if e, ok := x.journal.Entry(key); !ok || e.State != ledger.StateIntent {
		x.of.wrong("the effect %q of %s was called before its intent was recorded", effect, x.task)
	}
}

// replied notes that an effect has its receipt.
func (x *execution) replied(effect, key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wrote[key] = effect
}

// finished holds a task that ended to having recorded its receipts.
func (x *execution) finished() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, effect := range x.wrote {
		if e, ok := x.journal.Entry(key); !ok || e.State == ledger.StateIntent {
			x.of.wrong("the effect %q of %s has a receipt that is not recorded", effect, x.task)
		}
	}
}

// pointName makes a task's key a name without what separates names of tests.
func pointName(key string) string {
	return strings.NewReplacer("/", ".", "|", "-", ":", ".", "!", ".", "+", "-").Replace(key)
}

// shortKey is what of a call's key is in a point's name.
func shortKey(key string) string { return key[:min(6, len(key))] }

// at is a point of the task. One that an execution comes to again has a number.
func (x *execution) at(what string) { x.process.at(x.point(what)) }

func (x *execution) point(what string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.times[what]++
	if n := x.times[what]; n > 1 {
		what = fmt.Sprintf("%s-%d", what, n)
	}
	return x.task + "." + what
}

// recorded is a task's journal as one execution reaches it, with points before and after each record is durable.
type recorded struct {
	taskrun.Journal
	x *execution
	// before are the keys of the calls that were durable when the execution began.
	before map[string]bool
	// left counts the records that there is room for: at the one behind them the task is given back.
	left *atomic.Int32
}

func (x *execution) record(j taskrun.Journal) recorded {
	x.journal = j
	r := recorded{Journal: j, x: x, before: map[string]bool{}, left: &atomic.Int32{}}
	r.left.Store(math.MaxInt32)
	if x.of.yield {
		r.left.Store(1)
	}
	for _, e := range j.Entries() {
		r.before[e.Key] = e.Kind == ledger.KindTask && e.State == ledger.StateCommitted
	}
	return r
}

// Record implements taskrun.Journal.
func (r recorded) Record(ctx context.Context, e ledger.Entry) error {
	if r.before[e.Key] {
		r.x.of.wrong("the Task %q of %s ran again although its result was stored", e.Name, r.x.task)
	}
	what := fmt.Sprintf("%s.%s.%s", e.Kind, e.Name, shortKey(e.Key))
	if e.Kind == ledger.KindEffect {
		what += "." + string(e.State)
	}
	r.x.at(pointName(what) + ".before")
	full := r.left.Add(-1) < 0
	if full && e.Outside() && e.State == ledger.StateIntent {
		return graphadapter.ErrYielded
	}
	if err := r.Journal.Record(ctx, e); err != nil {
		return err
	}
	r.x.at(pointName(what) + ".after")
	if full {
		return graphadapter.ErrYielded
	}
	return nil
}
