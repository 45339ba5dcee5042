package superstep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
)

// madeAt is the time of that many milliseconds since 1970, zero for 0.
func madeAt(milliseconds int64) time.Time {
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds).UTC()
}

// dated notes when the checkpoint of a view was made, unless the view is of a subgraph.
func (v StateView) dated(r StateRequest, when time.Time) StateView {
	if len(r.Subgraph) == 0 {
		v.CreatedAt = when
	}
	return v
}

// stateView shows a snapshot of the thread's root graph as it was asked for: itself, or a subgraph under way in it.
func stateView(graph string, s *pregel.Snapshot, r StateRequest) (StateView, error) {
	for i, node := range r.Subgraph {
		at := slices.IndexFunc(s.Tasks, func(t pregel.TaskSnapshot) bool { return t.Name == node && t.State != nil })
		if at < 0 {
			return StateView{}, noSubgraph(graph, r.Thread, r.Subgraph[:i+1], nil)
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
			task.Questions = append(task.Questions, questionView(q, t.Name, s.Step+1))
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

func noSubgraph(graph, thread string, path []string, cause error) error {
	return &Error{Kind: ErrNotFound, Graph: graph, Thread: thread, Node: path[len(path)-1], Cause: cause,
		Message: fmt.Sprintf("thread %q has no subgraph under way at %s", thread, strings.Join(path, "/")),
		Do:      "See what is", Command: []string{"state", thread, "--subgraphs"}}
}

// historyView selects what was asked for.
func historyView(graph string, checkpoints []past.Checkpoint, r HistoryRequest) ([]CheckpointView, error) {
	if r.Before != "" {
		at := slices.IndexFunc(checkpoints, func(c past.Checkpoint) bool { return c.Checkpoint == r.Before })
		if at < 0 {
			return nil, noCheckpoint(graph, r.Thread, r.Before)
		}
		checkpoints = checkpoints[at+1:]
	}
	out := []CheckpointView{}
	for _, c := range checkpoints {
		if r.Source != "" && r.Source != string(c.Source) || r.Step != nil && *r.Step != c.Step {
			continue
		}
		if r.Limit > 0 && len(out) == r.Limit {
			break
		}
		v := CheckpointView{Step: c.Step, Checkpoint: c.Checkpoint, Parent: c.Parent, Source: string(c.Source),
			Ran: c.Ran, Wrote: c.Wrote, Next: c.Next, CreatedAt: c.When}
		if r.Values {
			v.Values = jsonValues(c.Values)
		}
		out = append(out, v)
	}
	return out, nil
}
