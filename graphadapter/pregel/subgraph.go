package pregel

import (
	"fmt"
	"slices"
	"strings"
)

// startChild runs a subgraph's task as a nested loop.
func (l *Loop) startChild(tr *taskRun) {
	n := &l.prog.nodes[tr.task.node]
	if n.memory != "" && l.runsTwice(tr) {
		l.failChild(tr, l.memoryTwice(tr, n.memory))
		return
	}
	child := l.nested(tr)
	child.askAgain, child.pool = l.askAgain, l.pool
	l.attach(child, tr)
	tr.stopped, tr.drained = false, false
	in := Input{Value: tr.task.Arg}
	if in.Value == nil {
		in.Value = encodeObject(whole(tr.task.State))
	}
	if err := child.begin(in, l.resuming); err != nil {
		child.fail(err)
	} else {
		child.tick()
	}
	child.settle()
}

// nested makes the loop of a subgraph's task, in its place but without a position.
func (l *Loop) nested(tr *taskRun) *Loop {
	n := &l.prog.nodes[tr.task.node]
	tr.child = &Loop{
		prog: n.sub, thread: l.thread, observe: l.observe, root: l.root, before: n.sub.before, after: n.sub.after,
		opts:      Options{RecursionLimit: l.opts.RecursionLimit},
		namespace: childNamespace(tr.task), outer: l, within: tr,
		graph: append(slices.Clip(l.graph), n.spec.Subgraph),
		nodes: append(slices.Clip(l.nodes), tr.task.Node),
	}
	tr.child.forgetful = l.forgetful
	if l.forgetful == nil && n.sub.Spec.Memory == MemoryNone {
		tr.child.forgetful = tr
	}
	return tr.child
}

// memoryTwice refuses a task whose node an earlier task of the superstep runs too, with a subgraph at memory that
// remembers for the thread's life.
func (l *Loop) memoryTwice(tr *taskRun, memory string) error {
	what := "a subgraph that remembers"
	if memory != tr.task.Node {
		what = fmt.Sprintf("a subgraph with one at %q in it that remembers", memory)
	}
	return &InvalidUpdateError{Graph: l.prog.Spec.Name, Message: fmt.Sprintf("node %q runs %s, and runs twice in one "+
		"superstep: both would write the same memory; use a node of another name, or a later superstep", tr.task.Node, what)}
}

// runsTwice reports whether an earlier task of the superstep is of the same node. A memory is named by the nodes that lead to the
// subgraph, so only two tasks of one node in one superstep can reach the same memory at once, however deep the subgraph is.
// Whether both would reach it is not known when the tasks start, and the order in which outcomes arrive must not decide what is
// refused: so the second task is refused.
func (l *Loop) runsTwice(tr *taskRun) bool {
	return slices.ContainsFunc(l.tasks[:tr.at], func(other *taskRun) bool { return other.task.node == tr.task.node })
}

// attach gives a nested loop the record that it continues: none for a subgraph that remembers nothing.
func (l *Loop) attach(child *Loop, tr *taskRun) {
	known := l.home(child, tr)
	if child.prog.Spec.Memory != MemoryNone {
		child.rec = known
		return
	}
	// It starts again from its input. The answers it was given stay on record: they find their questions by id.
	if known != nil {
		tr.rec.Answers = l.prog.gathered(l.thread, tr.rec, l.nodes)
		child.pool = append(tr.rec.Answers, l.pool...)
	}
}

// home says where a nested loop keeps its records, and returns the record that it has there.
func (l *Loop) home(child *Loop, tr *taskRun) *Record {
	if child.prog.Spec.Memory == MemoryThread {
		key := memoryKey(l.nodes, tr.task.Node)
		child.keep = func(r *Record) { l.thread.memory[key] = r }
		return l.thread.memory[key]
	}
	child.keep = func(r *Record) { tr.rec.child = r }
	return tr.rec.child
}

// finishChild takes in a nested loop that has ended.
func (l *Loop) finishChild(tr *taskRun) {
	child := tr.child
	switch child.status {
	case StatusRunning:
	case StatusWaiting:
		tr.child, tr.attempts = nil, 0 // what runs after an answer is a new execution, also within this superstep
		l.end(tr)
		l.ask(tr, l.prog.openWithin(l.thread, tr.rec, l.nodes))
	case StatusBreakpoint:
		tr.stopped, tr.child = true, nil
		l.end(tr)
	case StatusDrained:
		tr.drained, tr.child, tr.attempts = true, nil, 0
		l.end(tr)
	case StatusFailed:
		l.retryChild(tr, child.err)
	case statusParent:
		l.childDone(tr, *child.parent)
	case StatusDone:
		l.childDone(tr, Command{Update: child.outputWrites()})
	}
}

// childWaits reports whether a subgraph's task asked, and got no answer since.
func (l *Loop) childWaits(tr *taskRun) bool {
	return len(tr.rec.Questions) > 0 && len(l.prog.openWithin(l.thread, tr.rec, l.nodes)) > 0 &&
		!l.prog.hasNews(l.thread, tr.rec, l.nodes)
}

// retryChild asks the node's retry policy, if it has one, whether a failed subgraph is to be run on from where it
// failed: its finished tasks do not run again.
func (l *Loop) retryChild(tr *taskRun, err error) {
	if !l.prog.nodes[tr.task.node].spec.Retried || cancelled(err) {
		l.failChild(tr, err)
		return
	}
	tr.attempts++
	tr.child, tr.failure = nil, err
	tr.task.Retry, tr.task.Attempt = AsNodeError(l.prog.Spec.Name, tr.task.Node, err), tr.attempts
	l.handOut(tr)
}

// retried takes in what the retry policy says. It gives up with the subgraph's own error, but when it was stopped before
// it could say anything.
func (l *Loop) retried(tr *taskRun, o Outcome) {
	err := tr.failure
	tr.running, tr.failure, tr.task.Retry, tr.task.Attempt = false, nil, nil, 0
	switch {
	case o.Error != nil && cancelled(o.Error):
		l.failChild(tr, o.Error)
	case o.Error != nil || !o.Again:
		l.failChild(tr, err)
	default:
		l.continueChild(tr)
	}
}

// failChild ends a subgraph's task with an error.
func (l *Loop) failChild(tr *taskRun, err error) {
	tr.child = nil
	l.failed(tr, err)
}

// continueChild runs a subgraph's task on from its own newest checkpoint. Its tasks that got no answer go on waiting.
func (l *Loop) continueChild(tr *taskRun) {
	resume := true
	resuming, askAgain := l.resuming, l.askAgain
	l.resuming, l.askAgain = &resume, false
	l.startChild(tr)
	l.resuming, l.askAgain = resuming, askAgain
}

// childDone ends a subgraph's task, after its branches when the node has some.
func (l *Loop) childDone(tr *taskRun, result Command) {
	tr.child = nil
	if result.Parent != nil {
		tr.parent = result.Parent
		l.end(tr)
		return
	}
	if err := l.prog.CheckParentCommand(&result); err != nil {
		l.failChild(tr, err)
		return
	}
	if len(tr.task.Branches) > 0 {
		result.Update = tr.task.names().complete(l.prog, result.Update)
		tr.task.RouteOnly, tr.task.Done = true, result
		l.handOut(tr)
		return
	}
	l.finish(tr, Outcome{Command: result})
}

// outputWrites are a finished subgraph's output as its node's update.
func (l *Loop) outputWrites() []Write {
	var out []Write
	output := l.Output()
	for i := range l.prog.state {
		if v, ok := output[l.prog.channels[i].name]; ok {
			out = append(out, Write{Channel: l.prog.channels[i].name, Value: v})
		}
	}
	return out
}

// CheckParentCommand refuses a command that came from a graph within a node's task, when it goes where this graph has no
// node, or gives timeouts to a subgraph's. Who sent it does not know this graph; LangGraph drops such ways, and the run
// ends as if it had finished. A *InvalidUpdateError.
func (p *Program) CheckParentCommand(c *Command) error {
	for _, t := range c.Goto {
		at, known := p.nodeAt[t.Node]
		problem := ""
		switch {
		case !t.Send && t.Node == End:
		case !known || at == 0 || p.nodes[at].handles():
			var names []string
			for i := range p.nodes[1:] {
				if !p.nodes[i+1].handles() {
					names = append(names, p.nodes[i+1].name)
				}
			}
			problem = "which this graph does not have: it has " + strings.Join(names, ", ")
		case t.Bounds() && p.nodes[at].sub != nil:
			problem = "with timeouts, which a subgraph's node cannot have"
		}
		if problem != "" {
			return &InvalidUpdateError{Graph: p.Spec.Name,
				Message: fmt.Sprintf("a command from a graph within goes to %q, %s", t.Node, problem)}
		}
	}
	return nil
}
