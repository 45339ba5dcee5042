package pregel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// PutBack takes back tasks that Ready handed out and nobody has started. They are handed out again by the next Ready,
// before any others and in the order given. Tasks that have come back already, and those of other loops, are left out.
func (l *Loop) PutBack(tasks ...*Task) {
	var put []*Task
	for _, t := range tasks {
		if t.run != nil && t.run.taken && t.loop.root == l.root {
			t.run.taken = false
			put = append(put, t)
		}
	}
	l.root.away -= len(put)
	l.root.queue = append(put, l.root.queue...)
}

// back notes that the outcome of a task is here.
func (l *Loop) back(t *Task) {
	if t.run.taken {
		t.run.taken = false
		l.away--
		return
	}
	l.queue = slices.DeleteFunc(l.queue, func(queued *Task) bool { return queued == t })
}

// Quiet reports whether nothing that was handed out is under way: every such task has come back, or was put back.
func (l *Loop) Quiet() bool { return l.root.away == 0 }

// IsOnly reports whether the task has been handed out and no other is under way or waits to be.
func (l *Loop) IsOnly(t *Task) bool {
	return t.run != nil && t.run.taken && l.root.away == 1 && len(l.root.queue) == 0
}

// Suspend returns the run with its thread as it stands, untracked channels included: [Program.Restore] goes on from it
// in any process, also from the middle of a superstep, as if nothing had happened. The loop stays as it is and may go on
// as well. It must be the root's, and quiet.
//
// What it returns is one JSON value, which encoding it again leaves as it is: bytes that an encoder may write in another
// way would change digests. It is about as large as the stored thread; the tasks of the superstep are left out as far as
// they follow from it.
func (l *Loop) Suspend() (Value, error) {
	if !l.Quiet() {
		return nil, fmt.Errorf("graph %q cannot be suspended: %d tasks are under way; deliver their outcomes, "+
			"or put them back", l.prog.Spec.Name, l.root.away)
	}
	if l.root != l {
		return nil, fmt.Errorf("graph %q cannot be suspended: it runs within another one; suspend that", l.prog.Spec.Name)
	}
	out := &suspendedJSON{
		Format: suspendedFormat, Thread: l.prog.threadOut(l.thread, true), Remembered: l.rememberedOut(),
		Options: l.opts, Namespace: l.opts.Namespace, Drain: l.drain, loopJSON: l.out(l.thread.Head), Queue: l.queueOut(),
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return nil, fmt.Errorf("graph %q cannot be suspended: %w", l.prog.Spec.Name, err)
	}
	v := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if bytes.ContainsAny(v, "<>&\u2028\u2029") {
		return json.Marshal(v) // as base64
	}
	return v, nil
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
	Shown  bool             `json:"shown,omitempty"`
	Output map[string]Value `json:"output,omitzero"`
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
	Held     bool       `json:"held,omitempty"`
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
