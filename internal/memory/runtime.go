package memory

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// Config is who may answer approvals, and who signs audits.
type Config struct {
	Gate  *approval.Gate // nil lets everything through
	Heads approval.HeadSigner
}

// Runtime keeps threads in this process. It is safe for concurrent use.
type Runtime struct {
	Config
	driver *taskrun.Memory

	mu      sync.Mutex
	threads map[string]*memoryThread
}

// New returns a runtime without threads.
func New(cfg Config) *Runtime {
	return &Runtime{Config: cfg, driver: taskrun.NewMemory(), threads: map[string]*memoryThread{}}
}

// memoryThread is one thread. Its fields below mu are of the newest run.
type memoryThread struct {
	id    string
	graph string
	// spec is the graph's that the thread began with: its checkpoints only mean something to that one.
	spec *pregel.Spec

	of        *Runtime
	observing sync.Mutex // events come from several goroutines, and are kept in one order
	trace     runtime.Trace
	effects   memoryEffects
	heard     memoryHeard
	tape      *recording

	mu sync.Mutex
	g  *graphadapter.Graph // that the newest run began with
	// life decides what the run owes to people and to time, over stands and open: where the engine stands, and what its tasks
	// ask. view is what people are given of all that.
	life    *life.Run
	stands  thread.View
	open    []pregel.OpenQuestion
	view    thread.View
	entries []approval.Entry   // of the audit, the newest of them
	keeps   *taskrun.Thread    // while effects are undone: the thread that is told of them
	settles *thread.SettleView // what that waits for
	cause   error
	options runtime.Start
	cancel  context.CancelCauseFunc
	drain   chan<- string
	runs    int
	gate    *graphadapter.Barrier // the newest run's
	held    bool                  // the run stands at its gate
	timer   *time.Timer           // of what is due first
	// done is closed when the newest run stopped, or is held by a pause; nil before the first.
	done chan struct{}
}

// thread returns the thread of that id, which belongs to one graph; the first run makes it.
func (m *Runtime) thread(g *graphadapter.Graph, id string, first bool) (*memoryThread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.threads[id]
	if !ok {
		t = &memoryThread{id: id, graph: g.Spec.Name, spec: g.Spec, of: m, g: g, tape: newRecording(),
			effects: newMemoryEffects()}
		t.life = life.New(id, t.graph, t, life.State{})
		if !first {
			return nil, t.refuse(thread.ErrNotFound, "it has never run")
		}
		m.threads[id] = t
	}
	if t.graph != g.Spec.Name {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Spec.Name, Thread: id,
			Message: fmt.Sprintf("thread %q belongs to graph %q, not to %q", id, t.graph, g.Spec.Name)}
	}
	if t.spec != g.Spec && !reflect.DeepEqual(t.spec, g.Spec) {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Spec.Name, Thread: id,
			Message: fmt.Sprintf("thread %q began with another version of graph %q", id, t.graph),
			Do:      "Use another thread id, or a new Memory."}
	}
	return t, nil
}

// StartRun implements runtime.Runtime.
func (m *Runtime) StartRun(ctx context.Context, g *graphadapter.Graph, r runtime.Start) (thread.View, error) {
	if err := runtime.CheckStart(r); err != nil {
		return thread.View{}, err
	}
	t, err := m.thread(g, r.Thread, r.Checkpoint == "" && (r.Input != nil || r.Control != nil))
	if errors.Is(err, thread.ErrNotFound) {
		return thread.View{}, runtime.NotBegun(r)
	}
	if err != nil {
		return thread.View{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	in := runtime.InputOf(r)
	begins := t.beginning(in, r.Checkpoint, r.Reason)
	by, err := t.provenBegin(ctx, begins, runtime.Asker{By: r.By, Token: r.Token})
	if err != nil {
		return t.view, err
	}
	t.options, t.g = r, g
	return t.begin(ctx, in, r.Checkpoint, life.Begins(by, begins)...)
}

// provenBegin is proven for what the thread goes on with; new input takes no proof.
func (t *memoryThread) provenBegin(ctx context.Context, b life.Beginning, a runtime.Asker) (life.Actor, error) {
	may := func() error { return t.mayBegin(b.Input, b.Checkpoint) }
	ops := b.Ops(t.stands.Status.Rests())
	if len(ops) == 0 || t.done == nil && b.From == "" {
		return life.Actor{Claimed: a.By}, may()
	}
	if len(ops) > 1 && t.of.Gate.Governs() {
		return life.Actor{}, t.refuse(thread.ErrBadInput, "a token is for one thing, and this is to "+string(ops[0].Op)+" and to "+
			string(ops[1].Op)+": do one after the other")
	}
	return t.proven(ctx, ops[0], a, may)
}

// mayBegin says why a run with that input cannot begin now; nil when it can, as far as is known before.
func (t *memoryThread) mayBegin(in pregel.Input, checkpoint string) error {
	if err := t.busy(); err != nil {
		return err
	}
	if c := t.view.Cancel; c != nil && c.Halted != "" && checkpoint == "" {
		return runtime.Halted(t.graph, t.id, c.Halted)
	}
	return runtime.CheckResume(t.open, t.graph, t.id, in.Resume)
}

// beginning is what the thread goes on with.
func (t *memoryThread) beginning(in pregel.Input, checkpoint, reason string) life.Beginning {
	b := life.Beginning{Failed: t.stands.Status.Failed() || t.stands.Status == thread.StatusCancelled, Checkpoint: checkpoint, Input: in, Reason: reason}
	for _, a := range life.AnswersTo(t.open, in.Resume) {
		b.Answered = append(b.Answered, a.QuestionID)
	}
	return b
}

// begin starts a run in the background; t.mu is held. One that is refused leaves the thread as it was; of one that begins
// the entries are noted.
func (t *memoryThread) begin(ctx context.Context, in pregel.Input, checkpoint string, entries ...approval.Entry) (thread.View, error) {
	opts := runtime.EngineOptions(t.options, t.Observe)
	opts.Checkpoint, opts.Use = checkpoint, t.of.use
	durability, fused := graphadapter.ModeOf(t.g.Spec, opts.Durability, t.options.Fused)
	opts.Durability = durability
	drain := make(chan string, 1)
	opts.Drain, opts.Emitted = drain, t.tape.emitted
	gate := &graphadapter.Barrier{}
	opts.Gate = gate
	program, err := t.g.Program()
	if err != nil {
		return t.view, err
	}
	rested := t.stands.Rests()
	forget := t.life.Accept("", life.AnswersTo(t.open, in.Resume), time.Now())
	t.tape.begins(rested, program, opts.Durability)
	run, err := t.of.driver.Thread(t.g, t.id).Telling(&t.effects).Begin(ctx, in, opts)
	if err != nil {
		forget()
		t.tape.ends()
		return t.view, runtime.Refusal(t.graph, t.id, err)
	}
	if t.life.GiveAnswers(); !rested { // what a run was told that is over is over, too
		t.listen()
		t.life = life.New(t.id, t.graph, t, t.life.Left())
	}
	t.runs++
	number := t.runs
	gate.Held = func(s *pregel.Snapshot) { t.heldUp(number, s) }
	t.stands = thread.View{Thread: t.id, Graph: t.graph, Status: thread.StatusRunning,
		RunID: fmt.Sprintf("run-%d", t.runs), Started: time.Now(), Durability: runtime.ModeShown(durability), Fused: fused}
	t.effects.begins(t.stands.RunID)
	t.cause, t.open, t.drain, t.gate = nil, nil, drain, gate
	t.done = make(chan struct{})
	t.drains()
	t.note(entries...)
	t.shown()
	t.time()
	// The run outlives the call that began it, as on any runtime.
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t.cancel = cancel
	go func() {
		defer cancel(nil)
		ended, err := run.Drive(runCtx)
		t.stopped(number, ended, err)
	}()
	return t.view, nil
}

// Observe is told what the engine reports.
func (t *memoryThread) Observe(e pregel.Event) {
	t.observing.Lock()
	defer t.observing.Unlock()
	t.trace.Observe(e)
	t.effects.Observe(e)
	t.heard.Observe(e)
	t.tape.Observe(e)
}

// WaitRun implements runtime.Runtime.
func (m *Runtime) WaitRun(ctx context.Context, g *graphadapter.Graph, threadID string) (thread.View, error) {
	t, err := m.thread(g, threadID, false)
	if err != nil {
		return thread.View{}, err
	}
	if err := t.settle(ctx); err != nil {
		return thread.View{}, err
	}
	defer t.mu.Unlock()
	if t.view.Status == thread.StatusPaused {
		return t.view, nil // also one that failed before
	}
	return t.view, t.cause
}

func (t *memoryThread) refuse(kind error, why string) error {
	return &thread.Error{Kind: kind, Graph: t.graph, Thread: t.id, Message: fmt.Sprintf("thread %q: %s", t.id, why)}
}
