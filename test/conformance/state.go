package main

import "superstep.dev/graphadapter/pregel"

// stateOf is a snapshot as a STATE. nested shows the states of pending subgraphs too.
func stateOf(s *pregel.Snapshot, nested bool) map[string]any {
	tasks := []any{}
	for _, t := range s.Tasks {
		task := map[string]any{"name": t.Name, "interrupts": questions(t.Questions)}
		if t.Error != nil {
			task["error"] = taskError(t.Error)
		}
		if nested && t.State != nil {
			task["state"] = stateOf(t.State, true)
		}
		tasks = append(tasks, task)
	}
	var metadata any
	if s.Checkpoint != "" {
		metadata = map[string]any{"source": string(s.Source), "step": int64(s.Step)}
	}
	return map[string]any{"values": object(s.Values), "next": names(s.Next), "tasks": tasks, "metadata": metadata}
}

func names(list []string) []any {
	out := make([]any, len(list))
	for i, name := range list {
		out[i] = name
	}
	return out
}

// historyOf is a thread's history as a result shows it: parents by their place in it.
func historyOf(snapshots []*pregel.Snapshot) []any {
	place := make(map[string]int64, len(snapshots))
	for i, s := range snapshots {
		place[s.Checkpoint] = int64(i)
	}
	out := []any{}
	for _, s := range snapshots {
		var parent any
		if i, ok := place[s.Parent]; ok && s.Parent != "" {
			parent = i
		}
		out = append(out, map[string]any{
			"values": object(s.Values), "next": names(s.Next),
			"source": string(s.Source), "step": int64(s.Step), "parent": parent,
		})
	}
	return out
}
