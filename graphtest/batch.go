package graphtest

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
)

// batch drives the loop with each task in an activity of its own, until a superstep begins at which the batch is to stop.
// It is the taskrun.Runner and the taskrun.Guard of that.
type batch struct {
	*trial
	suspect segment.Suspicion
	stops   bool // before the next superstep that begins

	mu      sync.Mutex
	running int
	begun   bool
	err     error // why the run cannot go on
}

// tasks runs the loop as the workflow does in sync mode: each task by itself.
func (tr *trial) tasks() error {
	for {
		err := tr.batch(segment.Suspicion{}, tr.restore)
		if err != nil || !tr.restore || tr.loop.Status() != pregel.StatusRunning {
			return err
		}
		if err := tr.restored(); err != nil {
			return err
		}
	}
}

// restored goes on with the loop as it is after it was stored.
func (tr *trial) restored() error {
	suspended, err := tr.loop.Suspend()
	if err == nil {
		tr.loop, err = tr.program.Restore(suspended, nil)
	}
	return err
}

func (tr *trial) batch(suspect segment.Suspicion, stops bool) error {
	b := &batch{trial: tr, suspect: suspect, stops: stops}
	d := taskrun.NewDriver(tr.program, tr.loop, graphadapter.RunOptions{}, b, b)
	defer d.Close()
	_ = d.Drive(tr.ctx) // the run is not held here: there is no gate
	tr.loop.PutBack(d.Queue()...)
	return b.err
}

// Root implements taskrun.Runner.
func (b *batch) Root() *graphadapter.Graph { return b.graph }

// Begin implements taskrun.Runner: the task runs in its activity.
func (b *batch) Begin(t *pregel.Task, _ *taskrun.Env) *pregel.Outcome {
	o, err := b.activity(t, b.suspect.All || slices.Contains(b.suspect.Tasks, t.Key()))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = errors.Join(b.err, err)
	return &o
}

// Open implements taskrun.Guard.
func (b *batch) Open(_ context.Context, queue []*pregel.Task, _ bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || b.stops && b.begun && b.running == 0 {
		return false
	}
	b.begun = b.begun || len(queue) > 0
	b.running += len(queue)
	return true
}

// Arrived implements taskrun.Guard.
func (b *batch) Arrived(_ *pregel.Task, o pregel.Outcome) (pregel.Outcome, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	return o, b.err == nil
}

// errLost says that a worker crashed before the execution ended.
var errLost = errors.New("the worker is lost")

// executed runs an execution in goroutines of the worker, and returns errLost when that crashed.
func executed[R any](w *process, run func() (R, error)) (out R, err error) {
	done := make(chan struct{})
	err = errLost
	go func() {
		defer close(done)
		r, failed := run()
		if w.of.crashes.isDead(w) {
			runtime.Goexit()
		}
		out, err = r, failed
	}()
	<-done
	return out, err
}

// sent is a value as it arrives: whatever is not JSON is gone.
func sent[V any](v V) (V, error) {
	var out V
	raw, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(raw, &out)
}
