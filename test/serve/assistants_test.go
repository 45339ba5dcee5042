package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// madeAssistant is an assistant as tests look at it.
type madeAssistant struct {
	ID       string `json:"assistant_id"`
	Graph    string `json:"graph_id"`
	Name     string `json:"name"`
	Version  int    `json:"version"`
	Config   object `json:"config"`
	Context  object `json:"context"`
	Metadata object `json:"metadata"`
}

func (w *world) assistant(method, path string, body object) (a madeAssistant) {
	w.Helper()
	require.Equal(w, 200, w.ask(method, "/assistants"+path, body, &a))
	return a
}

func (w *world) found(search object) (names []string) {
	var all []madeAssistant
	require.Equal(w, 200, w.ask("POST", "/assistants/search", search, &all))
	for _, a := range all {
		names = append(names, a.Name)
	}
	return names
}

func (w *world) greeting(assistant string, body object) string {
	body["assistant_id"], body["input"] = assistant, object{"name": "Ann"}
	var values struct {
		Greeting string `json:"greeting"`
	}
	require.Equal(w, 200, w.ask("POST", "/runs/wait", body, &values))
	return values.Greeting
}

// An assistant and its versions outlive the server that made them, another server knows them at once, and a run has the context of the
// version that counts, under its own.
func TestAssistants(t *testing.T) {
	w := newWorld(t)
	id := uuid.NewString()
	body := object{"assistant_id": id, "graph_id": "greet", "name": "one", "context": object{"tone": "casual", "user": "Bo"},
		"metadata": object{"a": 1, "b": 1}, "config": object{"recursion_limit": 7}}
	first := w.assistant("POST", "", body)
	require.Equal(t, object{"recursion_limit": 7.0, "configurable": object{"tone": "casual", "user": "Bo"}}, first.Config)
	require.Equal(t, 409, w.ask("POST", "/assistants", body, nil))
	require.Equal(t, first, w.assistant("POST", "", object{"assistant_id": strings.ToUpper(id), "graph_id": "greet", "if_exists": "do_nothing"}))

	one := w.base
	w.startServe()
	require.Equal(t, first, w.assistant("GET", "/"+id, nil))
	changed := w.assistant("PATCH", "/"+id, object{"name": "two", "config": object{"configurable": object{"tone": "formal"}}, "metadata": object{"b": 2}})
	require.Equal(t, madeAssistant{ID: id, Graph: "greet", Name: "two", Version: 2, Config: object{"configurable": object{"tone": "formal"}},
		Context: object{"tone": "formal"}, Metadata: object{"a": 1.0, "b": 2.0}}, changed)
	require.Equal(t, []string{"two"}, w.found(object{"metadata": object{"b": 2}}))
	require.Equal(t, "Good day, Ann (from nobody)", w.greeting(id, object{}))
	w.base = one
	require.Equal(t, changed, w.assistant("GET", "/"+id, nil))
	w.assistant("POST", "/"+id+"/latest", object{"version": 1})
	require.Equal(t, first, w.assistant("GET", "/"+id, nil))
	require.Equal(t, "Hey, Ann (from Bo)", w.greeting(id, object{}))
	require.Equal(t, "Hey, Ann (from Cy)", w.greeting(id, object{"context": object{"user": "Cy"}}))
	require.Equal(t, 404, w.ask("POST", "/assistants/"+id+"/latest", object{"version": 9}, nil))
	require.Equal(t, 3, w.assistant("PATCH", "/"+id, object{"description": "three"}).Version)

	require.NoError(t, w.serve.Kill())
	w.startServe()
	var versions []madeAssistant
	require.Equal(t, 200, w.ask("POST", "/assistants/"+id+"/versions", object{"limit": 2}, &versions))
	require.Equal(t, []int{3, 2}, []int{versions[0].Version, versions[1].Version})
	require.Equal(t, 204, w.ask("DELETE", "/assistants/"+id, nil, nil))
	for _, path := range []string{"", "/schemas", "/graph", "/subgraphs"} {
		require.Equal(t, 404, w.ask("GET", "/assistants/"+id+path, nil, nil))
	}
	require.Equal(t, 404, w.ask("POST", "/runs/wait", object{"assistant_id": id, "input": object{}}, nil))
	require.Empty(t, w.found(object{"metadata": object{"b": 1}}))
	require.Equal(t, 1, w.assistant("POST", "", object{"assistant_id": id, "graph_id": "greet"}).Version)
	w.eventually("the other server's list", func() bool { w.base = one; return len(w.found(object{"name": "untitled"})) == 1 })
}

// A graph's own assistant is there without being kept. Once changed it is, and counts for runs that name the graph; deleted, it is
// again what it was, and its crons stay.
func TestAGraphsOwnAssistant(t *testing.T) {
	w := newWorld(t)
	var all []madeAssistant
	require.Equal(t, 200, w.ask("POST", "/assistants/search", object{"graph_id": "greet"}, &all))
	require.Len(t, all, 1)
	own := all[0]
	require.Equal(t, 409, w.ask("DELETE", "/assistants/"+own.ID, nil, nil))
	require.Equal(t, 409, w.ask("POST", "/assistants", object{"assistant_id": own.ID, "graph_id": "greet"}, nil))
	require.Equal(t, 2, w.assistant("PATCH", "/"+own.ID, object{"context": object{"tone": "casual"}}).Version)
	require.Equal(t, "Hey, Ann (from nobody)", w.greeting("greet", object{}))
	require.Equal(t, []string{"greet"}, w.found(object{"graph_id": "greet"}))
	cron := w.cron("POST", "/runs/crons", object{"assistant_id": "greet", "schedule": "0 3 * * *", "input": object{"name": "Ann"}})
	require.Equal(t, 204, w.ask("DELETE", "/assistants/"+own.ID, nil, nil))
	require.Equal(t, own, w.assistant("GET", "/"+own.ID, nil))
	require.Equal(t, own.ID, w.cron("GET", "/runs/crons/"+cron.ID, nil).Assistant, "what runs by a calendar goes on")
	require.Equal(t, "Good day, Ann (from nobody)", w.greeting("greet", object{}))
}

// What does not fit is refused, and makes nothing.
func TestBadAssistants(t *testing.T) {
	w := newWorld(t)
	for _, bad := range []struct {
		status int
		body   object
	}{
		{422, object{}},
		{404, object{"graph_id": "nope"}},
		{422, object{"graph_id": "greet", "assistant_id": "greet"}},
		{422, object{"graph_id": "greet", "if_exists": "maybe"}},
		{422, object{"graph_id": "greet", "context": "casual"}},
		{422, object{"graph_id": "greet", "config": object{"configurable": 7}}},
		{400, object{"graph_id": "greet", "config": object{"configurable": object{"a": 1}}, "context": object{"a": 2}}},
		{422, object{"graph_id": "greet", "metadata": object{"long": strings.Repeat("x", 70_000)}}},
	} {
		var said struct {
			Detail string `json:"detail"`
		}
		require.Equal(t, bad.status, w.ask("POST", "/assistants", bad.body, &said), "%v", bad.body)
		require.NotEmpty(t, said.Detail)
	}
	require.Empty(t, w.found(object{"name": "untitled"}))
	require.Equal(t, 422, w.ask("GET", "/assistants/greet", nil, nil))
	require.Equal(t, 200, w.ask("GET", "/assistants/greet/graph", nil, nil), "a drawing is asked for by the graph's name too")
	require.Equal(t, 422, w.ask("GET", "/assistants/nope/graph", nil, nil))
	require.Equal(t, 404, w.ask("PATCH", "/assistants/"+uuid.NewString(), object{"name": "x"}, nil))
	require.Equal(t, 404, w.ask("DELETE", "/assistants/"+uuid.NewString(), nil, nil))
}

// Schemas are those of the graph's Go types, with conversations as clients see them.
func TestSchemas(t *testing.T) {
	w := newWorld(t)
	schemas := func(graph string) (s map[string]struct {
		Properties map[string]object `json:"properties"`
		Required   []string          `json:"required"`
	}) {
		var all []madeAssistant
		require.Equal(t, 200, w.ask("POST", "/assistants/search", object{"graph_id": graph}, &all))
		var raw object
		require.Equal(t, 200, w.ask("GET", "/assistants/"+all[0].ID+"/schemas", nil, &raw))
		delete(raw, "graph_id")
		convert(t, raw, &s)
		return s
	}
	refund := schemas("refund")
	require.Len(t, refund["input_schema"].Properties, 1)
	require.Equal(t, []string{"order_id"}, refund["input_schema"].Required)
	require.Equal(t, []string{"messages"}, schemas("chat")["input_schema"].Required)
	require.Empty(t, schemas("steps")["input_schema"].Required, "a run goes on with what the thread has")
	require.Equal(t, "object", refund["state_schema"].Properties["receipt"]["type"])
	require.Equal(t, object{"type": "integer"}, refund["output_schema"].Properties["amount"])
	require.Nil(t, refund["context_schema"].Properties)
	require.Equal(t, object{"tone": object{"type": "string"}, "user": object{"type": "string"}}, asObject(schemas("greet")["context_schema"].Properties))
	require.Equal(t, "array", schemas("mapreduce")["input_schema"].Properties["items"]["type"])
	require.Equal(t, "Messages", schemas("chat")["state_schema"].Properties["messages"]["title"])
}

// convert reads a JSON value again as another type.
func convert(t *testing.T, from, into any) {
	raw, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

func asObject(m map[string]object) object {
	out := object{}
	for name, v := range m {
		out[name] = v
	}
	return out
}
