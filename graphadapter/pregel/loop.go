package pregel

// Status is where a [Loop] stands.
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
// use, and after a failure a new Loop on the same [Thread] continues where it stood.
type Loop struct {
	prog    *Program
	thread  *Thread
	opts    Options
	observe Observer
	root    *Loop
	queue   []*Task // the root's: tasks to hand out
	drain   string  // the root's: why the run is to stop, "" when it is not

	// Where this loop is nested; empty for the root.
	namespace string
	graph     []string
	nodes     []string
	keep      func(*Record)
	outer     *Loop
	within    *taskRun // outer's task that this loop is

	rec        *Record
	work       *Checkpoint // rec's checkpoint with writes from outside applied
	step, stop int
	before     breakpoints
	after      breakpoints
	resuming   *bool // what subgraphs of the first superstep are told
	replaying  bool
	askAgain   bool
	status     Status
	err        error
	parent     *Command
	tasks      []*taskRun
	open       int  // tasks that have not ended
	starting   bool // tick is not through yet
	pool       []Answer
	shown      *Checkpoint      // whose output channels were last shown
	output     map[string]Value // those of shown, once somebody asked
}

// Start begins a run of a thread. replay says that thread.Head was chosen by its id instead of being the newest: then
// the tasks after it run again, on a branch of their own. Errors leave the thread as it was.
func (p *Program) Start(thread *Thread, in Input, opts Options, replay bool, observe Observer) (*Loop, error) {
	l := &Loop{prog: p, thread: thread, opts: opts, observe: observe, rec: thread.Head, before: p.before, after: p.after, namespace: opts.Namespace}
	l.root = l
	l.keep = func(r *Record) { thread.Head = r }
	if opts.InterruptBefore != nil {
		l.before = p.breakpoints(opts.InterruptBefore)
	}
	if opts.InterruptAfter != nil {
		l.after = p.breakpoints(opts.InterruptAfter)
	}
	if in.Resume != nil && thread.Head != nil {
		l.askAgain = in.Resume.AskAgain
		if err := p.answer(thread, in.Resume); err != nil {
			return nil, err
		}
	}
	if in.Resume == nil {
		l.askAgain = true
	}
	l.replaying = replay && in.Resume == nil
	if err := l.begin(in, nil); err != nil {
		return nil, err
	}
	l.tick()
	l.settle()
	return l, nil
}

// Status returns where the run stands.
func (l *Loop) Status() Status { return l.status }

// Err returns why the run failed: a *NodeError, *RecursionError, *InvalidUpdateError or *ParentCommandError. Of a drained
// run it is a *DrainedError.
func (l *Loop) Err() error { return l.err }

// Output returns the output channels as last shown; nil when the run never had any.
func (l *Loop) Output() map[string]Value {
	if l.output == nil && l.shown != nil {
		l.output = l.prog.values(l.shown, l.prog.outputs)
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
	return ready
}

// Deliver takes in the outcome of a task that Ready handed out. A second outcome for the same task is ignored.
func (l *Loop) Deliver(t *Task, o Outcome) {
	if t.run == nil || t.run.ended || !t.run.running {
		return
	}
	t.loop.finish(t.run, o)
	t.loop.settle()
}

// settle goes on as far as possible without another outcome, and tells the parent when the run has ended.
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

// tick plans the next superstep and starts its tasks.
func (l *Loop) tick() {
	if l.step > l.stop {
		l.fail(&RecursionError{Graph: l.prog.Spec.Name, Limit: l.opts.RecursionLimit})
		return
	}
	planned := l.prog.plan(l.work, true)
	l.tickEvent(planned)
	if len(planned) == 0 {
		l.status = StatusDone
		return
	}
	if l.root.drain != "" {
		l.stopDrained()
		return
	}
	if l.before.some && l.news() && l.before.hit(planned) {
		l.hold()
		return
	}
	l.tasks = make([]*taskRun, len(planned))
	runs := make([]taskRun, len(planned))
	unknown := l.unknown(planned)
	for i, t := range planned {
		l.tasks[i] = &runs[i]
		l.enter(l.tasks[i], t, &unknown[i])
	}
	for _, tr := range l.tasks {
		if tr.rec.Handled {
			l.tasks = append(l.tasks, l.handlerOf(tr))
		}
	}
	l.open, l.starting = len(l.tasks), true
	for _, tr := range l.tasks {
		l.start(tr)
	}
	l.starting = false
}

// afterTick ends a superstep whose tasks have all ended: it is applied whole, or not at all.
func (l *Loop) afterTick() {
	l.sortHandlers()
	for _, tr := range l.tasks {
		if tr.err != nil {
			l.fail(tr.err)
			return
		}
	}
	for _, tr := range l.tasks {
		if tr.parent != nil {
			l.leave(tr)
			return
		}
	}
	if l.waits() {
		return
	}
	next, err := l.prog.apply(l.work, l.parts())
	if err != nil {
		l.fail(err)
		return
	}
	l.showValues(next)
	l.work, l.replaying = next, false
	l.save(SourceLoop)
	l.resuming, l.askAgain = nil, true
	if l.after.some && l.newsSince(next) && l.after.hit(taskList(l.tasks)) {
		l.hold()
	}
}

// waits stops the run when a subgraph was drained, when tasks wait for answers, or when a subgraph is at a breakpoint.
func (l *Loop) waits() bool {
	held, asked, drained := false, false, false
	for _, tr := range l.tasks {
		held, drained = held || tr.held, drained || tr.drained
		asked = asked || !tr.rec.Done && !tr.rec.Handled && len(tr.rec.Questions) > 0 && !tr.held
	}
	switch {
	case drained: // it was asked for; the questions stay open
		l.stopDrained()
	case asked:
		l.status = StatusWaiting
		l.showFinished()
	case held:
		l.showFinished()
		l.hold()
	}
	return asked || held || drained
}

// stopDrained stops the run between two supersteps.
func (l *Loop) stopDrained() {
	l.status, l.err = StatusDrained, &DrainedError{Graph: l.prog.Spec.Name, Reason: l.root.drain}
}

// parts are the finished tasks' writes in apply order. A failure that is handled belongs to its handler's part: the
// failed node has run, and wrote nothing.
func (l *Loop) parts() []applied {
	size := 0
	for _, tr := range l.tasks {
		size += len(tr.rec.Update) + len(tr.rec.Goto) + len(tr.rec.Routes) + len(l.prog.nodes[tr.task.node].static)
	}
	parts, all := make([]applied, 0, len(l.tasks)), make([]channelWrite, 0, size)
	for _, tr := range l.prog.inOrder(l.tasks) {
		if tr.rec.Done {
			if tr.of != nil {
				parts = append(parts, applied{node: tr.of.task.node})
			}
			from := len(all)
			all = l.prog.writes(all, tr.task.node, &tr.rec.Command, tr.rec.Routes)
			parts = append(parts, applied{tr.task.node, all[from:len(all):len(all)]})
		}
	}
	return parts
}

// news reports whether any channel changed since the last resume: only then does a breakpoint fire.
func (l *Loop) news() bool { return l.newsSince(l.work) }

func (l *Loop) newsSince(c *Checkpoint) bool {
	for ch, v := range c.versions {
		if c.interruptSeen == nil && v > 0 || c.interruptSeen != nil && v > c.interruptSeen[ch] {
			return true
		}
	}
	return false
}

// hold stops the run at a breakpoint; only the root tells.
func (l *Loop) hold() {
	l.status = StatusBreakpoint
	if l.root == l {
		l.emit(Event{Kind: EventInterrupt})
	}
}

func (l *Loop) fail(err error) { l.status, l.err = StatusFailed, err }

// leave ends a subgraph's run with a command to its parent; a root has none.
func (l *Loop) leave(tr *taskRun) {
	if l.root == l {
		l.fail(&ParentCommandError{Graph: l.prog.Spec.Name, Node: tr.task.Node, Command: tr.parent})
		return
	}
	l.status, l.parent = statusParent, tr.parent
}

// save makes the working checkpoint the thread's newest.
func (l *Loop) save(source Source) {
	parent := l.rec.Checkpoint
	l.thread.seq++
	l.prog.seal(l.work, parent, l.namespace, source, l.step, l.thread.seq)
	l.rec = &Record{Checkpoint: l.work, tasks: map[string]*TaskRecord{}}
	if l.root == l {
		l.rec.memory = l.thread.remembered()
	}
	l.keep(l.rec)
	l.emit(Event{Kind: EventCheckpoint, Checkpoint: l.rec})
	l.step++
}

func taskList(runs []*taskRun) []*Task {
	tasks := make([]*Task, len(runs))
	for i, tr := range runs {
		tasks[i] = tr.task
	}
	return tasks
}
