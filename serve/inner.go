package serve

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// level is where a state is within the graphs of a thread; nil is the root graph. space leads to it as the engine writes it, and nodes
// by the names of its nodes. around is the state of the graph around it, whose task at path, in superstep step, it is of.
type level struct {
	space, nodes []string
	around       *stateOut
	path         []any
	step         int
}

// parents are the checkpoints around a level, by their namespaces.
func (l *level) parents() map[string]string {
	out := map[string]string{}
	if l == nil || l.around.Checkpoint == nil {
		return out
	}
	maps.Copy(out, l.around.Checkpoint.Map)
	out[l.around.Checkpoint.Namespace] = l.around.Checkpoint.Checkpoint
	return out
}

// below is the level of a task's subgraph.
func (l *level) below(around *stateOut, t thread.TaskView, step int) *level {
	var space, nodes []string
	if l != nil {
		space, nodes = l.space, l.nodes
	}
	return &level{append(slices.Clone(space), itoa(step+1)+"/"+t.Path), append(slices.Clone(nodes), t.Node), around, pathOf(t), step + 1}
}

// inner is what a checkpoint of a subgraph says of itself: what the checkpoint around it does, and where it is.
func (x *renderer) inner(source string, step int, in *level) object {
	m := maps.Clone(in.around.Metadata)
	m["source"], m["step"] = raw(source), raw(step)
	m["parents"], m["checkpoint_map"] = raw(in.parents()), raw(in.parents())
	m["checkpoint_ns"], m["langgraph_checkpoint_ns"] = raw(spaceOf(x.thread, in.space)), raw(spaceOf(x.thread, in.space))
	m["langgraph_node"], m["langgraph_step"], m["langgraph_path"] = raw(in.nodes[len(in.nodes)-1]), raw(in.step), raw(in.path)
	return m
}

// place names a checkpoint of a level.
func (x *renderer) place(checkpoint string, in *level) *place {
	p := &place{Thread: x.thread, Checkpoint: checkpointOut(x.thread, checkpoint)}
	if in != nil {
		p.Namespace, p.Map = spaceOf(x.thread, in.space), in.parents()
		p.Map[p.Namespace] = p.Checkpoint
	}
	return p
}

// inners are the states of subgraphs.
type inners struct{ *Server }

// at is the state of a subgraph that is under way: the newest, or that at a checkpoint.
func (s inners) at(ctx context.Context, t record.Thread, at checkpointRef, subgraphs bool) (stateOut, error) {
	x, v, in, err := s.within(ctx, t, at.Namespace)
	if err != nil {
		return stateOut{}, err
	}
	if at.CheckpointID == "" || at.CheckpointID == v.Checkpoint {
		if !subgraphs {
			v.Tasks = slices.Clone(v.Tasks)
			for i := range v.Tasks {
				v.Tasks[i].State = nil
			}
		}
		return x.state(v, in), nil
	}
	made, err := s.client.History(ctx, thread.HistoryRequest{Thread: t.Under, Subgraph: in.nodes, Values: true})
	if err != nil {
		return stateOut{}, err
	}
	for _, c := range made {
		if c.Checkpoint == at.CheckpointID {
			return x.past(c, in), nil
		}
	}
	return stateOut{}, refuse(http.StatusNotFound, "the subgraph at %s has no checkpoint %s: read its history", at.Namespace, at.CheckpointID)
}

// within finds the subgraph that a namespace leads to, which is under way: its state, and where it is. A segment without a task's id
// leads to the first task of its node.
func (s inners) within(ctx context.Context, t record.Thread, namespace string) (x *renderer, v thread.StateView, in *level, err error) {
	if v, err = s.client.State(ctx, thread.StateRequest{Thread: t.Under, Subgraphs: true}); err != nil {
		return nil, v, nil, err
	}
	if x, err = s.renderer(ctx, t, v.Graph); err != nil {
		return nil, v, nil, err
	}
	for _, segment := range splitSpace(namespace) {
		node, id, _ := strings.Cut(segment, ":")
		around := x.state(v, in)
		found := slices.IndexFunc(v.Tasks, func(task thread.TaskView) bool {
			below := in.below(&around, task, v.Step)
			return task.State != nil && task.Node == node && (id == "" || id == taskID(t.ID, strings.Join(below.space, "|")))
		})
		if found < 0 {
			return nil, v, nil, refuse(http.StatusNotFound, "no subgraph is under way at %s: read the thread's state for those that are", namespace)
		}
		in = in.below(&around, v.Tasks[found], v.Step)
		v = *v.Tasks[found].State
	}
	return x, v, in, nil
}
