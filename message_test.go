package superstep

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMessagesGetIDsWhenTheyHaveNone(t *testing.T) {
	var m Messages
	m.Append(Message{Role: RoleUser, Content: Text("a")}, Message{Role: RoleUser, Content: Text("b")})
	all := m.Get()
	require.Len(t, all, 2)
	assert.NotEmpty(t, all[0].ID)
	assert.NotEqual(t, all[0].ID, all[1].ID)
	assert.Equal(t, all, m.Get(), "the ids stay")
	m.Clear()
	assert.Empty(t, m.Get())
	m.Append(Message{ID: "x", Role: RoleUser, Content: Text("c")})
	m.Append(Message{ID: "x", Role: RoleUser, Content: Text("d")})
	assert.Equal(t, "user: d", m.String(), "the same id replaces")
}

func TestMessagesKeepTheShapesOfTheModelAPIs(t *testing.T) {
	tests := map[string]string{
		"text":        `{"id":"1","role":"user","content":"a < b & c"}`,
		"tool calls":  `{"id":"1","role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
		"tool result": `{"id":"1","role":"tool","content":"42","tool_call_id":"c1"}`,
		"image":       `{"id":"1","role":"user","content":[{"text":"see","type":"text"},{"image_url":{"url":"u"},"type":"image_url"}]}`,
		"tool use":    `{"id":"1","role":"assistant","content":[{"id":"t","input":{"n":9007199254740993},"name":"f","type":"tool_use"}]}`,
		"no parts":    `{"id":"1","role":"user","content":[]}`,
		"named":       `{"id":"1","role":"user","content":"x","name":"ann"}`,
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			var m Message
			require.NoError(t, json.Unmarshal([]byte(in), &m))
			out, err := encodeJSON(m)
			require.NoError(t, err)
			assert.Equal(t, in, string(out))
		})
	}
	var m Message
	require.NoError(t, json.Unmarshal([]byte(`{"role":"assistant","content":null}`), &m))
	assert.Equal(t, "", m.Content.String())
	assert.Error(t, json.Unmarshal([]byte(`{"role":"user","content":5}`), &m))
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"role":"user","content":[{"text":"x"}]}`), &m), "needs a type")
	parts := Content{Parts: []Part{{Type: "text", Text: "a"}, {Type: "image"}, {Type: "text", Text: "b"}}}
	assert.Equal(t, "a\nb", parts.String())
}

func TestRemovingAnUnknownMessageIsReportedToTheTask(t *testing.T) {
	s, sc := bound(t, `{"messages":[]}`)
	s.Messages.Remove("nobody")
	assert.Empty(t, s.Messages.Get())
	assert.ErrorContains(t, sc.failure(), `cannot remove the message "nobody"`)
}
