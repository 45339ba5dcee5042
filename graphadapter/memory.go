package graphadapter

import (
	"context"
	"fmt"
	"sync"

	"superstep.dev/graphadapter/pregel"
)

// Memory keeps threads in this process: for tests, for conformance, and for graphs that need no durability. It is
// safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	threads map[string]*history
}

// NewMemory returns a Memory without threads.
func NewMemory() *Memory { return &Memory{threads: map[string]*history{}} }

// history is one thread's state and its past.
type history struct {
	busy    chan struct{} // holds a token while a run is under way
	print   string        // the fingerprint of the graph that the thread runs, "" before the first run
	thread  *pregel.Thread
	records []*pregel.Record            // the root graph's, oldest first
	within  map[string][]*pregel.Record // the subgraphs', by namespace
}

func newHistory() *history {
	return &history{busy: make(chan struct{}, 1), thread: pregel.NewThread(), within: map[string][]*pregel.Record{}}
}

// Thread returns the thread of that id, which begins with its first run.
func (m *Memory) Thread(g *Graph, id string) *Thread {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.threads[id]
	if !ok {
		h = newHistory()
		m.threads[id] = h
	}
	return &Thread{graph: g, id: id, history: h}
}

// Thread is one thread of a [Memory]. Runs of one thread exclude each other.
type Thread struct {
	graph   *Graph
	id      string
	history *history
}

// Run starts or continues the thread and returns when the run has finished, waits for answers, stopped at a breakpoint
// or failed. After a failure the thread can be continued: finished tasks do not run again.
//
// Errors: *pregel.NodeError, *pregel.RecursionError, *pregel.InvalidUpdateError, *pregel.EmptyInputError,
// *pregel.MultipleInterruptsError, *pregel.NoCheckpointError, or the cause of ctx.
func (t *Thread) Run(ctx context.Context, in pregel.Input, opts RunOptions) (RunResult, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return RunResult{}, err
	}
	defer release()
	thread, replay, err := t.history.from(t.id, opts.Checkpoint)
	if err != nil {
		return RunResult{}, err
	}
	keeper := t.history.keeper(thread, opts)
	loop, err := program.Start(thread, in, opts.engine(), replay, keeper.observe)
	if err != nil {
		return RunResult{}, err
	}
	err = drive(ctx, program, loop, opts, inMemory(t.graph, t.id, opts.Context))
	keeper.close()
	// A replay that made no checkpoint leaves the thread where it was: the newest checkpoint is its state.
	if old := t.history.thread.Head; old == nil || thread.Head.Checkpoint.Seq >= old.Checkpoint.Seq {
		t.history.thread = thread
	}
	if err != nil {
		return RunResult{}, err
	}
	return resultOf(program, loop)
}

// Invoke runs the graph once without a thread: nothing is kept, and a question cannot be answered.
func (g *Graph) Invoke(ctx context.Context, in pregel.Input, opts RunOptions) (RunResult, error) {
	program, err := g.Program()
	if err != nil {
		return RunResult{}, err
	}
	if in.Resume != nil {
		return RunResult{}, fmt.Errorf("graph %q: an answer needs a thread: without one nothing was kept to continue", g.Spec.Name)
	}
	loop, err := program.Start(pregel.NewThread(), in, opts.engine(), false, opts.Observer)
	if err != nil {
		return RunResult{}, err
	}
	if err := drive(ctx, program, loop, opts, inMemory(g, "", opts.Context)); err != nil {
		return RunResult{}, err
	}
	return resultOf(program, loop)
}

// State returns the thread's state: of the newest checkpoint when checkpoint is "", else of that one.
func (t *Thread) State(ctx context.Context, checkpoint string) (*pregel.Snapshot, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if checkpoint == "" {
		return program.Snapshot(t.history.thread, t.history.thread.Head, true)
	}
	record, ok := t.history.find(checkpoint)
	if !ok {
		return nil, &pregel.NoCheckpointError{Thread: t.id, Checkpoint: checkpoint}
	}
	return program.Snapshot(t.history.thread, record, false)
}

// History returns the thread's checkpoints, newest first.
func (t *Thread) History(ctx context.Context) ([]*pregel.Snapshot, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	records := t.history.records
	out := make([]*pregel.Snapshot, 0, len(records))
	for i := len(records) - 1; i >= 0; i-- {
		s, err := program.Snapshot(t.history.thread, records[i], false)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// belongs refuses a thread whose checkpoints were made by another graph: nothing could read them.
func (h *history) belongs(g *Graph, id string) error {
	print, err := Fingerprint(g.Spec)
	if err != nil {
		return err
	}
	if h.print == "" {
		h.print = print
	}
	if h.print != print {
		return fmt.Errorf("thread %q was begun with another graph than this %q: use another thread id", id, g.Spec.Name)
	}
	return nil
}

// open takes the thread for one call, and compiles its graph.
func (t *Thread) open(ctx context.Context) (*pregel.Program, func(), error) {
	program, err := t.graph.Program()
	if err != nil {
		return nil, nil, err
	}
	release, err := t.history.acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := t.history.belongs(t.graph, t.id); err != nil {
		release()
		return nil, nil, err
	}
	return program, release, nil
}

func (h *history) acquire(ctx context.Context) (release func(), err error) {
	select {
	case h.busy <- struct{}{}:
		return func() { <-h.busy }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *history) find(checkpoint string) (*pregel.Record, bool) {
	for _, r := range h.records {
		if r.Checkpoint.ID == checkpoint {
			return r, true
		}
	}
	return nil, false
}

// from returns the thread as a run finds it: at its head, or at an earlier checkpoint.
func (h *history) from(id, checkpoint string) (thread *pregel.Thread, replay bool, err error) {
	if checkpoint == "" {
		return h.thread, false, nil
	}
	record, ok := h.find(checkpoint)
	if !ok {
		return nil, false, &pregel.NoCheckpointError{Thread: id, Checkpoint: checkpoint}
	}
	return h.thread.At(record), true, nil
}

// keeper collects a run's checkpoints into the history.
type keeper struct {
	history *history
	opts    RunOptions
	thread  *pregel.Thread
	loaded  *pregel.Record
}

func (h *history) keeper(thread *pregel.Thread, opts RunOptions) *keeper {
	return &keeper{history: h, opts: opts, thread: thread, loaded: thread.Head}
}

func (k *keeper) observe(e pregel.Event) {
	if e.Kind == pregel.EventCheckpoint && e.Namespace == "" && k.opts.Durability != DurabilityExit {
		k.history.records = append(k.history.records, e.Checkpoint)
	}
	if e.Kind == pregel.EventCheckpoint && e.Namespace != "" {
		k.history.within[e.Namespace] = append(k.history.within[e.Namespace], e.Checkpoint)
	}
	if k.opts.Observer != nil {
		k.opts.Observer(e)
	}
}

// close keeps the one checkpoint that a run in exit mode leaves behind; its parent is the one the run began at.
func (k *keeper) close() {
	head := k.thread.Head
	if k.opts.Durability != DurabilityExit || head == nil || head == k.loaded {
		return
	}
	parent := ""
	if k.loaded != nil {
		parent = k.loaded.Checkpoint.ID
	}
	head.Checkpoint = head.Checkpoint.WithParent(parent)
	k.history.records = append(k.history.records, head)
}
