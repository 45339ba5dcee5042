package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The history of a subgraph is in its own namespace: what it names can be read, and leads to the checkpoint before.
func TestHistoryOfASubgraph(t *testing.T) {
	w := newWorld(t)
	type place struct {
		Namespace  string            `json:"checkpoint_ns"`
		Checkpoint string            `json:"checkpoint_id"`
		Map        map[string]string `json:"checkpoint_map,omitempty"`
	}
	type state struct {
		Values   map[string]any `json:"values"`
		Metadata map[string]any `json:"metadata"`
		At       *place         `json:"checkpoint"`
		Parent   *place         `json:"parent_checkpoint"`
		Tasks    []struct {
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

	read := func(thread string, at object) (one state) {
		require.Equal(t, 200, w.ask("POST", "/threads/"+thread+"/state/checkpoint", object{"checkpoint": at}, &one))
		return one
	}
	// Each is read by what it is called, with or without those around it.
	for _, s := range all {
		for _, at := range []object{{"checkpoint_ns": s.At.Namespace, "checkpoint_id": s.At.Checkpoint},
			{"checkpoint_ns": s.At.Namespace, "checkpoint_id": s.At.Checkpoint, "checkpoint_map": s.At.Map}} {
			var one state
			require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/state/checkpoint", object{"checkpoint": at}, &one))
			require.Equal(t, s.Values, one.Values)
			require.Equal(t, s.At, one.At)
		}
		require.Equal(t, map[string]string{"": outer.At.Checkpoint, inner.Namespace: s.At.Checkpoint}, s.At.Map)
		require.Equal(t, map[string]any{"": outer.At.Checkpoint}, s.Metadata["parents"])
		require.Empty(t, read(id, object{"checkpoint_id": s.At.Checkpoint}).Values, "it is none of the thread itself")
	}
	require.Nil(t, read(id, object{"checkpoint_ns": "child:x"}).At)
	unknown := read(w.thread(), object{"checkpoint_id": outer.At.Checkpoint})
	require.Equal(t, outer.At.Checkpoint, unknown.At.Checkpoint, "it is named as it was asked for")
	require.Empty(t, unknown.Values, "another thread has no such checkpoint")

	// It is all there when the subgraph has ended, with what it ended with, and so is that of one that ran before.
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "outer", "command": object{"resume": "yes"}}, nil))
	ended := read(id, object{"checkpoint_ns": inner.Namespace})
	require.Equal(t, map[string]any{"topic": "x", "draft": "draft of x", "answer": "yes"}, ended.Values)
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "outer", "input": object{"topic": "y"}}, nil))
	var then []state
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/history", object{"limit": 10, "checkpoint": inner}, &then))
	require.Len(t, then, 4)
	require.Equal(t, ended.At.Checkpoint, then[0].At.Checkpoint)
	for i, s := range then {
		require.Equal(t, inner.Namespace, s.At.Namespace)
		one := read(id, object{"checkpoint_ns": s.At.Namespace, "checkpoint_id": s.At.Checkpoint})
		require.Equal(t, s.Values, one.Values)
		if i > 0 {
			require.Equal(t, all[i-1].At.Checkpoint, s.At.Checkpoint)
		}
	}
	require.Equal(t, "draft of y", read(id, object{"checkpoint_ns": "child"}).Values["draft"], "without the task's id it is the newest")

	// A history of one checkpoint is that one.
	var alone []state
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/history", object{"limit": 10, "checkpoint": outer.At}, &alone))
	require.Len(t, alone, 1)
	require.Equal(t, outer.At.Checkpoint, alone[0].At.Checkpoint)
}

// What stays open when another question is answered is asked again, and what the answered task wrote shows in the state alone until its
// superstep has ended.
func TestAPartOfTheAnswers(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	type question struct {
		ID    string
		Value struct{ Who string }
	}
	var asked struct {
		Open []question `json:"__interrupt__"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "panel", "input": object{"subject": "s"}}, &asked))
	require.Len(t, asked.Open, 2)
	byWho := map[string]string{}
	for _, q := range asked.Open {
		byWho[q.Value.Who] = q.ID
	}
	raw, err := json.Marshal(object{"assistant_id": "panel", "command": object{"resume": object{byWho["legal"]: "ok"}}, "stream_mode": []string{"updates", "values"}})
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(w.request("POST", "/threads/"+id+"/runs/stream", bytes.NewReader(raw)))
	require.NoError(t, err)
	defer resp.Body.Close()
	again := map[string][]question{}
	for _, e := range events(t, resp.Body, func(sent) bool { return false }) {
		var of struct {
			Open []question `json:"__interrupt__"`
		}
		require.NoError(t, json.Unmarshal([]byte(e.Data), &of))
		again[e.Event] = append(again[e.Event], of.Open...)
	}
	for _, mode := range []string{"updates", "values"} {
		require.Len(t, again[mode], 1, mode)
		require.Equal(t, byWho["finance"], again[mode][0].ID, mode)
	}
	var thread, state struct {
		Values struct{ Votes []string }
		Tasks  []struct {
			Name   string
			Result *struct{ Votes []string }
		}
	}
	require.Equal(t, 200, w.ask("GET", "/threads/"+id, nil, &thread))
	require.Empty(t, thread.Values.Votes)
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/state", nil, &state))
	require.Equal(t, []string{"legal: ok"}, state.Values.Votes)
	require.Equal(t, "legal", state.Tasks[0].Name)
	require.Equal(t, []string{"legal: ok"}, state.Tasks[0].Result.Votes)
	require.Nil(t, state.Tasks[1].Result)
}

// A thread's stream tells what it is asked for, over runs, and goes on behind the last event that a client has.
func TestStreamsOfAThread(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	follow := func(after, modes string) *http.Response {
		req := w.request("GET", "/threads/"+id+"/stream"+modes, nil)
		req.Header.Set("Last-Event-ID", after)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		t.Cleanup(func() { require.NoError(t, resp.Body.Close()) })
		return resp
	}
	require.Equal(t, 422, w.ask("GET", "/threads/"+id+"/stream?stream_modes=nope", nil, nil))
	runs, life, edits := follow("", ""), follow("", "?stream_modes=lifecycle"), follow("", "?stream_modes=state_update")
	for _, note := range []string{"1", "2"} {
		require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait",
			object{"assistant_id": "steps", "input": object{"note": note}, "stream_mode": []string{"updates"}, "stream_resumable": true}, nil))
	}
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/state", object{"values": object{"note": "3"}, "as_node": "c"}, nil))
	upto := func(resp *http.Response, n int) []sent {
		seen := 0
		return events(t, resp.Body, func(sent) bool { seen++; return seen == n })
	}
	const ofARun = 1 + 3 + 1 // its beginning, three updates, its end
	all := upto(runs, 2*ofARun)
	require.Equal(t, all, upto(follow("0", ""), 2*ofARun))
	for _, have := range []int{1, 3, ofARun, ofARun + 2} {
		require.Equal(t, all[have:], upto(follow(all[have-1].ID, ""), 2*ofARun-have), "behind %d", have)
	}
	for _, e := range upto(life, 4) {
		require.Equal(t, "metadata", e.Event)
	}
	edit := upto(edits, 1)
	require.Equal(t, "state_update", edit[0].Event)
	require.Contains(t, edit[0].Data, `"note":"3"`)
}

// Behind an event that a client has nothing is left out, whether the runs that follow are resumable or not.
func TestAThreadsStreamHasNoGaps(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	follow := func(after string, n int) []sent {
		req := w.request("GET", "/threads/"+id+"/stream", nil)
		req.Header.Set("Last-Event-ID", after)
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		resp, err := http.DefaultClient.Do(req.WithContext(ctx))
		require.NoError(t, err)
		defer func() { require.NoError(t, resp.Body.Close()) }()
		require.Equal(t, 200, resp.StatusCode)
		seen := 0
		return events(t, resp.Body, func(sent) bool { seen++; return seen == n })
	}
	const ofARun = 1 + 3 + 1 // its beginning, three updates, its end
	whole := make(chan []sent, 1)
	waits := w.run(id, object{"assistant_id": "steps", "input": object{"note": "1"}, "stream_mode": "updates", "after_seconds": 3})
	go func() { whole <- follow("", 2*ofARun) }()
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/runs/"+waits+"/join", nil, nil))
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "steps", "input": object{"note": "2"}, "stream_mode": "updates"}, nil))
	all := <-whole
	require.Len(t, all, 2*ofARun)
	for _, have := range []int{2, ofARun, ofARun + 1} {
		require.Equal(t, all[have:], follow(all[have-1].ID, 2*ofARun-have), "behind %d", have)
	}
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
