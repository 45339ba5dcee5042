package pregel

import (
	"bytes"
	"maps"
	"slices"
)

// out is the loop's position. home is the record that is where the loop's own belongs.
func (l *Loop) out(home *Record) loopJSON {
	out := loopJSON{Stop: l.stop, Status: statusNames[l.status], Error: errorOut(l.err), Resuming: l.resuming,
		Replaying: l.replaying, AskAgain: l.askAgain, Pool: l.pool}
	if l.rec != home {
		out.Record = l.prog.recordOut(l.rec, true)
	}
	out.Work = l.prog.workOut(l.work, l.rec.Checkpoint)
	if shown := l.Output(); shown != nil {
		out.Shown = maps.EqualFunc(shown, l.prog.values(l.work, l.prog.outputs), sameValue)
		if !out.Shown {
			out.Output = shown
		}
	}
	if l.status != StatusRunning {
		return out // its tasks are those of a superstep that is over
	}
	place := make(map[*taskRun]int, len(l.tasks))
	for i, tr := range l.tasks {
		place[tr] = i
		if tr.of == nil {
			out.Planned++
		}
		if run, needed := l.runOut(tr, i); needed {
			if tr.of != nil {
				of := place[tr.of]
				run.Of = &of
			}
			out.Runs = append(out.Runs, run)
		}
	}
	return out
}

func sameValue(a, b Value) bool { return bytes.Equal(a, b) }

// workOut is how a loop's working checkpoint differs from its record's.
func (p *Program) workOut(work, c *Checkpoint) *workJSON {
	if work == c {
		return nil
	}
	out := &workJSON{}
	if !p.sameCells(work, c) {
		whole := p.checkpointOut(work, true)
		out.Whole = &whole
		return out
	}
	out.Branch, out.InterruptSeen = work.Branch, p.versionsOut(work.interruptSeen)
	return out
}

// sameCells reports whether a working checkpoint has the channels of its record's: what changes a channel gives it a
// version, but for untracked ones, which are emptied without.
func (p *Program) sameCells(work, c *Checkpoint) bool {
	for i := range p.state {
		if p.channels[i].rule == ruleUntracked && !bytes.Equal(work.cells[i].value, c.cells[i].value) {
			return false
		}
	}
	return slices.Equal(work.versions, c.versions) && slices.Equal(work.updated, c.updated) && work.hasUpdated == c.hasUpdated
}

// runOut is a task's position, and whether it does not follow from the task's record: see ownRun.
func (l *Loop) runOut(tr *taskRun, at int) (run runJSON, needed bool) {
	run = runJSON{At: at, Ended: tr.ended, Parked: tr.parked, Attempts: tr.attempts, Held: tr.held, Drained: tr.drained,
		Error: errorOut(tr.err), Failure: errorOut(tr.failure), Parent: tr.parent}
	if tr.child != nil {
		child := tr.child.out(l.stored(tr))
		run.Child = &child
	}
	if tr.task.RouteOnly && !tr.ended {
		run.Done = &tr.task.Done
	}
	if tr.running {
		run.Unseen = len(l.answers(tr.rec)) - len(tr.task.Answers)
	}
	follows := l.ownRun(tr, at)
	needed = tr.of != nil || run.Ended != follows.Ended || run.Parked || run.Child != nil || run.Attempts != 0 || run.Held || run.Drained ||
		run.Error != nil || run.Failure != nil || run.Parent != nil || run.Done != nil || run.Unseen != 0
	return run, needed
}

// ownRun is the position of a planned task about which nothing is stored but its record: over, or to be handed out.
func (l *Loop) ownRun(tr *taskRun, at int) runJSON {
	return runJSON{At: at, Ended: tr.rec.Done || tr.rec.Handled}
}

// stored is the record that a subgraph's task finds where its records belong.
func (l *Loop) stored(tr *taskRun) *Record {
	_, rec := l.prog.childOf(l.thread, tr.rec, l.nodes)
	return rec
}

// rememberedOut is what the head knows that the subgraphs remembered.
func (l *Loop) rememberedOut() map[string]*recordJSON {
	if l.rec.memory == nil {
		return nil
	}
	out := make(map[string]*recordJSON, len(l.rec.memory))
	for _, key := range sortedKeys(l.rec.memory) {
		sub, known := l.prog.byMemoryKey(key)
		switch {
		case !known:
		case l.rec.memory[key] == l.thread.memory[key]:
			out[key] = nil
		default:
			out[key] = sub.recordOut(l.rec.memory[key], true)
		}
	}
	return out
}

// waiting are the tasks to be handed out of this loop and those nested in it, in task order.
func (l *Loop) waiting(out []*Task) []*Task {
	if l.status != StatusRunning {
		return out
	}
	for _, tr := range l.tasks {
		switch {
		case tr.child != nil:
			out = tr.child.waiting(out)
		case tr.running:
			out = append(out, tr.task)
		}
	}
	return out
}

// queueOut is the order of the queue, nil when it is task order.
func (l *Loop) queueOut() []int {
	tasks := l.waiting(nil)
	if slices.Equal(tasks, l.queue) {
		return nil
	}
	place := make(map[*Task]int, len(tasks))
	for i, t := range tasks {
		place[t] = i
	}
	out := make([]int, len(l.queue))
	for i, t := range l.queue {
		out[i] = place[t]
	}
	return out
}
