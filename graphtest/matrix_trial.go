package graphtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
)

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

// run runs the graph to its end, with workers that crash at these points, one after the other.
func (m *matrix) run(t testing.TB, mode Mode, crashAt []string, v variant) (ending, error) {
	tr := &trial{m: m, mode: mode, variant: v, ctx: t.Context(),
		crashes: crashes{left: crashAt, dead: map[*process]bool{}, met: map[string]bool{}}}
	if err := tr.open(t); err != nil {
		return ending{}, err
	}
	defer tr.close()
	end, err := tr.drive()
	if err != nil {
		return end, err
	}
	if unused := tr.crashes.unused(); len(unused) > 0 && !strings.Contains(unused[0], heartbeatPoint) {
		tr.wrong("the run never came to the point %s: what it does depends on more than its input and answers", unused[0])
	}
	end.books = tr.outside.books()
	if tr.verify != nil {
		if err := tr.verify(); err != nil {
			tr.wrong("the outside is not as it should be: %v", err)
		}
	}
	if len(tr.problems) > 0 {
		return end, errors.New(strings.Join(tr.problems, "\n"))
	}
	return end, nil
}

// open makes the graph as this run has it: with a cache of its own, because what another run kept is not to be found.
func (tr *trial) open(t testing.TB) error {
	graph := tr.m.graph
	if tr.m.settings.each != nil {
		made, verify := tr.m.settings.each(t)
		graph, tr.verify = made.Adapter(), verify
	}
	tr.outside = newOutside(&tr.m.settings, tr.m.settings.each != nil)
	tr.graph = &graphadapter.Graph{Spec: graph.Spec, Nodes: graph.Nodes, Reducers: graph.Reducers, Subgraphs: graph.Subgraphs,
		CheckInput: graph.CheckInput, CheckUpdate: graph.CheckUpdate, Effects: graph.Effects, Cache: graphadapter.NewMemoryCache(0, 0)}
	program, err := tr.graph.Program()
	tr.program = program
	return err
}

func (tr *trial) close() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.worker != nil {
		tr.worker.cancel(nil)
	}
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

// drive begins the run and goes on with answers until it has ended.
func (tr *trial) drive() (ending, error) {
	end := ending{asked: map[string]pregel.Value{}}
	tr.life = life.New(matrixThread, tr.graph.Spec.Name, tr, life.State{})
	thread, in := pregel.NewThread(), pregel.Input{Value: tr.m.input}
	for {
		var err error
		if tr.loop, err = tr.program.Start(thread, in, pregel.Options{RecursionLimit: graphadapter.DefaultRecursionLimit}, false, nil); err != nil {
			return end, err
		}
		if tr.mode == Sync {
			err = tr.tasks()
		} else {
			err = tr.segments()
		}
		if err != nil {
			return end, err
		}
		switch status := tr.loop.Status(); status {
		case pregel.StatusWaiting:
			if err := tr.answer(end.asked); err != nil {
				return end, err
			}
			in = pregel.Input{Resume: &pregel.Resume{Answers: tr.life.GiveAnswers()}}
		case pregel.StatusBreakpoint:
			in = pregel.Input{}
		default:
			return end, tr.conclude(&end)
		}
		if thread = tr.loop.Thread(); tr.restore {
			if thread, err = tr.stored(thread); err != nil {
				return end, err
			}
		}
	}
}

// stored is a thread as a later run finds it, with what it knows of people.
func (tr *trial) stored(thread *pregel.Thread) (*pregel.Thread, error) {
	known, err := sent(tr.life.State)
	if err != nil {
		return nil, err
	}
	tr.life = life.New(matrixThread, tr.graph.Spec.Name, tr, known)
	raw, err := tr.program.EncodeThread(thread)
	if err != nil {
		return nil, err
	}
	return tr.program.DecodeThread(raw)
}
