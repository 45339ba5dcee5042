package serve

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

func TestAChunkHasTheCallsThatAreWholeByThemselves(t *testing.T) {
	for pieces, want := range map[string]string{
		`{"id":"call_1","function":{"name":"f","arguments":""}}`: `[{"name":"f","args":{},"id":"call_1","type":"tool_call"}]`,
		`{"function":{"arguments":"{\"city\": \"Oslo\"}"}}`:      `[{"name":"","args":{"city":"Oslo"},"id":null,"type":"tool_call"}]`,
		`{"function":{"arguments":"{\"ci"}}`:                     `[]`,
	} {
		var p piece
		require.NoError(t, json.Unmarshal([]byte(`{"id":"m","role":"assistant","content":"","tool_calls":[`+pieces+`]}`), &p))
		require.JSONEq(t, want, string(raw(p.chunk(0).Calls)))
	}
}

func TestAContextIsCutToWhatASchemaHas(t *testing.T) {
	const given = `{"user":"eve","page":3}`
	for schema, want := range map[string]string{
		`{"properties":{"user":{}},"additionalProperties":false}`: `{"user":"eve"}`,
		`{"properties":{"user":{}},"additionalProperties":true}`:  given,
		`{"additionalProperties":false}`:                          given,
		``:                                                        given,
	} {
		require.JSONEq(t, want, string(fitting(json.RawMessage(given), json.RawMessage(schema))), schema)
	}
}

// The pieces of a message have their metadata in common. What only looks like that is taken apart as anything else.
func TestPiecesHaveTheMetadataOfTheirOwnTask(t *testing.T) {
	tell := newTeller(&renderer{thread: "t", spec: &pregel.Spec{Name: "g"}}, record.Run{ID: "r"}, []string{"messages-tuple"}, false)
	for _, c := range []struct{ data, content, step string }{
		{`[{"id":"m","role":"assistant","content":"a"},{"langgraph_step":1}]`, "a", "1"},
		{`[{"id":"m","role":"assistant","content":",{\"langgraph_step\":1}]"},{"langgraph_step":1}]`, `,{"langgraph_step":1}]`, "1"},
		{`[{"id":"m","role":"assistant","content":"b"}, {"langgraph_step":1}]`, "b", "1"},
		{`[{"id":"n","role":"assistant","content":"c"},{"langgraph_step":2}]`, "c", "2"},
		{`[{"id":"n","role":"assistant","content":"d"},{"langgraph_step":2}]`, "d", "2"},
	} {
		events := tell.message("task", json.RawMessage(c.data), "")
		require.Len(t, events, 1, c.data)
		var both []map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(events[0].data.(json.RawMessage), &both), c.data)
		require.Len(t, both, 2, c.data)
		require.JSONEq(t, string(raw(c.content)), string(both[0]["content"]), c.data)
		require.Equal(t, c.step, string(both[1]["langgraph_step"]), c.data)
		require.Equal(t, `"r"`, string(both[1]["run_id"]), c.data)
	}
	require.Empty(t, tell.message("task", json.RawMessage(`[{"id":"n"},{"id":"n"},{"langgraph_step":2}]`), ""))
	require.Empty(t, tell.message("task", json.RawMessage(`[{"langgraph_step":2}]`), ""))
}

// Messages of an attempt that is void are removed before the next attempt streams them: clients put chunks of one id behind each other.
func TestVoidMessagesAreRemoved(t *testing.T) {
	tell := newTeller(&renderer{thread: "t", spec: &pregel.Spec{Name: "g"}}, record.Run{ID: "r"}, []string{"messages-tuple"}, false)
	data := json.RawMessage(`[{"id":"m","role":"assistant","content":"a"},{"langgraph_step":1}]`)
	part := func(mode thread.StreamMode, task string) []event {
		return tell.ownModes(thread.Part{Mode: mode, Task: task, Data: data})
	}
	require.Len(t, part(thread.StreamMessages, "one"), 1)
	require.Empty(t, part(thread.StreamReset, "two"), "another task")
	events := part(thread.StreamReset, "one")
	require.Len(t, events, 1)
	require.Equal(t, "messages", events[0].name)
	var both []map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(events[0].data.(json.RawMessage), &both))
	require.Equal(t, []string{`"m"`, `"remove"`, `"r"`}, []string{string(both[0]["id"]), string(both[0]["type"]), string(both[1]["run_id"])})
	require.Empty(t, part(thread.StreamReset, "one"), "there is nothing more to remove")
}
