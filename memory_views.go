package superstep

import (
	"context"
	"slices"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// trace is what the events of a thread's runs tell beyond its checkpoints.
type trace struct {
	mu    sync.Mutex
	step  int
	asked map[string]asked
}

// asked is where a question comes from; depth counts the graphs around the node.
type asked struct {
	node        string
	step, depth int
}

func (t *trace) observe(e pregel.Event) {
	switch {
	case e.Kind == pregel.EventInterrupt && e.Task != nil:
		t.question(e)
	case e.Namespace == "" && e.Kind == pregel.EventTaskStart:
		t.step = e.Step
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

// complete fills in what only the events told: where the open questions come from. It returns those with that.
func (t *trace) complete(v *ThreadView, asked []pregel.Question) []pregel.OpenQuestion {
	t.mu.Lock()
	defer t.mu.Unlock()
	v.Step = t.step
	var open []pregel.OpenQuestion
	for _, q := range asked {
		from := t.asked[q.ID]
		open = append(open, pregel.OpenQuestion{Question: q, Node: from.node, Step: from.step})
		if !slices.Contains(v.Nodes, from.node) {
			v.Nodes = append(v.Nodes, from.node)
		}
	}
	v.Questions = questionsOf(forPeople(open))
	v.Waits = waitViews(forEvents(open), func(string) time.Time { return time.Time{} })
	return open
}

func (m *Memory) stateOf(ctx context.Context, g *graphadapter.Graph, r StateRequest) (StateView, error) {
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return StateView{}, err
	}
	snapshot, err := m.driver.Thread(g, r.Thread).State(ctx, r.Checkpoint)
	if err != nil {
		return StateView{}, refusal(t.graph, t.id, err)
	}
	when, err := m.driver.Thread(g, r.Thread).When(ctx, snapshot.Checkpoint)
	if err != nil {
		return StateView{}, refusal(t.graph, t.id, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out, err := stateView(t.graph, snapshot, r)
	out = out.dated(r, when)
	out.Status = t.view.Status
	if r.Checkpoint == "" {
		out.Questions = slices.Clone(t.view.Questions)
	}
	return out, err
}

// begun returns a thread that has checkpoints, or a run that is about to make some.
func (m *Memory) begun(g *graphadapter.Graph, id string) (*memoryThread, error) {
	t, err := m.thread(g, id, false)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		return nil, t.refuse(ErrNotFound, "it has never run")
	}
	return t, nil
}

func (m *Memory) historyOf(ctx context.Context, g *graphadapter.Graph, r HistoryRequest) ([]CheckpointView, error) {
	t, err := m.begun(g, r.Thread)
	if err != nil {
		return nil, err
	}
	past, err := m.driver.Thread(g, r.Thread).SubgraphHistory(ctx, r.Subgraph)
	if err != nil && len(r.Subgraph) > 0 {
		err = noSubgraph(t.graph, r.Thread, r.Subgraph, err)
	}
	if err != nil {
		return nil, err
	}
	return historyView(t.graph, past, r)
}
