package serve

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
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
	// since is the root's checkpoint at which the subgraph was under way, "" for one that is now.
	since string
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
	var since string
	if l != nil {
		space, nodes, since = l.space, l.nodes, l.since
	}
	return &level{append(slices.Clone(space), itoa(step+1)+"/"+t.Path), append(slices.Clone(nodes), t.Node), around, pathOf(t), step + 1, since}
}

// inner is what a checkpoint of a subgraph says of itself: what the checkpoint around it does, and where it is.
func (x *renderer) inner(source string, step int, in *level) object {
	m := maps.Clone(in.around.Metadata)
	m["source"], m["step"] = raw(source), raw(step)
	m["parents"], m["checkpoint_map"] = raw(in.parents()), raw(in.parents())
	m["checkpoint_ns"], m["langgraph_checkpoint_ns"] = raw(spaceOf(x.names(), in.space)), raw(spaceOf(x.names(), in.space))
	m["langgraph_node"], m["langgraph_step"], m["langgraph_path"] = raw(in.nodes[len(in.nodes)-1]), raw(in.step), raw(in.path)
	return m
}

// place names a checkpoint of a level.
func (x *renderer) place(checkpoint string, in *level) *place {
	p := &place{Thread: x.thread, Checkpoint: checkpointOut(x.names(), checkpoint)}
	if in != nil {
		p.Namespace, p.Map = spaceOf(x.names(), in.space), in.parents()
		p.Map[p.Namespace] = p.Checkpoint
	}
	return p
}

// inners are the states of subgraphs.
type inners struct{ *Server }

// at is the state of a subgraph: the newest, or that at a checkpoint.
func (s inners) at(ctx context.Context, t record.Thread, at checkpointRef, subgraphs bool) (stateOut, error) {
	x, v, in, err := s.within(ctx, t, at.Namespace)
	if errors.Is(err, thread.ErrNotFound) {
		return nothingAt(t.ID, at), nil
	}
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
	made, err := s.client.History(ctx, thread.HistoryRequest{Thread: t.Under, Subgraph: in.nodes, Checkpoint: in.since, Values: true})
	if err != nil {
		return stateOut{}, err
	}
	for _, c := range made {
		if c.Checkpoint == at.CheckpointID {
			return x.past(c, in), nil
		}
	}
	return nothingAt(t.ID, at), nil
}

// within finds the subgraph that a namespace leads to, which is under way or has ended: its state, and where it is. A segment without a
// task's id leads to the first task of its node, at the newest checkpoint that has one. The error is thread.ErrNotFound for none.
func (s inners) within(ctx context.Context, t record.Thread, namespace string) (x *renderer, v thread.StateView, in *level, err error) {
	if v, err = s.client.State(ctx, thread.StateRequest{Thread: t.Under, Subgraphs: true}); err != nil {
		return nil, v, nil, err
	}
	if x, err = s.renderer(ctx, t, v.Graph); err != nil {
		return nil, v, nil, err
	}
	segments := splitSpace(namespace)
	if inner, in, found := x.into(v, segments, ""); found {
		return x, inner, in, nil
	}
	made, err := s.client.History(ctx, thread.HistoryRequest{Thread: t.Under, Values: true})
	if err != nil {
		return nil, v, nil, err
	}
	for _, c := range made {
		outer := x.past(c, nil)
		if slices.Contains(t.Hidden, c.Checkpoint) || x.leads(&outer, nil, c.Tasks, c.Step, segments[0], false) < 0 {
			continue
		}
		if v, err = s.client.State(ctx, thread.StateRequest{Thread: t.Under, Checkpoint: c.Checkpoint, Subgraphs: true}); err != nil {
			return nil, v, nil, err
		}
		if inner, in, found := x.into(v, segments, c.Checkpoint); found {
			return x, inner, in, nil
		}
	}
	return nil, v, nil, thread.ErrNotFound
}

// into is the state of the subgraph that the segments of a namespace lead to from a state of the root graph, which is that at the
// checkpoint since, or the newest.
func (x *renderer) into(v thread.StateView, segments []string, since string) (inner thread.StateView, in *level, found bool) {
	for _, segment := range segments {
		around := x.state(v, in)
		at := x.leads(&around, in, v.Tasks, v.Step, segment, true)
		if at < 0 {
			return v, nil, false
		}
		in = in.below(&around, v.Tasks[at], v.Step)
		in.since = since
		v = *v.Tasks[at].State
	}
	return v, in, true
}

// leads finds the task that a segment of a namespace names, and whose subgraph's state is there where that is wanted; -1 for none.
func (x *renderer) leads(around *stateOut, in *level, tasks []thread.TaskView, step int, segment string, shown bool) int {
	node, id, _ := strings.Cut(segment, ":")
	return slices.IndexFunc(tasks, func(task thread.TaskView) bool {
		return task.Node == node && (task.State != nil || !shown) && (id == "" || id == taskID(x.names(), strings.Join(in.below(around, task, step).space, "|")))
	})
}

// updated makes an update of a thread one of the subgraph that a namespace leads to, and returns what that graph is. A subgraph is updated
// where it is now, or where it was when it ended: an earlier checkpoint of it is refused.
func (s inners) updated(ctx context.Context, t record.Thread, spec *pregel.Spec, namespace string, u *thread.UpdateRequest) (*pregel.Spec, error) {
	_, v, in, err := s.within(ctx, t, namespace)
	if errors.Is(err, thread.ErrNotFound) {
		err = refuse(http.StatusNotFound, "the thread has no subgraph at %q", namespace)
	}
	if err != nil {
		return nil, err
	}
	if u.Checkpoint != "" && u.Checkpoint != v.Checkpoint {
		return nil, refuse(http.StatusBadRequest, "the state of a subgraph is updated at its newest checkpoint, which is %s", checkpointOut(t.Names(), v.Checkpoint))
	}
	u.Checkpoint, u.Subgraph = in.since, in.nodes
	for _, node := range in.nodes {
		at := slices.IndexFunc(spec.Nodes, func(n pregel.NodeSpec) bool { return n.Name == node })
		if at < 0 || spec.Subgraphs[spec.Nodes[at].Subgraph] == nil {
			return nil, refuse(http.StatusConflict, "the graph has no subgraph at %q any more", namespace)
		}
		spec = spec.Subgraphs[spec.Nodes[at].Subgraph]
	}
	return spec, nil
}

// newest is where the newest checkpoint is of the subgraph that a namespace leads to.
func (s inners) newest(ctx context.Context, t record.Thread, namespace string) (*place, error) {
	x, v, in, err := s.within(ctx, t, namespace)
	if err != nil {
		return nil, err
	}
	return x.place(v.Checkpoint, in), nil
}
