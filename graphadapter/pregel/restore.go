package pregel

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Restore goes on with a run that [Loop.Suspend] gave: what follows is what would have followed. Its first Ready hands
// out every task that was still to be started; no event comes twice: observe gets those that follow.
// p must be of the Spec that the run had. A value that is no suspended run of it is an error.
func (p *Program) Restore(v Value, observe Observer) (*Loop, error) {
	return restore(p, v, nil, observe)
}

// Restore is [Program.Restore] of what [SuspendLoop] gave. It may be called more than once.
func (s Suspended) Restore(p *Program, observe Observer) (*Loop, error) {
	return restore(p, s.text, s.long, observe)
}

// Thread is [Program.DecodeThread] of what [SuspendThread] gave. It may be called more than once.
func (s Suspended) Thread(p *Program) (*Thread, error) {
	in, err := readThread(p.Spec.Name, s.text)
	if err != nil {
		return nil, err
	}
	if err := putBack(in.checkpoints, s.long); err != nil {
		return nil, fmt.Errorf("graph %q: a suspended thread cannot be read: %w", p.Spec.Name, err)
	}
	return p.threadIn(in), nil
}

func restore(p *Program, v Value, long []Held, observe Observer) (*Loop, error) {
	in, err := p.readSuspended(v)
	if err == nil {
		err = putBack(in.checkpoints, long)
	}
	if err != nil {
		return nil, fmt.Errorf("graph %q: a suspended run cannot be restored: %w", p.Spec.Name, err)
	}
	return restored(p, in, observe)
}

// restored is a loop of its own: in may be restored again.
func restored(p *Program, in *suspendedJSON, observe Observer) (*Loop, error) {
	thread := p.threadIn(in.Thread)
	opts := in.Options
	opts.Namespace = in.Namespace
	l := p.loop(thread, opts, observe)
	l.drain = in.Drain
	err := l.in(&in.loopJSON, thread.Head)
	if err == nil {
		if in.Remembered != nil {
			l.rec.memory = rememberedIn(p, in.Remembered, thread.memory)
		}
		err = l.queueIn(in.Queue)
	}
	if err != nil {
		return nil, fmt.Errorf("graph %q: a suspended run cannot be restored: %w", p.Spec.Name, err)
	}
	return l, nil
}

func (p *Program) readSuspended(v Value) (*suspendedJSON, error) {
	if len(v) > 0 && v[0] == '"' {
		var text []byte
		if err := json.Unmarshal(v, &text); err != nil {
			return nil, err
		}
		v = text
	}
	in := &suspendedJSON{}
	if err := json.Unmarshal(v, in); err != nil {
		return nil, err
	}
	switch {
	case in.Format > suspendedFormat:
		return nil, fmt.Errorf("it has format %d, this worker understands up to %d: run a newer worker", in.Format, suspendedFormat)
	case in.Format < 1 || in.Thread == nil:
		return nil, fmt.Errorf("it is none")
	}
	return in, nil
}

// in puts a loop where it was. home is the record that is where the loop's own belongs.
func (l *Loop) in(in *loopJSON, home *Record) error {
	l.rec = home
	if in.Record != nil {
		l.rec = l.prog.recordIn(in.Record)
	}
	status := slices.Index(statusNames, in.Status)
	switch {
	case l.rec == nil:
		return fmt.Errorf("graph %q has no checkpoint", l.prog.Spec.Name)
	case status < 0:
		return fmt.Errorf("there is no status %q", in.Status)
	case l.within != nil && Status(status) != StatusRunning:
		return fmt.Errorf("node %q runs a graph that has ended", l.within.task.Node)
	}
	l.status, l.err, l.work = Status(status), errorIn(in.Error), l.prog.workIn(in.Work, l.rec.Checkpoint)
	l.step, l.stop = l.rec.Checkpoint.Step+1, in.Stop
	l.resuming, l.replaying, l.askAgain, l.pool = in.Resuming, in.Replaying, in.AskAgain, in.Pool
	l.output = in.Output
	if in.Shown {
		l.shown, l.output = l.work, nil
	}
	if l.status != StatusRunning {
		return nil
	}
	return l.tasksIn(in)
}

func (p *Program) workIn(in *workJSON, c *Checkpoint) *Checkpoint {
	switch {
	case in == nil:
		return c
	case in.Whole != nil:
		return p.checkpointIn(in.Whole)
	}
	work := c.next()
	work.Branch, work.interruptSeen = in.Branch, p.versionsIn(in.InterruptSeen)
	return work
}

// tasksIn plans the superstep anew, which gives the same tasks, and puts each where it was.
func (l *Loop) tasksIn(in *loopJSON) error {
	planned := l.prog.plan(l.work, true)
	if len(planned) != in.Planned {
		return fmt.Errorf("graph %q has %d tasks at step %d, not %d: it is another graph now",
			l.prog.Spec.Name, len(planned), l.step, in.Planned)
	}
	l.tasks = make([]*taskRun, 0, len(planned)+len(in.Runs))
	unknown := l.unknown(planned)
	for i, t := range planned {
		l.place(t)
		tr := &taskRun{at: i}
		l.bind(tr, t, &unknown[i])
		l.tasks = append(l.tasks, tr)
	}
	if err := l.handlersIn(in.Runs); err != nil {
		return err
	}
	if err := l.runsIn(in.Runs); err != nil {
		return err
	}
	for _, tr := range l.tasks {
		if !tr.ended {
			l.open++
		}
	}
	if l.open == 0 {
		return fmt.Errorf("graph %q runs, but has nothing to run at step %d", l.prog.Spec.Name, l.step)
	}
	return nil
}

// handlersIn makes the tasks of error handlers, after the planned tasks and in the order in which tasks failed.
func (l *Loop) handlersIn(runs []runJSON) error {
	planned := len(l.tasks)
	for i := range runs {
		of := runs[i].Of
		if of == nil {
			continue
		}
		if *of < 0 || *of >= planned || runs[i].At != len(l.tasks) {
			return fmt.Errorf("graph %q: a handler has no place", l.prog.Spec.Name)
		}
		failed := l.tasks[*of]
		if !failed.rec.Handled || failed.rec.Error == nil || failed.by != nil || l.prog.nodes[failed.task.node].handler == 0 {
			return fmt.Errorf("graph %q: task %q has no failure to handle", l.prog.Spec.Name, failed.task.Path)
		}
		h, t := l.handling(failed)
		l.bind(h, t, &TaskRecord{})
		l.tasks = append(l.tasks, h)
	}
	return nil
}

// runsIn puts each task where it was.
func (l *Loop) runsIn(runs []runJSON) error {
	next := 0
	for i, tr := range l.tasks {
		run := l.ownRun(tr, i)
		if next < len(runs) && runs[next].At == i {
			run = runs[next]
			next++
		}
		if err := l.runIn(tr, &run); err != nil {
			return fmt.Errorf("graph %q: task %q at step %d: %w", l.prog.Spec.Name, tr.task.Path, l.step, err)
		}
	}
	if next < len(runs) {
		return fmt.Errorf("graph %q has no task %d at step %d", l.prog.Spec.Name, runs[next].At, l.step)
	}
	return nil
}

func (l *Loop) runIn(tr *taskRun, run *runJSON) error {
	tr.ended, tr.attempts, tr.stopped, tr.drained = run.Ended, run.Attempts, run.Stopped, run.Drained
	tr.err, tr.failure, tr.parent = errorIn(run.Error), errorIn(run.Failure), run.Parent
	n := &l.prog.nodes[tr.task.node]
	switch {
	case run.Ended:
		return nil
	case tr.rec.over():
		return fmt.Errorf("it runs, and is finished")
	case run.Child != nil && n.sub == nil:
		return fmt.Errorf("it is no subgraph, and runs as one")
	case run.Child != nil:
		child := l.nested(tr)
		return child.in(run.Child, l.home(child, tr))
	}
	return l.readyIn(tr, run, n)
}

// readyIn makes a task one that is to be handed out.
func (l *Loop) readyIn(tr *taskRun, run *runJSON, n *node) error {
	switch {
	case tr.failure != nil && n.sub != nil:
		tr.task.Retry, tr.task.Attempt = AsNodeError(l.prog.Spec.Name, tr.task.Node, tr.failure), tr.attempts
	case run.Done != nil:
		tr.task.RouteOnly, tr.task.Done = true, *run.Done
	case tr.failure != nil || n.sub != nil || tr.task.node == 0:
		return fmt.Errorf("it has no function to call")
	}
	if run.Parked {
		if len(tr.rec.Claims) == 0 {
			return fmt.Errorf("it waits for a key, and claims none")
		}
		l.root.park(tr)
		return nil
	}
	if len(tr.rec.Claims) > 0 && !l.root.own(tr) {
		return fmt.Errorf("it claims a key that has another owner")
	}
	if run.Unseen < 0 || run.Unseen > len(tr.rec.Answers) {
		return fmt.Errorf("it has fewer answers than it has not seen")
	}
	if run.Unseen > 0 {
		seen := tr.rec.Answers[:len(tr.rec.Answers)-run.Unseen]
		tr.task.Answers = append(slices.Clip(seen), l.pool...)
	}
	tr.running = true
	return nil
}

// queueIn queues the tasks to be handed out in their order.
func (l *Loop) queueIn(order []int) error {
	tasks := l.waiting(nil)
	if l.status == StatusRunning && len(tasks) == 0 {
		return fmt.Errorf("it runs, but has nothing to run")
	}
	if order == nil {
		l.queue = tasks
		return nil
	}
	if len(order) != len(tasks) {
		return fmt.Errorf("%d tasks are to be handed out, %d have a place", len(tasks), len(order))
	}
	for _, at := range order {
		if at < 0 || at >= len(tasks) || tasks[at] == nil {
			return fmt.Errorf("the tasks to be handed out have no order")
		}
		l.queue, tasks[at] = append(l.queue, tasks[at]), nil
	}
	return nil
}
