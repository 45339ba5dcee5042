package blocks_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/serve/blocks"
)

// told is all that is told of a message's pieces, one event a line.
func told(t *testing.T, pieces ...blocks.Piece) (lines []string) {
	var m blocks.Message
	var all []blocks.Data
	for _, p := range pieces {
		all = append(all, m.Add(p)...)
	}
	for _, d := range append(all, m.Finish()...) {
		line, err := json.Marshal(d)
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	return lines
}

// Text comes in deltas; pieces without text tell nothing.
func TestText(t *testing.T) {
	require.Equal(t, []string{
		`{"event":"message-start","id":"m","role":"ai"}`,
		`{"content":{"text":"","type":"text"},"event":"content-block-start","index":0}`,
		`{"delta":{"text":"he","type":"text-delta"},"event":"content-block-delta","index":0}`,
		`{"delta":{"text":"llo","type":"text-delta"},"event":"content-block-delta","index":0}`,
		`{"content":{"text":"hello","type":"text"},"event":"content-block-finish","index":0}`,
		`{"event":"message-finish"}`,
	}, told(t, blocks.Piece{ID: "m"}, blocks.Piece{ID: "m", Text: "he"}, blocks.Piece{ID: "m", Text: "llo"}, blocks.Piece{ID: "m"}))
}

// Calls of tools are blocks of their own, behind what came before them; their arguments are parsed at the end, if they can be.
func TestCalls(t *testing.T) {
	require.Equal(t, []string{
		`{"event":"message-start","id":"m","role":"ai"}`,
		`{"content":{"text":"","type":"text"},"event":"content-block-start","index":0}`,
		`{"delta":{"text":"let me","type":"text-delta"},"event":"content-block-delta","index":0}`,
		`{"content":{"args":"","id":"a","name":"look","type":"tool_call_chunk"},"event":"content-block-start","index":1}`,
		`{"delta":{"args":"{\"x\"","type":"tool-call-delta"},"event":"content-block-delta","index":1}`,
		`{"delta":{"args":": 1}","type":"tool-call-delta"},"event":"content-block-delta","index":1}`,
		`{"content":{"args":"","id":"b","name":"do","type":"tool_call_chunk"},"event":"content-block-start","index":2}`,
		`{"delta":{"args":"{bad","type":"tool-call-delta"},"event":"content-block-delta","index":2}`,
		`{"content":{"args":"","id":"c","name":"go","type":"tool_call_chunk"},"event":"content-block-start","index":3}`,
		`{"delta":{"text":" see","type":"text-delta"},"event":"content-block-delta","index":0}`,
		`{"content":{"text":"let me see","type":"text"},"event":"content-block-finish","index":0}`,
		`{"content":{"args":{"x":1},"id":"a","name":"look","type":"tool_call"},"event":"content-block-finish","index":1}`,
		`{"content":{"args":"{bad","error":"the arguments are no JSON object","id":"b","name":"do","type":"invalid_tool_call"},"event":"content-block-finish","index":2}`,
		`{"content":{"args":{},"id":"c","name":"go","type":"tool_call"},"event":"content-block-finish","index":3}`,
		`{"event":"message-finish"}`,
	}, told(t,
		blocks.Piece{ID: "m", Text: "let me", Calls: []blocks.Call{{ID: "a", Name: "look", Arguments: `{"x"`}}},
		blocks.Piece{ID: "m", Calls: []blocks.Call{{Arguments: `: 1}`}}},
		blocks.Piece{ID: "m", Calls: []blocks.Call{{ID: "b", Name: "do", Arguments: `{bad`}, {ID: "c", Name: "go"}}},
		blocks.Piece{ID: "m", Text: " see"}))
}

// A part that is no text comes whole with its end.
func TestOtherParts(t *testing.T) {
	image := json.RawMessage(`{"type":"image","url":"https://example.com/i.png"}`)
	lines := told(t, blocks.Piece{ID: "m", Others: []json.RawMessage{image, json.RawMessage(`7`)}})
	require.Equal(t, []string{
		`{"content":{"type":"image"},"event":"content-block-start","index":0}`,
		`{"content":{"type":"non_standard","value":{}},"event":"content-block-start","index":1}`,
		`{"content":{"type":"image","url":"https://example.com/i.png"},"event":"content-block-finish","index":0}`,
		`{"content":{"type":"non_standard","value":7},"event":"content-block-finish","index":1}`,
	}, lines[1:5])
}
