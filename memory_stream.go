package superstep

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// tape keeps what happened to a thread in memory, for those who stream it. It holds the engine's own values, which are
// turned into parts for each reader.
type tape struct {
	mu      sync.Mutex
	runs    [][]taped
	running bool
	changed chan struct{} // closed when there is more
}

func newTape() *tape { return &tape{changed: make(chan struct{})} }

func tapeRun(n int) string { return fmt.Sprintf("run-%d", n) }

// begins notes that an invocation begins: of the newest run, or of a new one.
func (t *tape) begins(goesOn bool, p *pregel.Program, d graphadapter.Durability) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !goesOn || len(t.runs) == 0 {
		t.runs = append(t.runs, nil)
	}
	t.running = true
	t.add(taped{began: p, durability: d})
}

// observe is told what the engine reports. What nodes emit was there before, as it came.
func (t *tape) observe(e pregel.Event) {
	switch e.Kind {
	case pregel.EventCustom, pregel.EventMessage, pregel.EventReset:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(taped{event: e})
}

// emitted is told what a node emits, while it runs.
func (t *tape) emitted(task *pregel.Task, e pregel.Emission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(taped{event: emissionEvent(task, e)})
}

// emissionEvent is what a task emitted, as the engine reports it when the task has ended.
func emissionEvent(task *pregel.Task, e pregel.Emission) pregel.Event {
	kind := pregel.EventCustom
	switch e.Kind {
	case pregel.EmissionMessage:
		kind = pregel.EventMessage
	case pregel.EmissionReset:
		kind = pregel.EventReset
	}
	return pregel.Event{Kind: kind, Task: task, Namespace: task.Namespace, Step: task.Step, Value: e.Value, Attempt: e.Attempt}
}

// ends notes that the invocation is over. One that had nothing to do leaves no run behind.
func (t *tape) ends() {
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
func (t *tape) add(e taped) {
	e.when = time.Now()
	last := len(t.runs) - 1
	t.runs[last] = append(t.runs[last], e)
	t.tell()
}

func (t *tape) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// behind returns what happened in a run behind its first n things, whether that was all, and what tells of more.
func (t *tape) behind(run, n int) (more []taped, newest, running bool, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run < len(t.runs) {
		more = t.runs[run][n:]
	}
	return more, run >= len(t.runs)-1, t.running, t.changed
}

// first returns the number of the run where a stream begins.
func (t *tape) first(from *streamOffset) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if from == nil {
		return max(len(t.runs)-1, 0), true
	}
	for i := range t.runs {
		if tapeRun(i+1) == from.run {
			return i, from.event == 0 && from.index < len(t.runs[i])
		}
	}
	return 0, false
}

func (m *Memory) streamRun(ctx context.Context, g *graphadapter.Graph, r StreamRequest) iter.Seq2[StreamPart, error] {
	from, err := checkStream(&r)
	if err != nil {
		return failedStream(err)
	}
	t, err := m.thread(g, r.Thread, false)
	if err != nil {
		return failedStream(err)
	}
	return func(yield func(StreamPart, error) bool) {
		run, known := t.tape.first(from)
		if !known {
			yield(StreamPart{}, &Error{Kind: ErrBadInput, Graph: t.graph, Thread: t.id, Message: "the thread has no such place in its streams"})
			return
		}
		t.tape.play(ctx, r, run, from, yield)
	}
}

// play hands out what a reader asked for, run by run, and what comes while the thread runs.
func (t *tape) play(ctx context.Context, r StreamRequest, run int, from *streamOffset, yield func(StreamPart, error) bool) {
	reader, read := newStreamReader(r, tapeRun(run+1), from), 0
	for {
		more, newest, running, changed := t.behind(run, read)
		for _, e := range more {
			parts, err := reader.read(e)
			if err != nil {
				yield(StreamPart{}, err)
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
			reader = newStreamReader(r, tapeRun(run+1), nil)
		case !running:
			return
		default:
			select {
			case <-changed:
			case <-ctx.Done():
				yield(StreamPart{}, context.Cause(ctx))
				return
			}
		}
	}
}
