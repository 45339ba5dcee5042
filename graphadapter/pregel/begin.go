package pregel

import (
	"bytes"
	"encoding/json"
	"slices"
)

// begin takes in what a run starts with: section 5.2 of the semantics. resuming is what a parent tells its subgraph.
func (l *Loop) begin(in Input, resuming *bool) error {
	if l.rec == nil {
		l.rec = &Record{Checkpoint: l.prog.emptyCheckpoint()}
	}
	l.work = l.prog.loaded(l.rec.Checkpoint)
	l.prog.forgetUntracked(l.rec)
	if l.outer != nil {
		l.work.Branch = l.outer.work.Branch // a subgraph's tasks have keys of their own on each line of the thread
	}
	l.step = l.rec.Checkpoint.Step + 1
	l.stop = l.step + l.opts.RecursionLimit + 1
	fresh := l.work.fresh()
	continues := !fresh && (resuming == nil && in.Value == nil || resuming != nil && *resuming)
	value, err := l.inputValue(in, fresh)
	if err != nil {
		return err
	}
	before := l.rec.control
	if in.Control != nil && !controlIsEmpty(in.Control) {
		l.rec.control = append(slices.Clone(before), *in.Control)
	}
	apply := l.applyControl
	if len(l.rec.control) > len(before) {
		apply = l.addControl
	}
	if err := apply(); err != nil {
		l.rec.control = before
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

func controlIsEmpty(c *Command) bool { return len(c.Update) == 0 && len(c.Goto) == 0 }

// loaded is a checkpoint as a run finds it: untracked channels do not outlive the run that wrote them.
func (p *Program) loaded(c *Checkpoint) *Checkpoint {
	n := c.next()
	for i := range p.state {
		if p.channels[i].rule == ruleUntracked {
			n.cells[i] = cell{}
		}
	}
	return n
}

// forgetUntracked drops what finished tasks of an earlier run wrote to untracked channels.
func (p *Program) forgetUntracked(r *Record) {
	for i := range p.state {
		if p.channels[i].rule == ruleUntracked {
			for _, e := range r.tasks.sorted() {
				*e.rec = *p.tracked(e.rec)
			}
			return
		}
	}
}

// applyControl applies the control writes that wait on the loaded checkpoint, as those of one superstep. They clear nothing.
// Those that conflict were taken by the rules of version 1, one after the other, and still count so.
func (l *Loop) applyControl() error {
	if l.prog.Spec.Version > 1 {
		if err := l.applyCommands(l.rec.control); err == nil || len(l.rec.control) == 1 {
			return err
		}
	}
	for i := range l.rec.control {
		if err := l.applyCommands(l.rec.control[i : i+1]); err != nil {
			return err
		}
	}
	return nil
}

// addControl is applyControl of which the last is new: it is refused when it conflicts with those before it.
func (l *Loop) addControl() error {
	if l.prog.Spec.Version == 1 {
		return l.applyControl()
	}
	return l.applyCommands(l.rec.control)
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

// fork makes the replayed checkpoint a new one, so that what runs now is told apart from what ran then. A checkpoint
// made by an update or a fork already is one; it only forgets its tasks.
func (l *Loop) fork() {
	source := l.rec.Checkpoint.Source
	if !l.opts.Branch && (source == SourceUpdate || source == SourceFork) {
		if l.rec.tasks.len() > 0 || l.thread.forked {
			l.work.Branch = "b" + itoa(l.thread.seq+1) // its tasks ran before, and must not be taken for these
		}
		l.rec = &Record{Checkpoint: l.rec.Checkpoint, control: l.rec.control}
		l.keep(l.rec)
		return
	}
	l.work.Branch = "b" + itoa(l.thread.seq+1)
	l.save(SourceFork)
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
		next.Branch = "b" + itoa(l.thread.seq+1)
	}
	l.work, l.replaying = next, false
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
	err := json.Unmarshal(input, &fields)
	if wrapped, ok := fields[commandKey]; p.Spec.Function && !ok {
		return Command{Update: []Write{{Channel: FunctionInput, Value: input}}}, nil
	} else if ok {
		var c Command
		err := json.Unmarshal(wrapped, &c)
		return c, err
	}
	if err != nil || fields == nil {
		return Command{}, &InvalidUpdateError{Graph: p.Spec.Name, Code: "INVALID_GRAPH_NODE_RETURN_VALUE",
			Message: "the input must be a JSON object, got " + brief(input)}
	}
	var c Command
	for i := range p.state {
		if v, ok := fields[p.channels[i].name]; ok && p.inputs[i] {
			w := Write{Channel: p.channels[i].name, Value: v}
			if inner, ok := overwritten(v); ok && p.channels[i].rule == ruleReduce {
				w.Value, w.Overwrite = inner, true
			}
			c.Update = append(c.Update, w)
		}
	}
	return c, nil
}

// Answer puts answers on record without running anything: the next run finds them. A scalar that
// several tasks wait for is a *MultipleInterruptsError; unknown ids answer nothing.
func (p *Program) Answer(t *Thread, r *Resume) error {
	if t.Head == nil {
		return nil
	}
	return p.answer(t, r)
}

func (p *Program) answer(t *Thread, r *Resume) error {
	if r.Scalar != nil {
		return p.answerScalar(t, r)
	}
	for _, id := range sortedKeys(r.ByID) {
		p.give(t, Answer{QuestionID: id, Value: r.ByID[id], By: r.By})
	}
	for _, a := range r.Answers {
		p.give(t, a)
	}
	return nil
}

// answerScalar gives a value to the first open question. Which one is meant is clear while the root's unfinished tasks
// list one question, answered or not, those within a subgraph counted each (LangGraph's rule). Runtimes are stricter. A
// wait for an event is no question for whoever gives a scalar.
func (p *Program) answerScalar(t *Thread, r *Resume) error {
	var ids []string
	for _, e := range t.Head.tasks.sorted() {
		rec := e.rec
		if rec.Done || rec.Handled {
			continue
		}
		for _, q := range rec.Questions {
			if q.forPeople() && !slices.Contains(ids, q.ID) {
				ids = append(ids, q.ID)
			}
		}
	}
	if len(ids) > 1 {
		return &MultipleInterruptsError{Graph: p.Spec.Name, IDs: ids}
	}
	for _, q := range p.OpenQuestions(t) {
		if q.forPeople() {
			p.give(t, Answer{QuestionID: q.ID, Value: r.Scalar, By: r.By})
			break
		}
	}
	return nil
}

// give puts an answer on the task that asked; an unknown id, or one already answered, answers nothing.
func (p *Program) give(t *Thread, a Answer) {
	p.eachTask(t, t.Head, nil, func(_ int, rec *TaskRecord) bool {
		for _, q := range rec.open() {
			if q.ID == a.QuestionID {
				rec.Answers = append(rec.Answers[:len(rec.Answers):len(rec.Answers)], a)
				return false
			}
		}
		return true
	})
}

// overwritten returns what an input value {"__overwrite__": v} sets its channel to.
func overwritten(v Value) (Value, bool) {
	if len(v) == 0 || v[0] != '{' {
		return nil, false
	}
	var fields map[string]Value
	if err := json.Unmarshal(v, &fields); err != nil || len(fields) != 1 {
		return nil, false
	}
	inner, ok := fields["__overwrite__"]
	return inner, ok
}
