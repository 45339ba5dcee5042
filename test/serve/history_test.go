package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The history of a subgraph is in its own namespace: what it names can be read, and leads to the checkpoint before.
func TestHistoryOfASubgraph(t *testing.T) {
	w := newWorld(t)
	type place struct {
		Namespace  string `json:"checkpoint_ns"`
		Checkpoint string `json:"checkpoint_id"`
	}
	type state struct {
		Values map[string]any `json:"values"`
		At     *place         `json:"checkpoint"`
		Parent *place         `json:"parent_checkpoint"`
		Tasks  []struct {
			Name   string         `json:"name"`
			Path   []any          `json:"path"`
			At     *place         `json:"checkpoint"`
			Result map[string]any `json:"result"`
		} `json:"tasks"`
	}
	id := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "outer", "input": object{"topic": "x"}}, nil))
	var outer state
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/state", nil, &outer))
	inner := outer.Tasks[0].At
	var all []state
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/history", object{"limit": 10, "checkpoint": inner}, &all))
	require.Len(t, all, 3)
	for i, s := range all {
		require.Equal(t, inner.Namespace, s.At.Namespace)
		if i > 0 {
			require.Equal(t, all[i-1].Parent, s.At)
		}
	}
	require.Equal(t, "draft", all[1].Tasks[0].Name)
	require.Equal(t, map[string]any{"draft": "draft of x"}, all[1].Tasks[0].Result)
}

// Tasks that were sent say so, and in what order.
func TestSentTasks(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait",
		object{"assistant_id": "mapreduce", "input": object{"items": []string{"a", "b"}}, "interrupt_before": []string{"work"}}, nil))
	var state struct {
		Tasks []struct {
			Name string `json:"name"`
			Path []any  `json:"path"`
		} `json:"tasks"`
	}
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/state", nil, &state))
	require.Len(t, state.Tasks, 2)
	for i, task := range state.Tasks {
		require.Equal(t, "work", task.Name)
		require.Equal(t, []any{"__pregel_push", float64(i), false}, task.Path)
	}
}
