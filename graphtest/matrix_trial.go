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
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
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
			answers, err := tr.answer(end.asked)
			if err != nil {
				return end, err
			}
			thread, in = tr.loop.Thread(), pregel.Input{Resume: &pregel.Resume{Answers: answers}}
			if tr.restore {
				if thread, err = tr.stored(thread); err != nil {
					return end, err
				}
			}
		case pregel.StatusBreakpoint:
			thread, in = tr.loop.Thread(), pregel.Input{}
		default:
			return end, tr.conclude(&end)
		}
	}
}

// stored is a thread as a later run finds it.
func (tr *trial) stored(thread *pregel.Thread) (*pregel.Thread, error) {
	raw, err := tr.program.EncodeThread(thread)
	if err != nil {
		return nil, err
	}
	return tr.program.DecodeThread(raw)
}

// answer gives each open question the answer that it had in the run without a crash. There the answers are given in
// their order, to the questions in the order of their tasks.
func (tr *trial) answer(asked map[string]pregel.Value) ([]pregel.Answer, error) {
	var out []pregel.Answer
	own := true // the questions are the graph's own: a segment that was lost has come no further either
	defer func() {
		if own {
			tr.suspect = segment.Suspicion{}
		}
	}()
	for _, q := range tr.program.OpenQuestions(tr.loop.Thread()) {
		v, err := tr.outside.person(q.Question)
		if err != nil {
			return nil, err
		}
		own = own && !taskrun.IsDoubt(q.Question)
		if v == nil {
			if v, err = tr.given(q, len(asked)); err != nil {
				return nil, err
			}
			asked[q.ID] = v
		}
		if v, err = decided(q.Question, v); err != nil {
			return nil, fmt.Errorf("the answer to the question %s of node %q: %w", q.Value, q.Node, err)
		}
		out = append(out, pregel.Answer{QuestionID: q.ID, Value: v, By: "graphtest"})
	}
	return out, nil
}

func (tr *trial) given(q pregel.OpenQuestion, before int) (pregel.Value, error) {
	if tr.m.want != nil {
		if v, ok := tr.m.want.asked[q.ID]; ok {
			return v, nil
		}
		return nil, fmt.Errorf("node %q asks %s, which it did not ask without the crash", q.Node, q.Value)
	}
	if before >= len(tr.m.settings.answers) {
		return nil, fmt.Errorf("node %q asks %s and there is no answer: give one more graphtest.Answer", q.Node, q.Value)
	}
	return tr.m.settings.answers[before], nil
}
