package graphtest

import (
	"encoding/json"
	"errors"
	"runtime"
	"slices"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
)

// tasks runs the loop as the workflow does in sync mode: each task by itself.
func (tr *trial) tasks() error {
	b := tr.newBatch()
	for {
		ready, err := tr.ready(b.running)
		if err != nil {
			return err
		}
		b.start(ready, segment.Suspicion{})
		if b.running == 0 {
			return nil
		}
		if err := b.deliver(); err != nil {
			return err
		}
	}
}

// batch runs tasks each by itself, until all of them have ended.
func (tr *trial) batch(tasks []*pregel.Task, suspect segment.Suspicion) error {
	b := tr.newBatch()
	b.start(tasks, suspect)
	for b.running > 0 {
		if err := b.deliver(); err != nil {
			return err
		}
	}
	return nil
}

// batch are tasks under way, each in an activity of its own.
type batch struct {
	of      *trial
	running int
	done    chan delivery
}

type delivery struct {
	task    *pregel.Task
	outcome pregel.Outcome
	err     error
}

func (tr *trial) newBatch() *batch { return &batch{of: tr, done: make(chan delivery)} }

func (b *batch) start(tasks []*pregel.Task, suspect segment.Suspicion) {
	for _, t := range tasks {
		b.running++
		go func() {
			o, err := b.of.activity(t, suspect.All || slices.Contains(suspect.Tasks, t.Key()))
			b.done <- delivery{t, o, err}
		}()
	}
}

// deliver gives the loop the next outcome. With an error nothing is under way any more.
func (b *batch) deliver() error {
	d := <-b.done
	b.running--
	if d.err == nil {
		b.of.loop.Deliver(d.task, d.outcome)
		return nil
	}
	for ; b.running > 0; b.running-- {
		<-b.done
	}
	return d.err
}

// ready are the tasks to run now. Where a run may be suspended, one that is to be is.
func (tr *trial) ready(running int) ([]*pregel.Task, error) {
	ready := tr.loop.Ready()
	if !tr.restore || running > 0 || len(ready) == 0 {
		return ready, nil
	}
	tr.loop.PutBack(ready...)
	suspended, err := tr.loop.Suspend()
	if err != nil {
		return nil, err
	}
	if tr.loop, err = tr.program.Restore(suspended, nil); err != nil {
		return nil, err
	}
	return tr.loop.Ready(), nil
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
