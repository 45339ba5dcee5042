package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An update with the namespace of a subgraph writes that graph's fields, and answers with the checkpoint that it has made there.
func TestAnUpdateOfASubgraph(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	at := "/threads/" + id
	require.Equal(t, 200, w.ask("POST", at+"/runs/wait", object{"assistant_id": "outer", "input": object{"topic": "x"}}, nil))
	type spot struct {
		Thread string            `json:"thread_id"`
		Space  string            `json:"checkpoint_ns"`
		ID     string            `json:"checkpoint_id,omitempty"`
		Map    map[string]string `json:"checkpoint_map,omitempty"`
	}
	var outer struct{ Tasks []struct{ Checkpoint spot } }
	require.Equal(t, 200, w.ask("GET", at+"/state", nil, &outer))
	within := outer.Tasks[0].Checkpoint
	inner := func() (s struct {
		stand
		Checkpoint spot
	}) {
		require.Equal(t, 200, w.ask("POST", at+"/state/checkpoint", object{"checkpoint": within}, &s))
		return s
	}
	before := inner()
	var made struct{ Checkpoint spot }
	require.Equal(t, 200, w.ask("POST", at+"/state", object{"values": object{"draft": "better"}, "checkpoint": before.Checkpoint}, &made))
	after := inner()
	require.Equal(t, object{"topic": "x", "draft": "better"}, after.Values)
	require.Equal(t, after.Checkpoint, made.Checkpoint)
	require.NotEqual(t, before.Checkpoint.ID, made.Checkpoint.ID)

	require.Equal(t, 400, w.ask("POST", at+"/state", object{"values": object{"draft": "worse"}, "checkpoint": before.Checkpoint}, nil), "it is the newest no more")
	require.Equal(t, 404, w.ask("POST", at+"/state", object{"values": object{"draft": "worse"}, "checkpoint": object{"checkpoint_ns": "nope:1"}}, nil))
	require.Equal(t, 200, w.ask("POST", at+"/state", object{"values": object{"answer": "mine"}, "as_node": "ask", "checkpoint": within}, nil))
	var values object
	require.Equal(t, 200, w.ask("POST", at+"/runs/wait", object{"assistant_id": "outer", "input": nil}, &values))
	require.Equal(t, []any{"before", "after mine"}, values["log"])
}
