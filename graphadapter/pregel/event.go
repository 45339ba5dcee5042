package pregel

// EventKind names what an [Event] reports.
type EventKind string

// The events of a run, in LangGraph's order: the tasks of a superstep start, each reports its update and its end, then
// the values after the superstep.
const (
	// EventValues: Values are the output channels, after a superstep that wrote one, and once when a run continues.
	EventValues EventKind = "values"
	// EventTaskStart: Task is about to run (or was already finished by an earlier run).
	EventTaskStart EventKind = "task"
	// EventUpdate: Task finished; Writes are its state writes. Cached when an earlier run finished it, or when they come
	// from a cache: then no EventTaskEnd follows. With Error it failed, after an answer: LangGraph shows an update of nothing.
	EventUpdate EventKind = "update"
	// EventTaskEnd: Task ended, with Writes, or with Questions, or with Error.
	EventTaskEnd EventKind = "task_result"
	// EventInterrupt: Task asked Questions; without a Task, a static breakpoint was reached.
	EventInterrupt EventKind = "interrupt"
	// EventCustom: Task emitted Value.
	EventCustom EventKind = "custom"
	// EventMessage: Task emitted Value, a message or a piece of one.
	EventMessage EventKind = "message"
	// EventReset: Task is at its attempt number Attempt; what its earlier attempts emitted is void.
	EventReset EventKind = "reset"
	// EventLedger: Task came back with a ledger, Value, whatever its ending was.
	EventLedger EventKind = "ledger"
	// EventCheckpoint: Checkpoint was saved.
	EventCheckpoint EventKind = "checkpoint"
	// EventTick: the loop looked at Checkpoint for what to run next, which Planned says; nothing at a run's end. It comes
	// once for each checkpoint that a run goes on from or stops at, also for one that an earlier run saved.
	EventTick EventKind = "tick"
)

// Event is one observation of a run. Which fields are set depends on Kind.
type Event struct {
	Kind EventKind
	// Namespace is the graph's namespace, Nodes the names of the nodes it is nested in, outermost first.
	Namespace  string
	Nodes      []string
	Step       int
	Task       *Task
	Values     func() map[string]Value // made when it is called, at any time; a run that nobody follows has no use for them
	Writes     []Write
	Questions  []Question
	Error      *NodeError
	Value      Value
	Cached     bool
	Attempt    int
	Checkpoint *Record
	// Work is the state that an EventTick or a task's EventInterrupt found; see [Program.StateOf] and [Program.OutputOf].
	Work    *Checkpoint
	Planned []Planned
}

// Planned is one task that is about to run, with what is known of it: a run that goes on finds tasks that have finished,
// asked or failed before.
type Planned struct {
	Task  *Task
	Known TaskRecord
}

// Observer is called with the events of a run, in order, on the goroutine that drives the loop. It must not call back.
type Observer func(Event)

func (l *Loop) values(c *Checkpoint) {
	l.shown, l.output = c, nil
	if l.observe != nil {
		prog := l.prog
		l.emit(Event{Kind: EventValues, Values: func() map[string]Value { return prog.OutputOf(c) }})
	}
}

// taskEvent reports a task with its record's writes.
func (l *Loop) taskEvent(kind EventKind, tr *taskRun) {
	if l.observe == nil {
		return
	}
	e := Event{Kind: kind, Task: tr.task}
	if kind != EventTaskStart {
		e.Writes = tr.rec.Update
	}
	l.emit(e)
}

// emit tells the observer; the hidden entry is no news to anyone.
func (l *Loop) emit(e Event) {
	if l.observe == nil || e.Task != nil && e.Task.node == 0 {
		return
	}
	e.Namespace, e.Nodes, e.Step = l.namespace, l.nodes, l.step
	l.observe(e)
}
