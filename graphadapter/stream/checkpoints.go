package stream

import (
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// config names a checkpoint, or with no id a namespace.
type config struct {
	Configurable configurable `json:"configurable"`
}

type configurable struct {
	Thread     string `json:"thread_id"`
	Namespace  string `json:"checkpoint_ns"`
	Checkpoint string `json:"checkpoint_id,omitempty"`
}

// checkpoint is a checkpoint with what it leads to, as the loop found it.
func (b *batch) checkpoint() {
	c, s := b.event.Checkpoint.Checkpoint, b.shaper
	s.at[b.event.Namespace] = c.ID
	s.began(c.ID)
	if b.graph.spec.Memory == pregel.MemoryNone && b.event.Namespace != "" {
		return // a graph without a checkpointer has none to show
	}
	b.debugged(Checkpoints, "checkpoint", c.Step, func() any { return b.checkpointPayload(c) })
}

// began notes where the invocation began: at the parent of the first checkpoint that it saved, or at the one that it
// looked at before.
func (s *Shaper) began(checkpoint string) {
	if !s.begun {
		s.begun, s.loaded = true, checkpoint
	}
}

// checkpointPayload is the payload of a checkpoints chunk.
func (b *batch) checkpointPayload(c *pregel.Checkpoint) any {
	type metadata struct {
		Source  pregel.Source     `json:"source"`
		Step    int               `json:"step"`
		Parents map[string]string `json:"parents"`
	}
	out := struct {
		Config   config                  `json:"config"`
		Parent   *config                 `json:"parent_config"`
		Values   map[string]pregel.Value `json:"values"`
		Metadata metadata                `json:"metadata"`
		Next     []string                `json:"next"`
		Tasks    []any                   `json:"tasks"`
	}{
		Config: b.config(c.ID), Values: b.graph.program.StateOf(b.event.Work),
		Metadata: metadata{c.Source, c.Step, b.parents()},
		Next:     []string{}, Tasks: []any{},
	}
	if parent := b.parent(c); parent != "" {
		at := b.config(parent)
		out.Parent = &at
	}
	for _, p := range b.event.Planned {
		out.Next = append(out.Next, p.Task.Node)
		out.Tasks = append(out.Tasks, b.planned(p))
	}
	return out
}

func (b *batch) config(checkpoint string) config {
	return config{configurable{Thread: b.shaper.thread, Namespace: b.event.Namespace, Checkpoint: checkpoint}}
}

// parent is the checkpoint before this one. An invocation that stores its end only knows the one that it began at.
func (b *batch) parent(c *pregel.Checkpoint) string {
	if b.shaper.exit && b.event.Namespace == "" && c.ID != b.shaper.loaded {
		return b.shaper.loaded
	}
	return c.Parent
}

// parents are the checkpoints of the graphs around this one, by namespace.
func (b *batch) parents() map[string]string {
	out := map[string]string{}
	for ns := b.event.Namespace; ns != ""; {
		cut := strings.LastIndexByte(ns, '|')
		ns = ns[:max(cut, 0)]
		out[ns] = b.shaper.at[ns]
	}
	return out
}

// planned is a task that a checkpoint leads to.
func (b *batch) planned(p pregel.Planned) any {
	type head struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	h, state := head{p.Task.Key(), p.Task.Node}, b.within(p.Task)
	if p.Known.Error != nil && !p.Known.Done {
		return struct {
			head
			Error *pregel.NodeError `json:"error"`
			State *config           `json:"state"`
		}{h, p.Known.Error, state}
	}
	asked := questionsOf(p.Known.Questions)
	if result := b.graph.resultOf(p.Known.Update); p.Known.Done && len(result) > 0 {
		return struct {
			head
			Result     map[string]any `json:"result"`
			Interrupts []Question     `json:"interrupts"`
			State      *config        `json:"state"`
		}{h, result, asked, state}
	}
	return struct {
		head
		Interrupts []Question `json:"interrupts"`
		State      *config    `json:"state"`
	}{h, asked, state}
}

// within names the checkpoints of a task's subgraph, nil for a task that has none.
func (b *batch) within(t *pregel.Task) *config {
	n := b.graph.nodes[t.Node]
	if n == nil || n.Subgraph == "" || b.graph.spec.Subgraphs[n.Subgraph].Memory == pregel.MemoryNone {
		return nil
	}
	return &config{configurable{Thread: b.shaper.thread, Namespace: t.Space()}}
}
