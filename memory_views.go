package superstep

import (
	"context"
	"errors"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// trace is what the events of a thread's runs tell beyond its checkpoints.
type trace struct {
	runs int
	step int
	// ran and wrote are of the superstep under way.
	ran, wrote []string
	// of is what led to each checkpoint.
	of    map[string]stepTrace
	asked map[string]asked
}

type stepTrace struct{ ran, wrote []string }

// asked is where a question comes from; depth counts the graphs around the node.
type asked struct {
	node        string
	step, depth int
}

func newTrace() trace { return trace{of: map[string]stepTrace{}, asked: map[string]asked{}} }

func (t *trace) observe(e pregel.Event) {
	switch {
	case e.Kind == pregel.EventInterrupt && e.Task != nil:
		t.question(e)
	case e.Namespace != "":
		// The history is the root graph's.
	case e.Kind == pregel.EventTaskStart:
		t.step = e.Step
	case e.Kind == pregel.EventUpdate:
		t.update(e)
	case e.Kind == pregel.EventCheckpoint:
		t.of[e.Checkpoint.Checkpoint.ID] = stepTrace{t.ran, t.wrote}
		t.ran, t.wrote = nil, nil
	}
}

func (t *trace) update(e pregel.Event) {
	if e.Task != nil && e.Task.Node != Start {
		t.ran = append(t.ran, e.Task.Node)
	}
	for _, w := range e.Writes {
		if !slices.Contains(t.wrote, w.Channel) {
			t.wrote = append(t.wrote, w.Channel)
		}
	}
}

// question remembers the innermost node: a subgraph's node repeats the questions of the nodes inside.
func (t *trace) question(e pregel.Event) {
	for _, q := range e.Questions {
		if known, ok := t.asked[q.ID]; !ok || known.depth < len(e.Nodes) {
			t.asked[q.ID] = asked{node: e.Task.Node, step: e.Step, depth: len(e.Nodes)}
		}
	}
}

// complete fills in what only the events told.
func (t *trace) complete(v *ThreadView) {
	v.Step = t.step
	for i := range v.Questions {
		from := t.asked[v.Questions[i].ID]
		v.Questions[i].Node, v.Questions[i].Step = from.node, from.step
		if !slices.Contains(v.Nodes, from.node) {
			v.Nodes = append(v.Nodes, from.node)
		}
	}
}

func (m *Memory) stateOf(ctx context.Context, g *graphadapter.Graph, r StateRequest) (StateView, error) {
	t, err := m.thread(g, r.Thread, false)
	if err != nil {
		return StateView{}, err
	}
	snapshot, err := m.driver.Thread(g, r.Thread).State(ctx, r.Checkpoint)
	if err != nil {
		return StateView{}, t.stateError(r.Checkpoint, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out, err := stateView(t.graph, snapshot, r)
	out.Status = t.view.Status
	if r.Checkpoint == "" {
		out.Questions = slices.Clone(t.view.Questions)
	}
	return out, err
}

func (t *memoryThread) stateError(checkpoint string, err error) error {
	var unknown *pregel.NoCheckpointError
	if errors.As(err, &unknown) {
		return noCheckpoint(t.graph, t.id, checkpoint)
	}
	return err
}

func (m *Memory) historyOf(ctx context.Context, g *graphadapter.Graph, r HistoryRequest) ([]CheckpointView, error) {
	t, err := m.thread(g, r.Thread, false)
	if err != nil {
		return nil, err
	}
	snapshots, err := m.driver.Thread(g, r.Thread).History(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]CheckpointView, len(snapshots))
	for i, s := range snapshots {
		led := t.trace.of[s.Checkpoint]
		out[i] = CheckpointView{Step: s.Step, Checkpoint: s.Checkpoint, Parent: s.Parent, Source: string(s.Source),
			Ran: led.ran, Wrote: led.wrote, Next: s.Next}
	}
	return out, nil
}
