package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// temporalEngine runs threads as workflows on a Temporal server, through the calls that users of the library have.
type temporalEngine struct {
	*deployment
	fused bool // consecutive supersteps run in one activity, in sync mode too
}

func newTemporalEngine(address string, fused bool, out io.Writer) (engine, error) {
	d, err := deploy(address, out)
	if err != nil {
		return nil, err
	}
	return &temporalEngine{d, fused}, nil
}

func (e *temporalEngine) serve(ctx context.Context, graphs []*graphadapter.Graph) (func() error, error) {
	if len(graphs) == 0 { // none of the cases compiles
		return func() error { return nil }, nil
	}
	return e.work(ctx, graphs)
}

// patience is long enough for the longest case beside all others on a busy machine.
func (*temporalEngine) patience() time.Duration { return 3 * time.Minute }

// parallel is what keeps server and worker busy on two cores: a case mostly waits for round trips.
func (*temporalEngine) parallel() int { return 16 }

func (e *temporalEngine) open(_ context.Context, g *graphadapter.Graph) (threads, error) {
	c, err := e.clientOf(g.Spec.Name)
	if err != nil {
		return nil, err
	}
	return &temporalThreads{
		client: c, graph: g, fused: e.fused, prefix: g.Spec.Name + "-" + strings.ToLower(rand.Text()[:8]) + "/",
		begun: map[string]bool{}, offsets: map[string]string{},
	}, nil
}

type temporalThreads struct {
	client *superstep.Client
	graph  *graphadapter.Graph
	fused  bool
	prefix string // of the thread ids of this case
	// begun are the threads that there are, offsets where the streams of each ended last.
	begun   map[string]bool
	offsets map[string]string
	runs    []execution // in which its actions ended
	single  int         // how many runs without a thread there were
}

// execution is one run of a thread.
type execution struct{ thread, run string }

// allModes are streamed always, so that there is an offset behind everything that an action did.
var allModes = []thread.StreamMode{thread.StreamValues, thread.StreamUpdates, thread.StreamCustom,
	thread.StreamTasks, thread.StreamCheckpoints}

func (m *temporalThreads) run(ctx context.Context, threadID string, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error {
	id := m.prefix + threadID
	_, err := m.client.Start(ctx, thread.StartRequest{
		Graph: m.graph.Spec.Name, Thread: id, Input: []byte(in.Value), Resume: in.Resume, Control: in.Control,
		Checkpoint: opts.Checkpoint, Durability: superstep.Durability(opts.Durability), Fused: m.fused, RecursionLimit: opts.RecursionLimit,
		InterruptBefore: opts.InterruptBefore, InterruptAfter: opts.InterruptAfter,
	})
	if errors.Is(err, thread.ErrNotFound) && !m.begun[id] {
		return &pregel.EmptyInputError{Graph: m.graph.Spec.Name} // without input a thread cannot begin
	}
	if err != nil {
		return err
	}
	m.begun[id] = true
	if err := m.drain(ctx, id, rec); err != nil {
		return fmt.Errorf("streaming: %w", err)
	}
	return m.ended(ctx, id)
}

// drain reads what the thread streamed since the last action. The next one begins behind all of it, also behind what was
// not asked for. A part depends on the modes besides its own only when none of them is handed out while a superstep runs.
func (m *temporalThreads) drain(ctx context.Context, id string, rec *recorder) error {
	req := thread.StreamRequest{Thread: id, Modes: allModes, Subgraphs: true, From: m.offsets[id]}
	if rec != nil && !rec.subgraphs && !slices.Contains(rec.modes, modeCustom) {
		asked := req
		asked.Modes, asked.Subgraphs = rec.streamModes(), false
		if _, err := m.read(ctx, asked, rec); err != nil {
			return err
		}
		rec = nil
	}
	at, err := m.read(ctx, req, rec)
	m.offsets[id] = at
	return err
}

// read reads a stream until the thread stands still, and returns where it ended.
func (m *temporalThreads) read(ctx context.Context, req thread.StreamRequest, rec *recorder) (at string, err error) {
	at = req.From
	for part, err := range m.client.Stream(ctx, req) {
		if err != nil {
			return at, err
		}
		at = part.Offset
		if rec != nil {
			rec.part(part)
		}
	}
	return at, nil
}

// ended is why the thread's newest run failed, nil when it did not.
func (m *temporalThreads) ended(ctx context.Context, id string) error {
	view, err := m.client.Wait(ctx, id)
	if at := (execution{id, view.RunID}); err == nil && !slices.Contains(m.runs, at) {
		m.runs = append(m.runs, at)
	}
	switch {
	case err != nil:
		return fmt.Errorf("waiting for the end: %w", err)
	case view.Status.Failed() && view.Failure != nil:
		return view.Failure
	case view.Status != thread.StatusFinished && view.Status != thread.StatusWaiting && view.Status != thread.StatusStopped:
		return fmt.Errorf("the run is %s: %s %s", view.Status, view.Error, view.Problem)
	}
	return nil
}

// runOnce uses a thread of its own, which nothing goes on with.
func (m *temporalThreads) runOnce(ctx context.Context, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error {
	if in.Resume != nil {
		return errors.New("an answer needs a thread: without one nothing was kept to continue")
	}
	m.single++
	thread := fmt.Sprintf("single-%d", m.single)
	return m.run(ctx, thread, in, opts, rec)
}

// cancel ends a thread's open run, if it has one.
func (m *temporalThreads) cancel(ctx context.Context, id string) error {
	if _, err := m.client.Cancel(ctx, thread.CancelRequest{Thread: id, Reason: "the case is over"}); err != nil && !errors.Is(err, thread.ErrNotFound) {
		return fmt.Errorf("ending the run of %s: %w", id, err)
	}
	return nil
}

func (m *temporalThreads) state(ctx context.Context, at place) (*pregel.Snapshot, error) {
	view, err := m.client.State(ctx, thread.StateRequest{
		Thread: m.prefix + at.thread, Checkpoint: at.checkpoint, Subgraph: at.subgraph, Subgraphs: true,
	})
	if errors.Is(err, thread.ErrNotFound) && at.checkpoint == "" && len(at.subgraph) == 0 {
		return &pregel.Snapshot{}, nil // nothing began
	}
	if err != nil {
		return nil, err
	}
	return snapshotOf(&view), nil
}

// snapshotOf is a view as the other engine shows it.
func snapshotOf(v *thread.StateView) *pregel.Snapshot {
	return &pregel.Snapshot{Checkpoint: v.Checkpoint, Parent: v.Parent, Source: pregel.Source(v.Source), Step: v.Step,
		Values: valuesOf(v.Values), Next: v.Next, Tasks: tasksOf(v.Tasks)}
}

func tasksOf(views []thread.TaskView) []pregel.TaskSnapshot {
	var tasks []pregel.TaskSnapshot
	for _, t := range views {
		task := pregel.TaskSnapshot{Name: t.Node, Path: t.Path, Done: t.Done, Error: t.Error}
		for _, q := range t.Questions {
			task.Questions = append(task.Questions, pregel.Question{ID: q.ID, Value: pregel.Value(q.Value)})
		}
		if t.State != nil {
			task.State = snapshotOf(t.State)
		}
		tasks = append(tasks, task)
	}
	return tasks
}

func valuesOf[M ~map[string]V, V ~[]byte](values M) map[string]pregel.Value {
	out := make(map[string]pregel.Value, len(values))
	for name, v := range values {
		out[name] = pregel.Value(v)
	}
	return out
}

func (m *temporalThreads) history(ctx context.Context, at place) ([]*pregel.Snapshot, error) {
	lines, err := m.client.History(ctx, thread.HistoryRequest{Thread: m.prefix + at.thread, Subgraph: at.subgraph, Values: true})
	if errors.Is(err, thread.ErrNotFound) && len(at.subgraph) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]*pregel.Snapshot, len(lines))
	for i, l := range lines {
		out[i] = &pregel.Snapshot{Checkpoint: l.Checkpoint, Parent: l.Parent, Source: pregel.Source(l.Source), Step: l.Step,
			Values: valuesOf(l.Values), Next: l.Next, Tasks: tasksOf(l.Tasks)}
	}
	return out, nil
}

func (m *temporalThreads) update(ctx context.Context, at place, u graphadapter.StateUpdate) error {
	id := m.prefix + at.thread
	_, err := m.client.Update(ctx, thread.UpdateRequest{
		Graph: m.graph.Spec.Name, Thread: id, Checkpoint: at.checkpoint, Subgraph: at.subgraph,
		Updates: [][]graphadapter.StateUpdate{{u}},
	})
	if err != nil {
		return err
	}
	m.begun[id] = true
	return m.drain(ctx, id, nil)
}

// closeTimeout bounds the end of a case's runs.
const closeTimeout = time.Minute

// close ends the runs that still wait: the next case has the server for itself.
func (m *temporalThreads) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for id := range m.begun {
		errs = append(errs, m.cancel(ctx, id))
	}
	return errors.Join(errs...)
}
