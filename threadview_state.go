package superstep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// stateView shows a snapshot of the thread's root graph as it was asked for: itself, or a subgraph under way in it.
func stateView(graph string, s *pregel.Snapshot, r StateRequest) (StateView, error) {
	for i, node := range r.Subgraph {
		at := slices.IndexFunc(s.Tasks, func(t pregel.TaskSnapshot) bool { return t.Name == node && t.State != nil })
		if at < 0 {
			return StateView{}, &Error{Kind: ErrNotFound, Graph: graph, Thread: r.Thread, Node: node,
				Message: fmt.Sprintf("thread %q has no subgraph under way at %s", r.Thread, strings.Join(r.Subgraph[:i+1], "/")),
				Do:      "See what is", Command: []string{"state", r.Thread, "--subgraphs"}}
		}
		s = s.Tasks[at].State
	}
	return snapshotView(graph, r.Thread, s, r.Subgraphs), nil
}

func snapshotView(graph, thread string, s *pregel.Snapshot, subgraphs bool) StateView {
	v := StateView{Thread: thread, Graph: graph, Checkpoint: s.Checkpoint, Parent: s.Parent, Source: string(s.Source),
		Step: s.Step, Values: jsonValues(s.Values), Next: s.Next}
	for _, t := range s.Tasks {
		task := TaskView{Node: t.Name, Path: t.Path, Done: t.Done, Error: t.Error}
		for _, q := range t.Questions {
			task.Questions = append(task.Questions,
				Question{ID: q.ID, Node: t.Name, Step: s.Step + 1, Value: q.Value, Schema: q.Schema})
		}
		if subgraphs && t.State != nil {
			inner := snapshotView(graph, thread, t.State, true)
			task.State = &inner
		}
		v.Tasks = append(v.Tasks, task)
	}
	return v
}

func noCheckpoint(graph, thread, checkpoint string) error {
	return &Error{Kind: ErrNotFound, Graph: graph, Thread: thread,
		Message: fmt.Sprintf("thread %q has no checkpoint %q", thread, checkpoint), Do: "List them", Command: []string{"history", thread}}
}

func jsonValues(values map[string]pregel.Value) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(values))
	for name, value := range values {
		out[name] = value
	}
	return out
}
