package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/tape"
	"superstep.dev/thread"
)

// tape keeps what happened to a thread in memory, for those who stream it. It holds the engine's own values, which are
// turned into parts for each reader.
type recording struct {
	mu      sync.Mutex
	runs    [][]tape.Entry
	running bool
	changed chan struct{} // closed when there is more
}

func newRecording() *recording { return &recording{changed: make(chan struct{})} }

func tapeRun(n int) string { return fmt.Sprintf("run-%d", n) }

// begins notes that an invocation begins: of the newest run, or of a new one.
func (t *recording) begins(goesOn bool, p *pregel.Program, d graphadapter.Durability) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !goesOn || len(t.runs) == 0 {
		t.runs = append(t.runs, nil)
	}
	t.running = true
	t.add(tape.Entry{Began: p, Durability: d})
}

// Observe is told what the engine reports. What nodes emit was there before, as it came.
func (t *recording) Observe(e pregel.Event) {
	switch e.Kind {
	case pregel.EventCustom, pregel.EventMessage, pregel.EventReset:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(tape.Entry{Event: e})
}

// emitted is told what a node emits, while it runs.
func (t *recording) emitted(task *pregel.Task, e pregel.Emission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(tape.Entry{Event: tape.EmissionEvent(task, e)})
}

// ends notes that the invocation is over. One that had nothing to do leaves no run behind.
func (t *recording) ends() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.running {
		return
	}
	t.running = false
	if last := len(t.runs) - 1; len(t.runs[last]) == 1 {
		t.runs = t.runs[:last]
	}
	t.tell()
}

// add adds to the newest run; t.mu is held.
func (t *recording) add(e tape.Entry) {
	e.When = time.Now()
	last := len(t.runs) - 1
	t.runs[last] = append(t.runs[last], e)
	t.tell()
}

func (t *recording) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// behind returns what happened in a run behind its first n things, whether that was all, and what tells of more.
func (t *recording) behind(run, n int) (more []tape.Entry, newest, running bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run < len(t.runs) {
		more = t.runs[run][n:]
	}
	return more, run >= len(t.runs)-1, t.running, t.changed
}

// first returns the number of the run where a stream begins.
func (t *recording) first(from *tape.Offset) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from == nil {
		return max(len(t.runs)-1, 0), true
	}
	for i := range t.runs {
		if tapeRun(i+1) == from.Run {
			return i, from.Event == 0 && from.Index < len(t.runs[i])
		}
	}
	return 0, false
}

// play hands out what a reader asked for, run by run, and what comes while the thread runs.
func (t *recording) play(ctx context.Context, r thread.StreamRequest, run int, from *tape.Offset, yield func(thread.Part, error) bool) {
	reader, read := tape.NewReader(r, tapeRun(run+1), from), 0
	for {
		more, newest, running, changed := t.behind(run, read)
		for _, e := range more {
			parts, err := reader.Read(e)
			if err != nil {
				yield(thread.Part{}, err)
				return
			}
			for _, p := range parts {
				if !yield(p, nil) {
					return
				}
			}
		}
		read += len(more)
		switch {
		case len(more) > 0:
		case !newest:
			run, read = run+1, 0
			reader = tape.NewReader(r, tapeRun(run+1), nil)
		case !running:
			return
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				yield(thread.Part{}, context.Cause(ctx))
				return
			}
		}
	}
}

// heard are the ledgers that the engine has told of and that are not in the audit yet. The engine tells while the thread's
// lock is held, too.
type heard struct {
	mu  sync.Mutex
	all []heardEvent
}

type heardEvent struct {
	at time.Time
	pregel.Event
}

// Observe is told what the engine reports.
func (h *heard) Observe(e pregel.Event) {
	if e.Kind != pregel.EventLedger {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, heardEvent{time.Now(), e})
}

// effects keeps what a thread in memory did outside.
type effects struct {
	mu  sync.Mutex
	all *past.Effects
}

func newEffects() effects {
	return effects{all: past.NewEffects("", func(int64) time.Time { return time.Now() })}
}

// begins notes that a run begins: what comes next is its.
func (m *effects) begins(run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Within(run)
}

// invoked notes that an invocation begins in that run.
func (m *effects) invoked(run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Begins(run)
}

// Observe is told what the engine reports.
func (m *effects) Observe(e pregel.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Happened(0, e)
}

// Stands implements [taskrun.Standing].
func (m *effects) Stands(p *pregel.Program, t *pregel.Thread) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Stands(p, t)
}

// Made implements [taskrun.Standing].
func (m *effects) Made(r *pregel.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.Made(r)
}

// rewind is where the thread goes on; takeBack says that its newest invocation is taken back.
func (m *effects) rewind(takeBack bool) (past.Rewound, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if takeBack {
		return m.all.TakeBack(past.RollbackNewest)
	}
	return m.all.Rewind()
}

// ended notes how a run ended.
func (m *effects) ended(s thread.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s == thread.StatusFinished {
		m.all.Ended(0, pregel.StatusDone, nil)
	}
}

func (m *effects) records() []past.EffectRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.All()
}

func (m *effects) origin(checkpoint string) past.Origin {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.Origin(checkpoint)
}

// standing are the effects to undo; of says of which invocation, "" for all.
func (m *effects) standing(of past.Rollback) []taskrun.Compensation {
	m.mu.Lock()
	defer m.mu.Unlock()
	request := taskrun.StandingRequest{}
	var out []taskrun.Compensation
	for more := true; more; {
		page := request.Page(m.all.StandingSince(of))
		out = append(out, page.Effects...)
		request.Skip, more = len(out), page.More
	}
	return out
}
