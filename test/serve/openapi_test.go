package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// description is what a server says of itself.
type description struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct {
				Schema any `json:"schema"`
			} `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]any `json:"schemas"`
	} `json:"components"`
}

// answer is the schema of an operation's answer of that status, or of a refusal.
func (d *description) answer(t *testing.T, method, path, status string) *jsonschema.Resolved {
	responses := d.Paths[path][strings.ToLower(method)].Responses
	of, ok := responses[status]
	if !ok {
		of = responses["default"]
	}
	text, err := json.Marshal(map[string]any{"$defs": d.Components.Schemas, "allOf": []any{of.Content["application/json"].Schema}})
	require.NoError(t, err)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err, "%s %s", method, path)
	return resolved
}

// What a server answers is as its description says: of graphs that ask, that have subgraphs and that fail.
func TestAnswersAreAsDescribed(t *testing.T) {
	w := newWorld(t)
	var d description
	require.Equal(t, 200, w.ask("GET", "/openapi.json", nil, &d))
	ids := map[string]string{}
	call := func(status int, method, path string, body any) any {
		t.Helper()
		at := path
		for name, id := range ids {
			at = strings.ReplaceAll(at, "{"+name+"}", id)
		}
		var got any
		require.Equal(t, status, w.ask(method, at, body, &got), "%s %s: %v", method, at, got)
		require.NoError(t, d.answer(t, method, path, strconv.Itoa(status)).Validate(got), "%s %s: %v", method, path, got)
		if all, ok := got.([]any); ok && len(all) > 0 {
			got = all[0]
		}
		return got
	}
	field := func(v any, name string) string {
		m, ok := v.(map[string]any)
		require.True(t, ok, "%v", v)
		text, ok := m[name].(string)
		require.True(t, ok, "%v", m)
		return text
	}
	call(200, "GET", "/ok", nil)
	call(200, "GET", "/info", nil)
	for _, graph := range []struct {
		name  string
		input object
	}{{"refund", object{"order_id": "o-2"}}, {"outer", object{"topic": "x"}}, {"fails", object{"word": "bad"}}, {"chat", object{"messages": []object{{"type": "human", "content": "hi"}}}}} {
		ids["assistant_id"] = field(call(200, "POST", "/assistants/search", object{"graph_id": graph.name}), "assistant_id")
		for _, path := range []string{"", "/graph", "/schemas", "/subgraphs"} {
			call(200, "GET", "/assistants/{assistant_id}"+path, nil)
		}
		call(200, "POST", "/assistants/{assistant_id}/versions", object{})
		ids["thread_id"] = field(call(200, "POST", "/threads", object{"metadata": object{"a": 1}}), "thread_id")
		call(200, "GET", "/threads/{thread_id}/state", nil)
		ids["run_id"] = field(call(200, "POST", "/threads/{thread_id}/runs", object{"assistant_id": graph.name, "input": graph.input}), "run_id")
		call(200, "GET", "/threads/{thread_id}/runs/{run_id}/join", nil)
		for _, path := range []string{"", "/state", "/history", "/runs", "/runs/{run_id}"} {
			call(200, "GET", "/threads/{thread_id}"+path, nil)
		}
		call(200, "POST", "/threads/{thread_id}/history", object{"limit": 10})
		call(200, "POST", "/threads/{thread_id}/state/checkpoint", object{"checkpoint": object{}, "subgraphs": true})
		call(200, "POST", "/threads/search", object{"ids": []string{ids["thread_id"]}})
		call(200, "POST", "/threads/count", object{})
		call(200, "PATCH", "/threads/{thread_id}", object{"metadata": object{"b": 1}})
		call(200, "POST", "/threads/{thread_id}/commands", object{"id": 1, "method": "nope"})
		call(200, "POST", "/runs/wait", object{"assistant_id": graph.name, "input": graph.input})
	}
	call(200, "POST", "/threads/{thread_id}/copy", object{})
	call(200, "POST", "/threads/prune", object{"thread_ids": []string{uuid.NewString()}})
	call(200, "POST", "/threads/{thread_id}/state", object{"values": nil, "as_node": "__end__"})
	made := call(200, "POST", "/assistants", object{"graph_id": "steps", "name": "mine"})
	ids["assistant_id"] = field(made, "assistant_id")
	call(200, "PATCH", "/assistants/{assistant_id}", object{"name": "ours"})
	call(200, "POST", "/assistants/{assistant_id}/latest", object{"version": 1})
	ids["cron_id"] = field(call(200, "POST", "/runs/crons", object{"assistant_id": "steps", "schedule": "0 3 * * *", "input": object{}}), "cron_id")
	call(200, "GET", "/runs/crons/{cron_id}", nil)
	call(200, "POST", "/runs/crons/search", object{})
	call(200, "PATCH", "/runs/crons/{cron_id}", object{"enabled": false})
	call(200, "POST", "/runs/batch", []object{{"assistant_id": "steps", "input": object{}}})
	call(422, "POST", "/threads", object{"thread_id": "x"})
	ids["thread_id"] = uuid.NewString()
	call(404, "GET", "/threads/{thread_id}", nil)
}
