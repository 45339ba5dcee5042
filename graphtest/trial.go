package graphtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
)

// matrix are the runs of one graph on one input.
type matrix struct {
	graph    *graphadapter.Graph
	input    json.RawMessage
	settings settings
	want     *ending // without a crash; nil until it is known
}

// ending is how a run ended.
type ending struct {
	status string
	values map[string]string // canonical JSON
	books  []string
	// spent is what the thread's meter has counted; nothing without a budget.
	spent pregel.Amounts
	// asked are the answers that were given, by question.
	asked map[string]pregel.Value
	// points are those that the run came to after its last crash, in order.
	points []string
}

func orNothing(v string) string {
	if v == "" {
		return "nothing"
	}
	return v
}

// process is a worker that runs tasks until it crashes. What its goroutines do then has no effect: each of them ends at
// the next point that it comes to.
type process struct {
	of     *trial
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// crashes are what one run is to crash at, and the points that it comes to. It is safe for concurrent use.
type crashes struct {
	mu   sync.Mutex
	left []string // still to come, in order
	dead map[*process]bool
	seen []string // each point once, since the last crash
	met  map[string]bool
}

// reach notes that a worker came to a point, and reports whether it is no more.
func (c *crashes) reach(w *process, point string) (dead bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead[w] {
		return true
	}
	if len(c.left) > 0 && c.left[0] == point {
		c.left, c.dead[w] = c.left[1:], true
		c.seen, c.met = nil, map[string]bool{}
		return true
	}
	if !c.met[point] {
		c.met[point] = true
		c.seen = append(c.seen, point)
	}
	return false
}

// alive does something unless the worker has crashed, and reports whether it did.
func (c *crashes) alive(w *process, do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead[w] {
		return false
	}
	do()
	return true
}

// next reports whether the worker is to crash at that point, without being there.
func (c *crashes) next(w *process, point string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead[w] && len(c.left) > 0 && c.left[0] == point
}

func (c *crashes) isDead(w *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead[w]
}

// unused are the points that the run was to crash at and did not come to.
func (c *crashes) unused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// at is a point: the worker crashes there if it is told to. It does not return in a worker that has crashed.
func (w *process) at(point string) {
	if w.crash(point) {
		runtime.Goexit()
	}
}

// crash is at for goroutines that have to come back: it reports whether the worker is no more.
func (w *process) crash(point string) bool {
	dead := w.of.crashes.reach(w, point)
	if dead {
		w.cancel(ErrCrashed)
	}
	return dead
}

// matrixThread is the thread of every run of a matrix: keys and ids of questions are made of it.
const matrixThread = "matrix"

// trial is one run of the graph whose workers crash where they are told to.
type trial struct {
	m    *matrix
	mode Mode
	variant
	ctx     context.Context
	graph   *graphadapter.Graph
	program *pregel.Program
	outside *outside
	crashes crashes
	loop    *pregel.Loop
	life    *life.Run
	verify  func() error      // the test's own check of its outside
	suspect segment.Suspicion // of a segment that was lost, for those after it

	mu       sync.Mutex
	worker   *process
	problems []string
}

// variant is what else than a crash interrupts a run.
type variant struct {
	restore bool // it is suspended and restored whenever it can be
	yield   bool // its tasks are given back at every second record
	behind  bool // in async mode, the newest heartbeat is always lost
}

// live is the worker that runs now; after a crash it is another one.
func (tr *trial) live() *process {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.worker == nil || tr.crashes.isDead(tr.worker) {
		tr.worker = &process{of: tr}
		tr.worker.ctx, tr.worker.cancel = context.WithCancelCause(tr.ctx)
	}
	return tr.worker
}

// wrong notes what must not be.
func (tr *trial) wrong(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if problem := fmt.Sprintf(format, args...); !slices.Contains(tr.problems, problem) {
		tr.problems = append(tr.problems, problem)
	}
}

func (tr *trial) close() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.worker != nil {
		tr.worker.cancel(nil)
	}
}

// batch drives the loop with each task in an activity of its own, until a superstep begins at which the batch is to stop.
// It is the taskrun.Runner and the taskrun.Guard of that.
type batch struct {
	*trial
	suspect segment.Suspicion
	stops   bool // before the next superstep that begins

	mu      sync.Mutex
	running int
	begun   bool
	err     error // why the run cannot go on
}

// tasks runs the loop as the workflow does in sync mode: each task by itself.
func (tr *trial) tasks() error {
	for {
		err := tr.batch(segment.Suspicion{}, tr.restore)
		if err != nil || !tr.restore || tr.loop.Status() != pregel.StatusRunning {
			return err
		}
		if err := tr.restored(); err != nil {
			return err
		}
	}
}

// restored goes on with the loop as it is after it was stored.
func (tr *trial) restored() error {
	suspended, err := tr.loop.Suspend()
	if err == nil {
		tr.loop, err = tr.program.Restore(suspended, nil)
	}
	return err
}

func (tr *trial) batch(suspect segment.Suspicion, stops bool) error {
	b := &batch{trial: tr, suspect: suspect, stops: stops}
	d := taskrun.NewDriver(tr.program, tr.loop, graphadapter.RunOptions{}, b, b)
	defer d.Close()
	_ = d.Drive(tr.ctx) // the run is not held here: there is no gate
	tr.loop.PutBack(d.Queue()...)
	return b.err
}

// Root implements taskrun.Runner.
func (b *batch) Root() *graphadapter.Graph { return b.graph }

// Begin implements taskrun.Runner: the task runs in its activity.
func (b *batch) Begin(t *pregel.Task, _ *taskrun.Env) *pregel.Outcome {
	o, err := b.activity(t, b.suspect.All || slices.Contains(b.suspect.Tasks, t.Key()))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = errors.Join(b.err, err)
	return &o
}

// Open implements taskrun.Guard.
func (b *batch) Open(_ context.Context, queue []*pregel.Task, _ bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || b.stops && b.begun && b.running == 0 {
		return false
	}
	b.begun = b.begun || len(queue) > 0
	b.running += len(queue)
	return true
}

// Arrived implements taskrun.Guard.
func (b *batch) Arrived(_ *pregel.Task, o pregel.Outcome) (pregel.Outcome, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	return o, b.err == nil
}

// errLost says that a worker crashed before the execution ended.
var errLost = errors.New("the worker is lost")

// executed runs an execution in goroutines of the worker, and returns errLost when that crashed.
func executed[R any](w *process, run func() (R, error)) (out R, err error) {
	done := make(chan struct{})
	err = errLost
	go func() {
		defer close(done)
		r, failed := run()
		if w.of.crashes.isDead(w) {
			runtime.Goexit()
		}
		out, err = r, failed
	}()
	<-done
	return out, err
}

// sent is a value as it arrives: whatever is not JSON is gone.
func sent[V any](v V) (V, error) {
	var out V
	raw, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(raw, &out)
}
