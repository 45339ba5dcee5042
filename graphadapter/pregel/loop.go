package pregel

import "slices"

// Status says whether a [Loop] runs, waits or has ended.
type Status int

// The statuses of a loop.
const (
	// StatusRunning: tasks are handed out, or can be.
	StatusRunning Status = iota
	// StatusDone: nothing is left to run.
	StatusDone
	// StatusWaiting: every task that could finish has, and some wait for answers.
	StatusWaiting
	// StatusBreakpoint: a static interrupt holds the run.
	StatusBreakpoint
	// StatusDrained: the run was asked to stop, and has between two supersteps; Loop.Err says why.
	StatusDrained
	// StatusFailed: a task failed for good, or the superstep could not be applied; see Loop.Err.
	StatusFailed
	// statusParent: a node of a subgraph sent a command to the parent graph.
	statusParent
)

// Loop drives one run of one thread: superstep by superstep, subgraphs included. It hands out tasks by Ready, takes in
// their outcomes by Deliver, and does nothing else: who owns it decides where tasks run. It is not safe for concurrent
// use, and after a failure a new Loop on the same [Thread] continues from the newest checkpoint.
type Loop struct {
	prog     *Program
	thread   *Thread
	opts     Options
	observe  Observer
	root     *Loop
	queue    []*Task             // the root's: tasks to hand out
	underWay int                 // the root's: tasks that Ready handed out, and that have neither come back nor been put back
	owners   map[string]*taskRun // the root's: of thread-wide keys
	parked   []*taskRun          // the root's: tasks that wait for such a key, in task order
	drain    string              // the root's: why the run is to stop, "" when it is not

	// Where this loop is nested; empty for the root.
	namespace string
	graph     []string
	nodes     []string
	keep      func(*Record)
	outer     *Loop
	within    *taskRun // outer's task that this loop is
	forgetful *taskRun // the outermost task whose subgraph remembers nothing, and starts again from its input; nil for none

	rec        *Record
	work       *Checkpoint // rec's checkpoint with writes from outside applied
	step, stop int
	before     breakpoints
	after      breakpoints
	resuming   *bool // what subgraphs of the first superstep get as resuming; see begin
	replaying  bool
	askAgain   bool
	status     Status
	err        error
	parent     *Command
	tasks      []*taskRun
	applies    []applied      // room for parts
	writes     []channelWrite // likewise
	open       int            // tasks that have not ended
	starting   bool           // tick is not through yet
	pool       []Answer
	shown      *Checkpoint     // whose output channels were last shown
	output     map[string]Held // those of shown, once somebody asked
}

// Start begins a run of a thread. replay says that thread.Head was chosen by its id instead of being the newest: then
// the tasks after it run again, on a branch of their own. Errors leave the thread as it was.
func (p *Program) Start(thread *Thread, in Input, opts Options, replay bool, observe Observer) (*Loop, error) {
	l := p.loop(thread, opts, observe)
	passed := replay && thread.passed
	if thread.meter != nil {
		thread.meter.Refused = false // it may be asked again
	}
	l.askAgain = in.Resume == nil || in.Resume.AskAgain || passed
	l.replaying = replay && in.Resume == nil
	if in.Resume != nil && thread.Head != nil {
		answer := p.Answer
		if passed {
			answer = p.answerAgain
		}
		if err := answer(thread, in.Resume); err != nil {
			return nil, err
		}
	}
	l.rec = thread.Head
	if err := l.begin(in, nil); err != nil {
		return nil, err
	}
	if opts.Budget != nil {
		thread.budget(*opts.Budget)
		l.opts.Budget = nil // an answer may give more
	}
	l.tick()
	l.settle()
	return l, nil
}

// loop makes the root's loop, without a position.
func (p *Program) loop(thread *Thread, opts Options, observe Observer) *Loop {
	l := &Loop{prog: p, thread: thread, opts: opts, observe: observe, before: p.before, after: p.after,
		namespace: opts.Namespace}
	l.root = l
	l.keep = func(r *Record) { thread.Head = r }
	if opts.InterruptBefore != nil {
		l.before = p.breakpoints(opts.InterruptBefore)
	}
	if opts.InterruptAfter != nil {
		l.after = p.breakpoints(opts.InterruptAfter)
	}
	return l
}

// Status returns the run's status.
func (l *Loop) Status() Status { return l.status }

// Err returns why the run failed: a *NodeError, *RecursionError, *BudgetError, *InvalidUpdateError or *ParentCommandError. Of a drained
// run it is a *DrainedError.
func (l *Loop) Err() error { return l.err }

// Output returns the output channels as last shown; nil when the run never had any.
func (l *Loop) Output() map[string]Value { return whole(heldOutput(l)) }

// heldOutput is a loop's output as it is held.
func heldOutput(l *Loop) map[string]Held {
	if l.output == nil && l.shown != nil {
		l.output = l.prog.held(l.shown, l.prog.outputs)
	}
	return l.output
}

// Step returns the superstep that runs, or would run next.
func (l *Loop) Step() int { return l.step }

// Thread returns the thread that the loop drives.
func (l *Loop) Thread() *Thread { return l.thread }

// Drain asks the run to stop before its next superstep. The superstep under way ends and is saved; if nothing is left to
// run then, the run simply ends. (Section 7.5 of the semantics.)
func (l *Loop) Drain(reason string) {
	if l.root.drain == "" {
		l.root.drain = reason
	}
}

// Ready returns the tasks to start now, each once, in task order.
func (l *Loop) Ready() []*Task {
	ready := l.queue
	l.queue = nil
	for _, t := range ready {
		t.run.handedOut = true
	}
	l.underWay += len(ready)
	return ready
}

// Deliver takes in the outcome of a task that Ready handed out. A second outcome for the same task is ignored.
func (l *Loop) Deliver(t *Task, o Outcome) {
	if t.run == nil || t.run.ended || !t.run.running {
		return
	}
	t.loop.root.back(t)
	t.loop.finish(t.run, o)
	t.loop.root.unpark()
	t.loop.settle()
}

// settle goes on until another outcome is needed. When the run has ended, the loop around it takes the result.
func (l *Loop) settle() {
	if l.starting {
		return
	}
	for l.status == StatusRunning && l.open == 0 {
		l.afterTick()
		if l.status == StatusRunning {
			l.tick()
		}
	}
	if l.status != StatusRunning && l.within != nil && l.within.child == l {
		l.outer.finishChild(l.within)
		l.outer.settle()
	}
}

// PutBack takes back tasks that Ready handed out and nobody has started. They are handed out again by the next Ready,
// before any others and in the order given. Tasks that have come back already, and those of other loops, are left out.
func (l *Loop) PutBack(tasks ...*Task) {
	var put []*Task
	for _, t := range tasks {
		if t.run != nil && t.run.handedOut && t.loop.root == l.root {
			t.run.handedOut = false
			put = append(put, t)
		}
	}
	l.root.underWay -= len(put)
	l.root.queue = append(put, l.root.queue...)
}

// back notes that the outcome of a task is here.
func (l *Loop) back(t *Task) {
	if t.run.handedOut {
		t.run.handedOut = false
		l.underWay--
		return
	}
	l.queue = slices.DeleteFunc(l.queue, func(queued *Task) bool { return queued == t })
}

// Quiet reports whether nothing that was handed out is under way: every such task has come back, or was put back.
func (l *Loop) Quiet() bool { return l.root.underWay == 0 }

// IsOnly reports whether the task has been handed out and no other is under way or waits to be.
func (l *Loop) IsOnly(t *Task) bool {
	return t.run != nil && t.run.handedOut && l.root.underWay == 1 && len(l.root.queue) == 0
}
