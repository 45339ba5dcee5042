package memory

import (
	"context"
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

// Config is who may answer approvals, who signs audits, and what nodes find in their context.
type Config struct {
	Gate    *approval.Gate // nil lets everything through
	Heads   approval.HeadSigner
	Context func(context.Context) context.Context // nil for that of who begins a run
}

// Runtime keeps threads in this process. It is safe for concurrent use.
type Runtime struct {
	Config
	driver *taskrun.Memory

	mu      sync.Mutex
	threads map[string]*threadRun
}

// New returns a runtime without threads.
func New(cfg Config) *Runtime {
	if cfg.Context == nil {
		cfg.Context = func(ctx context.Context) context.Context { return ctx }
	}
	return &Runtime{Config: cfg, driver: taskrun.NewMemory(), threads: map[string]*threadRun{}}
}

// threadRun is one thread. Its fields below mu are of the newest run.
type threadRun struct {
	id    string
	graph string
	// spec is the graph's that the thread began with: its checkpoints only mean something to that one.
	spec *pregel.Spec

	of        *Runtime
	observing sync.Mutex // events come from several goroutines, and are kept in one order
	trace     runtime.Trace
	effects   effects
	heard     heard
	tape      *recording
	decoded   sync.Map // of its state: see graphadapter.RunOptions

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
func (m *Runtime) thread(g *graphadapter.Graph, id string, first bool) (*threadRun, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.threads[id]
	if !ok {
		t = &threadRun{id: id, graph: g.Spec.Name, spec: g.Spec, of: m, g: g, tape: newRecording(),
			effects: newEffects()}
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

func (t *threadRun) refuse(kind error, why string) error {
	return &thread.Error{Kind: kind, Graph: t.graph, Thread: t.id, Message: fmt.Sprintf("thread %q: %s", t.id, why)}
}

// settle waits until no run is under way and returns with t.mu held. With an error t.mu is not held.
func (t *threadRun) settle(ctx context.Context) error {
	for {
		t.mu.Lock()
		done := t.done
		if done == nil { // its first run is about to begin
			t.mu.Unlock()
			return t.refuse(thread.ErrNotFound, "it has never run")
		}
		if t.view.Status != thread.StatusRunning {
			return nil
		}
		t.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begun returns a thread that has checkpoints, or a run that is about to make some. Its lock is held.
func (m *Runtime) begun(g *graphadapter.Graph, id string) (*threadRun, error) {
	t, err := m.thread(g, id, false)
	if err != nil {
		return nil, err
	}
	if t.mu.Lock(); t.done == nil {
		defer t.mu.Unlock()
		return nil, t.refuse(thread.ErrNotFound, "it has never run")
	}
	return t, nil
}
