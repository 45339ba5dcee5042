package pregel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Suspend returns the run and its thread as they are now, untracked channels included: [Program.Restore] goes on from it
// in any process, also from the middle of a superstep, as if nothing had happened. The loop stays as it is and may go on
// as well. It must be the root's, and quiet.
//
// What it returns is one JSON value, which encoding it again leaves as it is: bytes that an encoder may write in another
// way would change digests. It is about as large as the stored thread; tasks of the superstep are left out where they
// follow from the thread.
func (l *Loop) Suspend() (Value, error) {
	out, err := suspend(l)
	if err != nil {
		return nil, err
	}
	v, err := out.encode(l.prog.Spec.Name)
	if err == nil && slices.ContainsFunc(rewritten, func(c []byte) bool { return bytes.Contains(v, c) }) {
		return json.Marshal([]byte(v)) // as base64
	}
	return v, err
}

// rewritten are the characters that an encoder may write in another way. To look for one after the other takes a tenth of the time of
// bytes.ContainsAny.
var rewritten = [][]byte{[]byte("<"), []byte(">"), []byte("&"), []byte("\u2028"), []byte("\u2029")}

// Suspended is a suspended run (see [SuspendLoop]), or a thread (see [SuspendThread]), with its long values beside the text. They are
// those of the loop, which never change, and are neither written as JSON nor read: another process is given [Suspended.Bytes], which copies
// them. Within a process see [Loop.Freeze].
type Suspended struct {
	text Value
	long []Held
}

// Size is how many bytes it would have as text, about.
func (s Suspended) Size() int {
	size := len(s.text)
	for i := range s.long {
		size += s.long[i].Len()
	}
	return size
}

// SuspendLoop is [Loop.Suspend] for [Suspended.Restore]. The errors are the same.
func SuspendLoop(l *Loop) (Suspended, error) {
	out, err := suspend(l)
	if err != nil {
		return Suspended{}, err
	}
	var s Suspended
	out.checkpoints(func(c *checkpointJSON) { s.long = c.setAside(s.long) })
	s.text, err = out.encode(l.prog.Spec.Name)
	return s, err
}

// SuspendThread is [Program.EncodeThread] for [Suspended.Thread].
func SuspendThread(p *Program, t *Thread) (Suspended, error) {
	out := p.threadOut(t, false)
	var s Suspended
	out.checkpoints(func(c *checkpointJSON) { s.long = c.setAside(s.long) })
	text, err := plain(out)
	if err != nil {
		return Suspended{}, fmt.Errorf("graph %q: its thread cannot be written: %w", p.Spec.Name, err)
	}
	s.text = text
	return s, nil
}

// plain is JSON in which nothing is written in another way than it is.
func plain(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

func suspend(l *Loop) (*suspendedJSON, error) {
	if !l.Quiet() {
		return nil, fmt.Errorf("graph %q cannot be suspended: %d tasks are under way; deliver their outcomes, "+
			"or put them back", l.prog.Spec.Name, l.root.underWay)
	}
	if l.root != l {
		return nil, fmt.Errorf("graph %q cannot be suspended: it runs within another one; suspend that", l.prog.Spec.Name)
	}
	return &suspendedJSON{
		Format: suspendedFormat, Thread: l.prog.threadOut(l.thread, true), Remembered: l.rememberedOut(),
		Options: l.opts, Namespace: l.opts.Namespace, Drain: l.drain, loopJSON: l.out(l.thread.Head), Queue: l.queueOut(),
	}, nil
}

func (s *suspendedJSON) encode(graph string) (Value, error) {
	text, err := encodeAround(s.checkpoints, func() ([]byte, error) { return plain(s) })
	if err != nil {
		return nil, fmt.Errorf("graph %q cannot be suspended: %w", graph, err)
	}
	return text, nil
}

// suspendedFormat is the version of what Suspend writes. Only optional fields may be added to it.
const suspendedFormat = 1

// suspendedJSON is a suspended loop.
type suspendedJSON struct {
	Format int         `json:"format"`
	Thread *threadJSON `json:"thread"`
	// Remembered is what subgraphs remembered when the head was made, nil for those that remember the same now.
	Remembered map[string]*recordJSON `json:"remembered,omitzero"`
	Options    Options                `json:"options"`
	Namespace  string                 `json:"namespace,omitempty"`
	Drain      string                 `json:"drain,omitempty"`
	loopJSON
	// Queue is the order in which tasks are handed out, as places in the order of tasks; nil when it is that.
	Queue []int `json:"queue,omitempty"`
}

// loopJSON is the position of one loop. A nested one's place follows from the task that it runs.
type loopJSON struct {
	// Record is what the loop goes on from, when it is not where it belongs: two loops share a memory.
	Record    *recordJSON `json:"record,omitempty"`
	Work      *workJSON   `json:"work,omitempty"`
	Stop      int         `json:"stop"`
	Status    string      `json:"status,omitempty"`
	Error     *errorJSON  `json:"error,omitempty"`
	Resuming  *bool       `json:"resuming,omitempty"`
	Replaying bool        `json:"replaying,omitempty"`
	AskAgain  bool        `json:"ask_again,omitempty"`
	Pool      []Answer    `json:"pool,omitempty"`
	// Output is what was last shown; Shown says that it is the output of Work.
	Shown  bool            `json:"shown,omitempty"`
	Output map[string]Held `json:"output,omitzero"`
	// Planned counts the planned tasks of the superstep. Runs are those of all its tasks that do not follow from their
	// records; a handler's never does.
	Planned int       `json:"planned,omitempty"`
	Runs    []runJSON `json:"runs,omitempty"`
}

// workJSON is a working checkpoint that differs from its record's: only in these fields, unless it is here as a whole.
type workJSON struct {
	Whole         *checkpointJSON  `json:"whole,omitempty"`
	Branch        string           `json:"branch,omitempty"`
	InterruptSeen map[string]int64 `json:"interrupt_seen,omitempty"`
}

// runJSON is one task of the superstep under way. It has ended, it runs as a nested loop, or it is to be handed out.
type runJSON struct {
	At int `json:"at"`
	// Of is the place of the failed task that this one handles.
	Of       *int       `json:"of,omitempty"`
	Ended    bool       `json:"ended,omitempty"`
	Parked   bool       `json:"parked,omitempty"`
	Child    *loopJSON  `json:"child,omitempty"`
	Attempts int        `json:"attempts,omitempty"`
	Stopped  bool       `json:"stopped,omitempty"`
	Drained  bool       `json:"drained,omitempty"`
	Error    *errorJSON `json:"error,omitempty"`
	Failure  *errorJSON `json:"failure,omitempty"`
	Parent   *Command   `json:"parent,omitempty"`
	// Done is what was returned already, of a task that only routes.
	Done *Command `json:"done,omitempty"`
	// Unseen counts the newest answers on record that the task to be handed out does not have.
	Unseen int `json:"unseen,omitempty"`
}

// statusNames are the statuses in stored data. A nested loop's last one is never stored.
var statusNames = []string{StatusRunning: "", StatusDone: "done", StatusWaiting: "waiting",
	StatusBreakpoint: "breakpoint", StatusDrained: "drained", StatusFailed: "failed"}

// out is the loop's position. home is the record that is where the loop's own belongs.
func (l *Loop) out(home *Record) loopJSON {
	out := loopJSON{Stop: l.stop, Status: statusNames[l.status], Error: errorOut(l.err), Resuming: l.resuming,
		Replaying: l.replaying, AskAgain: l.askAgain, Pool: l.pool}
	if l.rec != home {
		out.Record = l.prog.recordOut(l.rec, true)
	}
	out.Work = l.prog.workOut(l.work, l.rec.Checkpoint)
	if shown := heldOutput(l); shown != nil {
		out.Shown = maps.EqualFunc(shown, l.prog.held(l.work, l.prog.outputs), Held.equal)
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
				run.Of = new(place[tr.of])
			}
			out.Runs = append(out.Runs, run)
		}
	}
	return out
}

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
		if p.channels[i].rule == ruleUntracked && !work.cells[i].value.equal(c.cells[i].value) {
			return false
		}
	}
	return slices.Equal(work.versions, c.versions) && slices.Equal(work.updated, c.updated) && work.hasUpdated == c.hasUpdated
}

// runOut is a task's position, and whether it does not follow from the task's record: see ownRun.
func (l *Loop) runOut(tr *taskRun, at int) (run runJSON, needed bool) {
	run = runJSON{At: at, Ended: tr.ended, Parked: tr.parked, Attempts: tr.attempts, Stopped: tr.stopped, Drained: tr.drained,
		Error: errorOut(tr.err), Failure: errorOut(tr.failure), Parent: tr.parent}
	if tr.child != nil {
		_, stored := l.prog.childOf(l.thread, tr.rec, l.nodes) // where its records belong
		run.Child = new(tr.child.out(stored))
	}
	if tr.task.RouteOnly && !tr.ended {
		run.Done = &tr.task.Done
	}
	if tr.running {
		run.Unseen = len(l.answers(tr.rec)) - len(tr.task.Answers)
	}
	return run, tr.of != nil || run != l.ownRun(tr, at)
}

// ownRun is the position of a planned task about which nothing is stored but its record: over, or to be handed out.
func (l *Loop) ownRun(tr *taskRun, at int) runJSON {
	return runJSON{At: at, Ended: tr.rec.over()}
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
