package superstep

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/message"
)

func TestMessagesKeepTheShapesOfTheModelAPIs(t *testing.T) {
	tests := map[string]string{
		"text":        `{"id":"1","role":"user","content":"a < b & c"}`,
		"tool calls":  `{"id":"1","role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
		"tool result": `{"id":"1","role":"tool","content":"42","tool_call_id":"c1"}`,
		"image":       `{"id":"1","role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"u"}}]}`,
		"tool use":    `{"id":"1","role":"assistant","content":[{"type":"tool_use","id":"t","input":{"n":9007199254740993},"name":"f"}]}`,
		"no parts":    `{"id":"1","role":"user","content":[]}`,
		"named":       `{"id":"1","role":"user","content":"x","name":"ann"}`,
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			var m message.Message
			require.NoError(t, json.Unmarshal([]byte(in), &m))
			out, err := jsonfit.Encode(m)
			require.NoError(t, err)
			assert.Equal(t, in, string(out))
		})
	}
	var m message.Message
	require.NoError(t, json.Unmarshal([]byte(`{"role":"assistant","content":null}`), &m))
	assert.Equal(t, "", m.Content.String())
	assert.Error(t, json.Unmarshal([]byte(`{"role":"user","content":5}`), &m))
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"role":"user","content":[{"text":"x"}]}`), &m), "needs a type")
	parts := message.Content{Parts: []message.Part{{Type: "text", Text: "a"}, {Type: "image"}, {Type: "text", Text: "b"}}}
	assert.Equal(t, "a\nb", parts.String())
}

func TestRemovingAnUnknownMessageIsReportedToTheTask(t *testing.T) {
	s, sc := bound(t, `{"messages":[]}`)
	s.Messages.Remove("nobody")
	assert.Empty(t, s.Messages.Get())
	assert.ErrorContains(t, sc.failure(), `cannot remove the message "nobody"`)
}

// Ids follow from the task, so that an attempt that runs again names its messages as the one before.
func TestMessagesWithoutIDsGetThoseOfTheirTask(t *testing.T) {
	task := func(step string) []string {
		sc := newScope("g", "n")
		sc.task = func() string { return step }
		var s allChannels
		schemaFor[allChannels]().bind(&s, sc, nil)
		s.Messages.Append(message.Message{Role: message.RoleUser, Content: message.Text("a")}, message.Message{Role: message.RoleUser, Content: message.Text("a")})
		copied := s
		copied.Messages.Append(message.Message{Role: message.RoleUser, Content: message.Text("c")})
		var own allChannels
		own.Messages.Append(message.Message{Role: message.RoleUser, Content: message.Text("a")}, message.Message{ID: "mine", Role: message.RoleUser})
		assert.Equal(t, []string{"", "mine"}, ids(own.Messages), "none before it is handed over")
		writes, err := schemaFor[allChannels]().collect(&own, sc)
		require.NoError(t, err)
		require.Len(t, writes, 1)
		var handed []message.Message
		require.NoError(t, json.Unmarshal(writes[0].Value, &handed))
		return append(append(ids(s.Messages), ids(copied.Messages)[2]), handed[0].ID)
	}
	first := task("step 1")
	assert.Equal(t, first, task("step 1"))
	seen := map[string]bool{"": true}
	for _, id := range append(first, task("step 2")...) {
		assert.False(t, seen[id], "each message has an id of its own: %q", id)
		seen[id] = true
	}
}

func ids(m Messages) (out []string) {
	for _, one := range m.Get() {
		out = append(out, one.ID)
	}
	return out
}

func TestMessagesOfAnInputGetRandomIDs(t *testing.T) {
	given := func() []message.Message {
		var in allChannels
		in.Messages.Append(message.Message{Role: message.RoleUser, Content: message.Text("a")})
		in.Messages.Append(message.Message{ID: "x", Role: message.RoleUser}, message.Message{ID: "x", Role: message.RoleAssistant})
		raw, err := encodeInput("g", in)
		require.NoError(t, err)
		var out struct{ Messages []message.Message }
		require.NoError(t, json.Unmarshal(raw, &out))
		return out.Messages
	}
	a, b := given(), given()
	require.Len(t, a, 3)
	assert.NotEmpty(t, a[0].ID)
	assert.NotEqual(t, a[0].ID, b[0].ID)
}

// LangGraph's add_messages, as a node sees it in its own state.
func TestMessagesFollowTheRulesOfAddMessages(t *testing.T) {
	user := func(id, text string) message.Message {
		return message.Message{ID: id, Role: message.RoleUser, Content: message.Text(text)}
	}
	tests := map[string]struct {
		write func(m *Messages)
		want  string
	}{
		"append":                  {func(m *Messages) { m.Append(user("c", "3")) }, "a=1 b=2 c=3"},
		"replace in place":        {func(m *Messages) { m.Append(user("a", "9"), user("c", "3")) }, "a=9 b=2 c=3"},
		"replace its own":         {func(m *Messages) { m.Append(user("c", "3")); m.Append(user("c", "4")) }, "a=1 b=2 c=4"},
		"remove":                  {func(m *Messages) { m.Remove("a") }, "b=2"},
		"remove its own":          {func(m *Messages) { m.Append(user("c", "3")); m.Remove("c") }, "a=1 b=2"},
		"remove and un-remove":    {func(m *Messages) { m.Remove("a"); m.Append(user("a", "9")) }, "a=9 b=2"},
		"remove all":              {func(m *Messages) { m.Clear() }, ""},
		"remove all, then append": {func(m *Messages) { m.Append(user("c", "3")); m.Clear(); m.Append(user("a", "9")) }, "a=9"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, sc := bound(t, `{"messages":[{"id":"a","role":"user","content":"1"},{"id":"b","role":"user","content":"2"}]}`)
			test.write(&s.Messages)
			var got []string
			for _, m := range s.Messages.Get() {
				got = append(got, m.ID+"="+m.Content.String())
			}
			assert.Equal(t, test.want, strings.Join(got, " "))
			assert.NoError(t, sc.failure())
		})
	}
}
