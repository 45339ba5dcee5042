package pregel

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Input starts or continues a run of a thread. Exactly one of its forms is used: a Value is new input (it abandons open
// questions, as in LangGraph), a Resume or Control continues, and the zero Input continues without anything new.
type Input struct {
	// Value is new input: a JSON object of the graph's input channels. The empty object is input too.
	Value Value `json:"value,omitempty"`
	// Resume answers open questions.
	Resume *Resume `json:"resume,omitempty"`
	// Control writes and routes from outside; it adds to what the thread was about to do.
	Control *Command `json:"control,omitempty"`
}

// Resume answers questions: one Scalar, or values by question id (any subset; unknown ids answer nothing). A Scalar
// follows LangGraph's rule, which lets it through while one task of the root waits; give ids where it matters.
type Resume struct {
	Scalar Value            `json:"scalar,omitempty"`
	ByID   map[string]Value `json:"by_id,omitempty"`
	By     string           `json:"by,omitempty"`
	// Answers are values by question id with who gave each.
	Answers []Answer `json:"answers,omitempty"`
	// AskAgain runs every waiting task again, answered or not, as LangGraph does; without it a task whose questions
	// got no answer goes on waiting and costs nothing.
	AskAgain bool `json:"ask_again,omitempty"`
}

// Options bound one run.
type Options struct {
	// RecursionLimit is LangGraph's: a run of fresh input may execute that many supersteps and fails at the next; it
	// must be at least 1. A chain of N nodes needs N+1.
	RecursionLimit int `json:"recursion_limit"`
	// InterruptBefore and InterruptAfter replace the Spec's breakpoints when not nil.
	InterruptBefore []string `json:"interrupt_before,omitzero"`
	InterruptAfter  []string `json:"interrupt_after,omitzero"`
	// Branch makes a replay begin with a checkpoint of its own in any case. LangGraph makes none at a checkpoint of an
	// update or a fork; what such a replay asks before its next checkpoint can be answered only there.
	Branch bool `json:"branch,omitempty"`
	// Budget is the thread's from now on, in place of the one that it has; nil leaves that. See [Meter].
	Budget *Amounts `json:"budget,omitempty"`
	// Namespace is that of the run's root graph; "" except for a graph called from a node's code, whose tasks must not
	// have the names of its caller's.
	Namespace string `json:"-"`
}

// begin takes in what a run starts with: section 5.2 of the semantics. resuming is what a parent tells its subgraph.
func (l *Loop) begin(in Input, resuming *bool) error {
	if l.rec == nil {
		l.rec = &Record{Checkpoint: l.prog.emptyCheckpoint()}
	}
	l.work = l.prog.loaded(l.rec.Checkpoint)
	l.work.Branch = l.rec.branch()
	l.prog.forgetUntracked(l.rec)
	if l.outer != nil {
		l.follow()
	}
	l.step = l.rec.Checkpoint.Step + 1
	l.stop = l.step + l.opts.RecursionLimit + 1
	fresh := l.work.fresh()
	continues := !fresh && (resuming == nil && in.Value == nil || resuming != nil && *resuming && !l.rec.anew)
	value, err := l.inputValue(in, fresh)
	if err != nil {
		return err
	}
	if err := l.takeControl(in.Control, continues && l.forks()); err != nil {
		return err
	}
	switch {
	case continues:
		l.continueRun()
	case value != nil:
		if err := l.takeInput(value); err != nil {
			return err
		}
	default:
		return &EmptyInputError{Graph: l.prog.Spec.Name}
	}
	if l.root == l {
		again := continues && !l.replaying // a replay's subgraphs take their input anew
		l.resuming = &again
	} else if resuming != nil {
		l.resuming = resuming
	}
	return nil
}

// inputValue returns what goes into the input channel. A command that finds an empty thread is input as well: its writes
// then take effect twice, as in LangGraph.
func (l *Loop) inputValue(in Input, fresh bool) (Value, error) {
	if fresh && (in.Control != nil || in.Resume != nil) {
		wrapped, err := json.Marshal(map[string]*Command{commandKey: in.Control})
		return wrapped, err
	}
	if in.Value == nil {
		return nil, nil
	}
	v, err := compact(in.Value)
	if err != nil {
		return nil, &InvalidUpdateError{Graph: l.prog.Spec.Name, Message: "the input is not JSON", Cause: err}
	}
	if IsNull(v) {
		return nil, nil
	}
	return v, l.prog.checkReserved(v)
}

// follow gives a subgraph's tasks the branch of the graph around it in their keys. The ids of questions that they have asked
// stay as they are.
func (l *Loop) follow() {
	branch := l.outer.work.Branch
	if branch == l.rec.branch() {
		return
	}
	asked := l.rec.askedBranch()
	l.rec = l.rec.clone()
	l.rec.line, l.rec.asked = &branch, &asked
	l.keep(l.rec)
	l.work.Branch = branch
}

// takeControl applies a new command together with the commands that wait on the loaded checkpoint. The new command joins the
// others on record, unless the run forks: the earlier checkpoint stays as it was then. A command that conflicts with one before
// it is refused.
func (l *Loop) takeControl(c *Command, forks bool) error {
	before, err := l.rec.control, error(nil)
	if c != nil && (len(c.Update) > 0 || len(c.Goto) > 0) {
		named := *c
		named.Update = namesIn(l.thread.origin, "command", l.space(), l.work.Branch, itoa(l.thread.seq), itoa(len(before))).
			complete(l.prog, c.Update)
		l.rec.control = append(slices.Clone(before), named)
		err = l.applyCommands(l.rec.control)
	} else {
		err = l.applyControl()
	}
	if err != nil || forks {
		l.rec.control = before
	}
	return err
}

// forgetUntracked drops what finished tasks and commands of an earlier run wrote to untracked channels.
func (p *Program) forgetUntracked(r *Record) {
	for i := range p.state {
		if p.channels[i].rule == ruleUntracked {
			r.control = trackedCommands(p, r.control)
			for _, e := range r.tasks.sorted() {
				*e.rec = *p.tracked(e.rec)
			}
			return
		}
	}
}

// applyControl applies the commands that wait on the loaded checkpoint, as the writes of one superstep. They clear nothing.
// Commands that have come to conflict, because the graph's channels are others by now, count one after the other.
func (l *Loop) applyControl() error {
	commands := trackedCommands(l.prog, l.rec.control)
	err := l.applyCommands(commands)
	if err == nil || len(commands) == 1 {
		return err
	}
	for i := range commands {
		if err := l.applyCommands(commands[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) applyCommands(commands []Command) error {
	if len(commands) == 0 {
		return nil
	}
	var writes []channelWrite
	for _, c := range commands {
		writes = l.prog.stateWrites(l.prog.targets(writes, c.Goto), c.Update)
	}
	updated, had := l.work.updated, l.work.hasUpdated
	next, err := l.prog.apply(l.work, []applied{{node: -1, writes: writes}})
	if err != nil {
		return err
	}
	l.work = next
	if had {
		next.updated = append(next.updated, updated...)
		slices.Sort(next.updated)
		next.updated = slices.Compact(next.updated)
	}
	next.hasUpdated = had
	return nil
}

// continueRun goes on from the loaded checkpoint: breakpoints passed so far do not fire again, and a replay gets a
// branch of its own.
func (l *Loop) continueRun() {
	l.work.interruptSeen = slices.Clone(l.work.versions)
	if l.replaying {
		l.fork()
	}
	l.values(l.work)
}

// forks reports whether the replayed checkpoint is made a new one. One made by an update or a fork already is one, while
// no superstep has followed it.
func (l *Loop) forks() bool {
	source := l.rec.Checkpoint.Source
	return l.replaying && (l.opts.Branch || l.thread.passed || source != SourceUpdate && source != SourceFork)
}

// fork makes a copy of the replayed checkpoint, so that its tasks have other keys than those that ran then. A checkpoint that is new
// only forgets its tasks.
func (l *Loop) fork() {
	if l.forks() {
		l.work.Branch = l.thread.newBranch()
		l.save(SourceFork)
		return
	}
	ran := l.rec.tasks.len() > 0
	l.rec = &Record{Checkpoint: l.rec.Checkpoint, control: l.rec.control, memory: l.rec.memory}
	if ran { // and must not be taken for what runs now
		l.rec.line = new(l.thread.newBranch())
		l.work.Branch = *l.rec.line
	}
	l.keep(l.rec)
}

// takeInput puts new input into the input channel and discards what the thread was about to do.
func (l *Loop) takeInput(value Value) error {
	parts := []applied{{node: -1, writes: []channelWrite{{l.prog.start, update{value: value}}}}}
	for _, t := range l.prog.plan(l.work, false) {
		parts = append(parts, applied{node: t.node, sent: t.IsSend()})
	}
	next, err := l.prog.apply(l.work, parts)
	if err != nil {
		return err
	}
	if l.replaying {
		next.Branch = l.thread.newBranch()
	}
	l.work, l.replaying = next, false
	if l.root == l {
		l.thread.left = nil // new input drops the tasks that these ledgers are for
		if l.thread.meter != nil {
			l.thread.meter.Open = false // and what was asked
		}
	}
	l.save(SourceInput)
	return nil
}

// commandKey wraps a command that became the input of an empty thread.
const commandKey = "__command__"

// checkReserved refuses input that would be taken for such a command: it could write and go where no input can.
func (p *Program) checkReserved(input Value) error {
	if !bytes.Contains(input, []byte(commandKey)) && !bytes.Contains(input, []byte(`\u`)) {
		return nil // a name may be written with escapes
	}
	var fields map[string]Value
	if err := json.Unmarshal(input, &fields); err != nil {
		return nil // the entry says what is wrong with it
	}
	if _, ok := fields[commandKey]; ok {
		return &InvalidUpdateError{Graph: p.Spec.Name, Message: "the input has a field " + commandKey +
			", which is reserved: send a command as one, or leave the field out"}
	}
	return nil
}

// entryCommand turns the input into the entry's result: the writes of the input channels, in declaration order.
func (p *Program) entryCommand(input Value) (Command, error) {
	var fields map[string]Value
	if len(input) > 0 && input[0] == '{' {
		fields = map[string]Value{}
		EachMember(input, func(name string, v Value) { fields[name] = v })
	}
	if wrapped, ok := fields[commandKey]; p.Spec.Function && !ok {
		return Command{Update: []Write{{Channel: FunctionInput, Value: input}}}, nil
	} else if ok {
		var c Command
		err := json.Unmarshal(wrapped, &c)
		return c, err
	}
	if fields == nil {
		return Command{}, &InvalidUpdateError{Graph: p.Spec.Name, Code: "INVALID_GRAPH_NODE_RETURN_VALUE",
			Message: "the input must be a JSON object, got " + brief(input)}
	}
	var c Command
	for i := range p.state {
		if v, ok := fields[p.channels[i].name]; ok && p.inputs[i] {
			w := Write{Channel: p.channels[i].name, Value: v}
			if inner, ok := Overwritten(v); ok && p.channels[i].rule == ruleReduce {
				w.Value, w.Overwrite = inner, true
			}
			c.Update = append(c.Update, w)
		}
	}
	return c, nil
}

// overwriteKey is that of the object {"__overwrite__": v}.
const overwriteKey = "__overwrite__"

// Overwritten returns what a value {"__overwrite__": v} of an input or an update sets its channel to.
func Overwritten(v Value) (Value, bool) {
	if len(v) == 0 || v[0] != '{' {
		return nil, false
	}
	var fields map[string]Value
	if err := json.Unmarshal(v, &fields); err != nil || len(fields) != 1 {
		return nil, false
	}
	inner, ok := fields[overwriteKey]
	return inner, ok
}
