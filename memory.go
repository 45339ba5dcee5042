package superstep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/graphadapter/trail"
)

// Memory is a [Runtime] that keeps threads in this process, for tests and for graphs that need no durability. It is
// safe for concurrent use. Runs go on in the background until they wait or end; what a state call asks of a thread
// that runs is answered when it stops.
type Memory struct {
	driver *taskrun.Memory
	gate   *approval.Gate // nil lets everything through
	heads  approval.HeadSigner

	mu      sync.Mutex
	threads map[string]*memoryThread
}

// NewMemory returns a Memory without threads.
func NewMemory(opts ...MemoryOption) *Memory {
	m := &Memory{driver: taskrun.NewMemory(), threads: map[string]*memoryThread{}}
	for _, o := range opts {
		o.applyMemory(m)
	}
	return m
}

// memoryThread is one thread. Its fields below mu are of the newest run.
type memoryThread struct {
	id    string
	graph string
	// spec is the graph's that the thread began with: its checkpoints only mean something to that one.
	spec *pregel.Spec

	trace    trace
	effects  memoryEffects
	audit    *memoryAudit
	requests memoryRequests
	undo     *memoryUndo // under mu: while effects are undone
	// ending is the request that its newest run is being cancelled for; nil once that is in the audit.
	ending   *CancelRequest
	endingBy trail.Actor

	mu        sync.Mutex
	view      ThreadView
	cause     error
	options   StartRequest
	open      []pregel.Question
	tape      *tape
	cancel    context.CancelCauseFunc
	drain     chan<- string
	runs      int
	pause     memoryPause
	events    memoryEvents
	approvals memoryApprovals
	// done is closed when the newest run stopped, or is held by a pause; nil before the first.
	done chan struct{}
}

// thread returns the thread of that id, which belongs to one graph; the first run makes it.
func (m *Memory) thread(g *graphadapter.Graph, id string, first bool) (*memoryThread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.threads[id]
	if !ok {
		t = &memoryThread{id: id, graph: g.Spec.Name, spec: g.Spec, trace: trace{asked: map[string]asked{}}, tape: newTape(),
			effects: newMemoryEffects(), audit: newMemoryAudit(id)}
		if !first {
			return nil, t.refuse(ErrNotFound, "it has never run")
		}
		m.threads[id] = t
	}
	if t.graph != g.Spec.Name {
		return nil, &Error{Kind: ErrBadInput, Graph: g.Spec.Name, Thread: id,
			Message: fmt.Sprintf("thread %q belongs to graph %q, not to %q", id, t.graph, g.Spec.Name)}
	}
	if t.spec != g.Spec && !reflect.DeepEqual(t.spec, g.Spec) {
		return nil, &Error{Kind: ErrBadInput, Graph: g.Spec.Name, Thread: id,
			Message: fmt.Sprintf("thread %q began with another version of graph %q", id, t.graph),
			Do:      "Use another thread id, or a new Memory."}
	}
	return t, nil
}

func (m *Memory) startRun(ctx context.Context, g *graphadapter.Graph, r StartRequest) (ThreadView, error) {
	if err := checkStart(r); err != nil {
		return ThreadView{}, err
	}
	t, err := m.thread(g, r.Thread, r.Checkpoint == "" && (r.Input != nil || r.Control != nil))
	if errors.Is(err, ErrNotFound) {
		return ThreadView{}, notBegun(r)
	}
	if err != nil {
		return ThreadView{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	in := inputOf(r)
	if err := t.pastTheGate(in.Resume); err != nil {
		return t.view, err
	}
	begins := t.beginning(in, r.Checkpoint, r.Reason)
	if err := t.mayBegin(in, r.Checkpoint); err != nil {
		return t.view, err
	}
	by, err := t.provenBegin(ctx, m, begins, asker{by: r.By, token: r.Token})
	if err != nil {
		return t.view, err
	}
	t.options = r
	return t.begin(ctx, m, g, in, r.Checkpoint, trail.Begins(by, begins)...)
}

// mayBegin says why a run with that input cannot begin now; nil when it can, as far as is known before.
func (t *memoryThread) mayBegin(in pregel.Input, checkpoint string) error {
	if err := t.busy(); err != nil {
		return err
	}
	if c := t.view.Cancel; c != nil && c.Halted != "" && checkpoint == "" {
		return halted(t.graph, t.id, c.Halted)
	}
	return t.checkAnswers(in.Resume)
}

// beginning is what the thread goes on with.
func (t *memoryThread) beginning(in pregel.Input, checkpoint, reason string) trail.Beginning {
	b := trail.Beginning{Failed: t.view.Status.Failed() || t.view.Status == StatusCancelled, Checkpoint: checkpoint, Input: in, Reason: reason}
	for i, q := range t.open {
		if _, given := answerTo(in.Resume, q.ID, i == 0); given {
			b.Answered = append(b.Answered, q.ID)
		}
	}
	return b
}

// begin starts a run in the background; t.mu is held. One that is refused leaves the thread as it was; of one that begins
// the entries are noted.
func (t *memoryThread) begin(ctx context.Context, m *Memory, g *graphadapter.Graph, in pregel.Input, checkpoint string, entries ...approval.Entry) (ThreadView, error) {
	if err := t.mayBegin(in, checkpoint); err != nil {
		return t.view, err
	}
	opts := engineOptions(t.options, t.observe)
	opts.Checkpoint, opts.Use = checkpoint, m.use
	durability, fused := graphadapter.ModeOf(g.Spec, opts.Durability, t.options.Fused)
	opts.Durability = durability
	drain := make(chan string, 1)
	opts.Drain, opts.Emitted = drain, t.tape.emitted
	gate := &graphadapter.Barrier{}
	opts.Gate = gate
	program, err := g.Program()
	if err != nil {
		return t.view, err
	}
	t.tape.begins(t.view.rests(), program, opts.Durability)
	run, err := m.driver.Thread(g, t.id).Telling(&t.effects).Begin(ctx, in, opts)
	if err != nil {
		t.tape.ends()
		return t.view, refusal(t.graph, t.id, err)
	}
	t.runs++
	number := t.runs
	gate.Held = func(s *pregel.Snapshot) { t.held(number, s) }
	t.view = ThreadView{Thread: t.id, Graph: t.graph, Status: StatusRunning,
		RunID: fmt.Sprintf("run-%d", t.runs), Started: time.Now(), Durability: modeShown(durability), Fused: fused}
	t.effects.begins(t.view.RunID)
	t.cause, t.open, t.drain, t.pause.gate, t.pause.answers = nil, nil, drain, gate, nil
	t.done = make(chan struct{})
	t.events.waits = nil
	t.events.again = func(given []pregel.Answer) {
		if _, err := t.begin(context.Background(), m, g, pregel.Input{Resume: &pregel.Resume{Answers: given}}, ""); err != nil {
			t.view.Problem = err.Error()
		}
	}
	// The run outlives the call that began it, as on any runtime.
	t.audit.note(entries...)
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t.cancel = cancel
	go func() {
		defer cancel(nil)
		ended, err := run.Drive(runCtx)
		t.stopped(number, ended, err)
	}()
	return t.view, nil
}

func (t *memoryThread) observe(e pregel.Event) {
	t.trace.mu.Lock()
	defer t.trace.mu.Unlock()
	t.trace.observe(e)
	t.effects.observe(e)
	t.audit.observe(e)
	t.tape.observe(e)
}

func (m *Memory) waitRun(ctx context.Context, g *graphadapter.Graph, thread string) (ThreadView, error) {
	t, err := m.thread(g, thread, false)
	if err != nil {
		return ThreadView{}, err
	}
	if err := t.settle(ctx); err != nil {
		return ThreadView{}, err
	}
	defer t.mu.Unlock()
	if t.view.Status == StatusPaused {
		return t.view, nil // also one that failed before
	}
	return t.view, t.cause
}

func (m *Memory) retryRun(ctx context.Context, g *graphadapter.Graph, r RetryRequest) (ThreadView, error) {
	if err := checkAsker(r.Thread, r.By, r.Reason); err != nil {
		return ThreadView{}, err
	}
	t, err := m.thread(g, r.Thread, false)
	if err != nil {
		return ThreadView{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.busy(); err != nil {
		return t.view, err
	}
	switch {
	case t.done == nil:
		return t.view, t.refuse(ErrNotFound, "it has never run")
	case !t.view.Status.Failed() && t.view.Status != StatusCancelled:
		return t.view, t.refuse(ErrNotFailed, "its run is "+string(t.view.Status))
	}
	in := pregel.Input{}
	if t.pause.answers != nil { // taken before it was cancelled
		in.Resume = &pregel.Resume{Answers: t.pause.answers, AskAgain: true}
	}
	by, err := t.proven(ctx, m, approval.Control{Op: approval.OpRetry}, asker{by: r.By, token: r.Token})
	if err != nil {
		return t.view, err
	}
	return t.begin(ctx, m, g, in, "", trail.Retried(by, r.Reason))
}

func (t *memoryThread) refuse(kind error, why string) error {
	return &Error{Kind: kind, Graph: t.graph, Thread: t.id, Message: fmt.Sprintf("thread %q: %s", t.id, why)}
}
