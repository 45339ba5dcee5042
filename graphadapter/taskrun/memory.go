package taskrun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
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
	busy   chan struct{} // holds a token while a run is under way
	print  string        // the fingerprint of the graph that the thread runs, "" before the first run
	thread *pregel.Thread
	past   *past.Past
	tells  Standing // nil for nobody
	// dropped says that the superstep that runs next was dropped, and doubted is the one of the present run, -1 for none: its tasks look
	// up what they may have done outside before that.
	dropped bool
	doubted int
}

// Standing is told where a thread stands in whoever keeps it in this process, beside what an observer of its runs is told.
type Standing interface {
	// Stands: the thread goes on from there, or stands there.
	Stands(*pregel.Program, *pregel.Thread)
	// Made: a checkpoint of the root graph was made outside of a run.
	Made(*pregel.Record)
}

// stands notes where the thread stands, and the checkpoints of the root graph that were made on the way.
func (h *history) stands(p *pregel.Program, t *pregel.Thread, made ...*pregel.Record) {
	if h.tells == nil {
		return
	}
	for _, r := range made {
		h.tells.Made(r)
	}
	h.tells.Stands(p, t)
}

func newHistory() *history {
	past := past.NewPast()
	past.Clock = func(int64) time.Time { return time.Now().Truncate(time.Millisecond).UTC() }
	return &history{busy: make(chan struct{}, 1), thread: pregel.NewThread().Begin(rand.Text()), past: past, doubted: -1}
}

// Thread returns the thread of that id, which begins with its first run.
func (m *Memory) Thread(g *graphadapter.Graph, id string) *Thread {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.threads[id]
	if !ok {
		h = newHistory()
		m.threads[id] = h
	}
	return &Thread{graph: g, id: id, history: h}
}

// Telling makes the thread tell s where it stands, and returns it.
func (t *Thread) Telling(s Standing) *Thread {
	t.history.tells = s
	return t
}

// Thread is one thread of a [Memory]. Runs of one thread exclude each other.
type Thread struct {
	graph   *graphadapter.Graph
	id      string
	history *history
}

// Run starts or continues the thread and returns when the run has finished, waits for answers, stands still or failed.
// After a failure the thread can be continued: finished tasks do not run again.
//
// Errors: those of Begin; *pregel.NodeError, *pregel.RecursionError, *pregel.InvalidUpdateError, or the cause of ctx.
func (t *Thread) Run(ctx context.Context, in pregel.Input, opts graphadapter.RunOptions) (graphadapter.RunResult, error) {
	run, err := t.Begin(ctx, in, opts)
	if err != nil {
		return graphadapter.RunResult{}, err
	}
	return run.Drive(ctx)
}

// Run is a run of a thread that has begun. It holds the thread until Drive returns, so Drive must be called.
type Run struct {
	of      *Thread
	opts    graphadapter.RunOptions
	program *pregel.Program
	thread  *pregel.Thread
	loop    *pregel.Loop
	release func()
}

// Begin takes in what a run starts with; no node runs yet. An error leaves the thread as it was.
//
// Errors: *pregel.EmptyInputError, *pregel.MultipleInterruptsError, *pregel.NoCheckpointError,
// *pregel.InvalidUpdateError, or the cause of ctx while another run has the thread.
func (t *Thread) Begin(ctx context.Context, in pregel.Input, opts graphadapter.RunOptions) (*Run, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	thread, replay, err := t.history.from(t.id, opts.Checkpoint, pregel.UseFor(in))
	if err != nil {
		release()
		return nil, err
	}
	past := t.history.past
	opts.Durability, _ = graphadapter.ModeOf(program.Spec, opts.Durability, false)
	past.Began(0, program, thread, opts.Durability)
	t.history.stands(program, thread)
	loop, err := program.Start(thread, in, opts.Engine(), replay, past.Observer(opts.Observer))
	if err != nil {
		past.Stands(t.history.thread)
		t.history.stands(program, t.history.thread)
		release()
		return nil, err
	}
	if h := t.history; h.dropped {
		h.dropped, h.doubted = false, loop.Step()
	}
	return &Run{of: t, opts: opts, program: program, thread: thread, loop: loop, release: release}, nil
}

// Drive runs the run's tasks until it has finished, waits for answers, stands still or failed. It returns [ErrSuperseded]
// when the thread was updated while the run stood at its gate.
func (r *Run) Drive(ctx context.Context) (graphadapter.RunResult, error) {
	defer func() { r.release() }() // another one once it was held
	h := r.of.history
	opts := r.opts
	opts.Hold = r.hold
	doubted := h.doubted
	err := drive(ctx, r.program, r.loop, opts, inMemory{r.of.graph, r.of.id, r.opts, func() bool { return r.loop.Step() == doubted }})
	if r.loop.Status() != pregel.StatusWaiting {
		h.doubted = -1
	}
	if errors.Is(err, graphadapter.ErrSuperseded) {
		return graphadapter.RunResult{}, err
	}
	h.thread = pregel.Newer(h.thread, r.thread)
	h.past.Ended(0, r.loop.Status(), h.thread)
	h.stands(r.program, h.thread)
	if err != nil {
		return graphadapter.RunResult{Meter: h.thread.Meter()}, err
	}
	return resultOf(r.program, r.loop)
}

// Branch makes a new thread, as, that begins with a checkpoint of this one, and with the history up to there: run it from that
// checkpoint. "" is the newest one. With asCopy the new thread stands as this one stood there.
// It returns the checkpoint, and false when the thread as has begun already.
//
// Errors: *pregel.NoCheckpointError, or the cause of ctx while a run has one of the threads.
func (t *Thread) Branch(ctx context.Context, checkpoint string, asCopy bool, as *Thread) (from string, fresh bool, err error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return "", false, err
	}
	if checkpoint == "" {
		checkpoint = t.history.past.Newest()
	}
	thread, ok := t.history.past.Leave(checkpoint, asCopy, t.id)
	before := t.history.past.Until(checkpoint)
	release()
	if !ok {
		return checkpoint, false, &pregel.NoCheckpointError{Thread: t.id, Checkpoint: checkpoint}
	}
	_, release, err = as.open(ctx)
	if err != nil {
		return checkpoint, false, err
	}
	defer release()
	if as.history.thread.Head != nil {
		return checkpoint, false, nil
	}
	before.Clock = as.history.past.Clock
	as.history.thread, as.history.past = thread.Begin(rand.Text()), before
	as.history.past.Began(0, program, thread, "")
	return checkpoint, true, nil
}

// Questions returns the open questions of the thread, those of subgraphs included, in task order.
func (t *Thread) Questions(ctx context.Context) ([]pregel.OpenQuestion, error) {
	program, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return program.OpenQuestions(t.history.thread), nil
}

// Invoke runs the graph once without a thread: nothing is kept, and a question cannot be answered.
func Invoke(ctx context.Context, g *graphadapter.Graph, in pregel.Input, opts graphadapter.RunOptions) (graphadapter.RunResult, error) {
	program, err := g.Program()
	if err != nil {
		return graphadapter.RunResult{}, err
	}
	if in.Resume != nil {
		return graphadapter.RunResult{}, fmt.Errorf("graph %q: an answer needs a thread: without one nothing was kept to continue", g.Spec.Name)
	}
	loop, err := program.Start(pregel.NewThread().Begin(rand.Text()), in, opts.Engine(), false, opts.Observer)
	if err != nil {
		return graphadapter.RunResult{}, err
	}
	if err := drive(ctx, program, loop, opts, inMemory{graph: g, opts: opts}); err != nil {
		return graphadapter.RunResult{}, err
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
		return program.Now(t.history.thread)
	}
	s, ok, err := t.history.past.Snapshot(checkpoint)
	if !ok {
		return nil, &pregel.NoCheckpointError{Thread: t.id, Checkpoint: checkpoint}
	}
	return s, err
}

// When is when a checkpoint was made; zero when there is none with that id, or it came with the thread.
func (t *Thread) When(ctx context.Context, checkpoint string) (time.Time, error) {
	_, release, err := t.open(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer release()
	return t.history.past.When(checkpoint), nil
}

// History returns the thread's checkpoints, newest first.
func (t *Thread) History(ctx context.Context) ([]past.Checkpoint, error) {
	return t.SubgraphHistory(ctx, nil, "")
}

// SubgraphHistory returns the checkpoints of the subgraph that is under way in the tasks of the nodes of that path, newest first, or
// that was at a checkpoint of the root graph.
func (t *Thread) SubgraphHistory(ctx context.Context, path []string, checkpoint string) ([]past.Checkpoint, error) {
	_, release, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return t.history.past.HistoryAt(path, checkpoint)
}

// belongs refuses a thread whose checkpoints were made by another graph: nothing could read them.
func (h *history) belongs(g *graphadapter.Graph, id string) error {
	print, err := g.Fingerprint()
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

// from returns the thread as a run finds it: at its head, or at an earlier checkpoint.
func (h *history) from(id, checkpoint string, use pregel.Use) (thread *pregel.Thread, replay bool, err error) {
	if checkpoint == "" {
		return h.thread, false, nil
	}
	thread, ok := h.past.At(checkpoint, use)
	if !ok {
		return nil, false, &pregel.NoCheckpointError{Thread: id, Checkpoint: checkpoint}
	}
	return thread, true, nil
}

// hold waits at the shut gate. The thread is free meanwhile: an update ends the run.
func (r *Run) hold(ctx context.Context, opened <-chan struct{}) error {
	h := r.of.history
	h.thread = pregel.Newer(h.thread, r.thread)
	standing := h.thread
	snapshot, err := r.program.Now(standing)
	if err != nil {
		return err
	}
	r.release()
	if r.opts.Gate.Held != nil {
		r.opts.Gate.Held(snapshot)
	}
	select {
	case <-opened:
	case <-ctx.Done():
	}
	r.release, err = h.acquire(context.WithoutCancel(ctx))
	if err == nil && h.thread != standing {
		err = graphadapter.ErrSuperseded
	}
	return err
}

// inMemory runs the tasks of a thread of this process.
type inMemory struct {
	graph  *graphadapter.Graph
	thread string
	opts   graphadapter.RunOptions
	// suspect reports whether the tasks of this superstep may have acted outside before; nil for never.
	suspect func() bool
}

func (m inMemory) Root() *graphadapter.Graph { return m.graph }

func (m inMemory) Begin(task *pregel.Task, env *Env) *pregel.Outcome {
	*env = Env{Thread: m.thread, Context: m.opts.Context, Requester: m.opts.Requester, Use: m.opts.Use, Suspect: m.suspect != nil && m.suspect()}
	if m.opts.Emitted != nil {
		env.Emit = func(e pregel.Emission) { m.opts.Emitted(task, e) }
	}
	return nil
}

func resultOf(program *pregel.Program, loop *pregel.Loop) (graphadapter.RunResult, error) {
	result := graphadapter.RunResult{Output: loop.Output(), Meter: loop.Thread().Meter()}
	if result.Output == nil { // nothing was written: the thread has what it had
		result.Output = program.Output(loop.Thread())
	}
	switch loop.Status() {
	case pregel.StatusDone:
	case pregel.StatusWaiting:
		for _, q := range program.OpenQuestions(loop.Thread()) {
			result.Questions = append(result.Questions, q.Question)
		}
	case pregel.StatusBreakpoint:
		result.Breakpoint = true
	case pregel.StatusDrained:
		var drained *pregel.DrainedError
		if errors.As(loop.Err(), &drained) {
			result.Drained = drained.Reason
		}
	default:
		return graphadapter.RunResult{}, fmt.Errorf("superstep: the loop of graph %q ended in status %d", program.Spec.Name, loop.Status())
	}
	return result, nil
}
