package graphtest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"math"
	"sync/atomic"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// serve makes the outside what an execution's effects reach.
func (o *outside) serve(x *execution) *taskrun.Outside {
	return &taskrun.Outside{Wait: o.wait, Effect: func(e graphadapter.Effect) graphadapter.Effect { return o.watched(x, e) }}
}

// watched is an effect with points around its calls.
func (o *outside) watched(x *execution, e graphadapter.Effect) graphadapter.Effect {
	if standIn, ok := o.settings.effects[e.Name]; ok && o.settings.stubbed[e.Name] {
		e.Do = standIn.Do
	}
	do, lookup, name := e.Do, e.Lookup, pointName(e.Name)
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		what := fmt.Sprintf("effect.%s.%s", name, shortKey(key))
		late, sent := x.point(what+".late"), x.point(what+".sent")
		if x.of.crashes.next(x.process, late) {
			o.fly(func() { _, _ = o.call(context.WithoutCancel(ctx), e.Name, e.Target, do, key, params) })
		}
		x.process.at(late)
		x.calls(e.Name, key)
		if !x.of.crashes.alive(x.process, o.begin) {
			runtime.Goexit()
		}
		defer o.end()
		receipt, err := o.call(ctx, e.Name, e.Target, do, key, params)
		x.process.at(sent)
		if err == nil {
			x.replied(e.Name, key)
		}
		return receipt, err
	}
	if lookup != nil {
		e.Lookup = func(ctx context.Context, key string, params pregel.Value) (graphadapter.Finding, error) {
			x.at(fmt.Sprintf("effect.%s.%s.lookup", name, shortKey(key)))
			if o.own {
				return lookup(ctx, key, params)
			}
			return o.find(e.Name, key), nil
		}
	}
	return e
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
