package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/message"
	"superstep.dev/thread"

	"superstep.dev"
)

// conversation is a file of testdata/messages: a request's messages as the OpenAI API takes them, what they are for the
// Anthropic API, and what those are for the OpenAI API again.
type conversation struct {
	OpenAI    []json.RawMessage `json:"openai"`
	Anthropic []json.RawMessage `json:"anthropic"`
	System    json.RawMessage   `json:"system"`
	Back      []json.RawMessage `json:"back"`
}

func conversations(t *testing.T) map[string]conversation {
	t.Helper()
	files, err := filepath.Glob("testdata/messages/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]conversation{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var c conversation
		require.NoError(t, json.Unmarshal(raw, &c), file)
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = c
	}
	return out
}

func messagesOf(t *testing.T, raws []json.RawMessage) []message.Message {
	t.Helper()
	out := make([]message.Message, len(raws))
	for i, raw := range raws {
		require.NoError(t, json.Unmarshal(raw, &out[i]), "%s", raw)
		again, err := json.Marshal(out[i])
		require.NoError(t, err)
		assert.JSONEq(t, string(raw), string(again), "the message itself loses nothing")
	}
	return out
}

func sameJSON(t *testing.T, want, got []json.RawMessage) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, string(a), string(b))
}

func TestConversationsGoBackAsTheyCame(t *testing.T) {
	for name, c := range conversations(t) {
		t.Run(name, func(t *testing.T) {
			got, err := message.OpenAIMessages(messagesOf(t, c.OpenAI))
			require.NoError(t, err)
			sameJSON(t, c.OpenAI, got)

			messages := messagesOf(t, c.Anthropic)
			if c.System != nil {
				var system message.Content
				require.NoError(t, json.Unmarshal(c.System, &system))
				messages = append([]message.Message{{Role: message.RoleSystem, Content: system}}, messages...)
			}
			system, turns, err := message.AnthropicMessages(messages)
			require.NoError(t, err)
			assert.Equal(t, string(compact(t, c.System)), string(compact(t, system)))
			sameJSON(t, c.Anthropic, turns)
		})
	}
}

func TestConversationsAreConvertedToTheOtherShape(t *testing.T) {
	for name, c := range conversations(t) {
		t.Run(name, func(t *testing.T) {
			if c.OpenAI != nil {
				system, turns, err := message.AnthropicMessages(messagesOf(t, c.OpenAI))
				require.NoError(t, err)
				assert.Equal(t, string(compact(t, c.System)), string(compact(t, system)))
				sameJSON(t, c.Anthropic, turns)
			}
			messages := messagesOf(t, c.Anthropic)
			if c.System != nil {
				var content message.Content
				require.NoError(t, json.Unmarshal(c.System, &content))
				messages = append([]message.Message{{Role: message.RoleSystem, Content: content}}, messages...)
			}
			back, err := message.OpenAIMessages(messages)
			require.NoError(t, err)
			sameJSON(t, c.Back, back)
		})
	}
}

func compact(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if raw == nil {
		return nil
	}
	var v any
	require.NoError(t, json.Unmarshal(raw, &v))
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return out
}

// Responses hold more than requests take: a message keeps it, and the next request goes without.
func TestResponsesAreKeptWholeAndSentBackAsTheAPIsTakeThem(t *testing.T) {
	const anthropic = `{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-sonnet-4-5",
		"content":[{"type":"thinking","thinking":"The city is given.","signature":"EqQBCkYIBxgCKkA="},
			{"type":"text","text":"I look it up."},
			{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"get_weather","input":{"location":"Paris","id":9007199254740993}}],
		"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":472,"output_tokens":89}}`
	const openAI = `{"role":"assistant","content":null,"refusal":null,"annotations":[],
		"tool_calls":[{"id":"call_abc123","type":"function","function":{"name":"get_weather","arguments":"{\"location\": \"Paris\"}"}},
			{"id":"call_2","type":"custom","custom":{"name":"shell","input":"ls -l"}}]}`
	var m message.Message
	require.NoError(t, json.Unmarshal([]byte(anthropic), &m))
	assert.Equal(t, "msg_01XFDUDYJgAACzvnptvVoYEL", m.ID)
	assert.JSONEq(t, `"tool_use"`, string(m.Fields["stop_reason"]))
	again, err := json.Marshal(m)
	require.NoError(t, err)
	assert.Equal(t, string(compactText(t, anthropic)), string(compactText(t, string(again))))
	assert.Equal(t, []message.ToolCall{{ID: "toolu_01A09q90qw90lq917835lq9", Name: "get_weather",
		Arguments: `{"location":"Paris","id":9007199254740993}`}}, m.Calls(), "int64 survives")
	_, turns, err := message.AnthropicMessages([]message.Message{m, message.ToolResult(m.Calls()[0], "12 °C")})
	require.NoError(t, err)
	require.Len(t, turns, 2)
	assert.NotContains(t, string(turns[0]), "msg_01")
	assert.NotContains(t, string(turns[0]), "usage")
	assert.Contains(t, string(turns[0]), `"signature":"EqQBCkYIBxgCKkA="`)
	assert.JSONEq(t, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A09q90qw90lq917835lq9","content":"12 °C"}]}`, string(turns[1]))

	require.NoError(t, json.Unmarshal([]byte(openAI), &m))
	again, err = json.Marshal(m)
	require.NoError(t, err)
	assert.JSONEq(t, openAI, string(again))
	require.Len(t, m.Calls(), 2)
	assert.Equal(t, message.ToolCall{ID: "call_2", Type: "custom", Name: "shell", Arguments: "ls -l"}, m.Calls()[1])
	out, err := message.OpenAIMessages([]message.Message{m})
	require.NoError(t, err)
	assert.NotContains(t, string(out[0]), "annotations")
	assert.Contains(t, string(out[0]), `"content":null`)
}

func compactText(t *testing.T, raw string) []byte {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return out
}

func TestWhatHasNoPlaceInTheOtherShapeIsRefused(t *testing.T) {
	part := func(kind, fields string) []message.Message {
		var m message.Message
		require.NoError(t, json.Unmarshal([]byte(`{"role":"user","content":[{"type":"`+kind+`"`+fields+`}]}`), &m))
		return []message.Message{{Role: message.RoleUser, Content: message.Text("hi")}, m}
	}
	call := func(c message.ToolCall) []message.Message {
		return []message.Message{{Role: message.RoleAssistant, ToolCalls: []message.ToolCall{c}}}
	}
	anthropic := map[string]struct {
		in   []message.Message
		want string
	}{
		"audio":     {part("input_audio", `,"input_audio":{"data":"x","format":"wav"}`), `message 1 (user) has no Anthropic shape: a part of type "input_audio"`},
		"file":      {part("file", `,"file":{}`), `a part of type "file"`},
		"malformed": {call(message.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":`}), `the arguments of tool call "c1" (f) are no JSON object`},
		"a list":    {call(message.ToolCall{ID: "c1", Name: "f", Arguments: `[1]`}), `are no JSON object`},
		"free text": {call(message.ToolCall{ID: "c1", Name: "f", Type: "custom", Arguments: `{}`}), `are no JSON object`},
		"data URL":  {part("image_url", `,"image_url":{"url":"data:image/png,abc"}`), `a data URL that is not base64`},
		"bad image": {part("image_url", `,"image_url":5`), `the part of type "image_url": image_url`},
	}
	for name, test := range anthropic {
		_, _, err := message.AnthropicMessages(test.in)
		assert.ErrorIs(t, err, thread.ErrBadInput, name)
		assert.ErrorContains(t, err, test.want, name)
	}
	openAI := map[string]struct {
		in   []message.Message
		want string
	}{
		"document": {part("document", `,"source":{}`), `message 1 (user) has no OpenAI shape: a part of type "document"`},
		"file":     {part("image", `,"source":{"type":"file","file_id":"f"}`), `an image with a source of type "file"`},
		"result":   {part("tool_result", `,"tool_use_id":"t","content":[{"type":"image","source":{}}]`), `a tool's result with a part of type "image"`},
	}
	for name, test := range openAI {
		_, err := message.OpenAIMessages(test.in)
		assert.ErrorIs(t, err, thread.ErrBadInput, name)
		assert.ErrorContains(t, err, test.want, name)
	}
}

type talk struct {
	Messages superstep.Messages     `json:"messages"`
	Turns    superstep.Value[int64] `json:"turns"`
}

// A retry does not change the ids of messages, and no two tasks give the same: not in one superstep, not in a loop.
func TestMessagesKeepTheirIDsWhenATaskIsAttemptedAgain(t *testing.T) {
	said := map[int]string{}
	say := func(ctx context.Context, s talk) (talk, error) {
		s.Messages.Append(message.Message{Role: message.RoleAssistant, Content: message.Text("ok")})
		last, _ := s.Messages.Last()
		info := superstep.Info(ctx)
		if info.Step == 1 {
			said[info.Attempt] = last.ID
		}
		if info.Step == 1 && info.Attempt < 3 {
			return s, errors.New("lost the connection")
		}
		s.Turns.Set(s.Turns.Get() + 1)
		return s, nil
	}
	g := superstep.NewStateGraph[talk]("talk")
	g.AddNode("say", say, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: -1, NoJitter: true}))
	superstep.AddInputNode(g, "echo", func(context.Context, talk) (superstep.Command[talk], error) {
		var update talk
		update.Messages.Append(message.Message{Role: message.RoleAssistant, Content: message.Text("ok")})
		return superstep.Command[talk]{Update: update}, nil
	})
	g.AddEdge(superstep.Start, "say")
	g.AddEdge(superstep.Start, "echo")
	g.AddConditionalEdges("say", func(_ context.Context, s talk) ([]superstep.Target, error) {
		if s.Turns.Get() < 3 {
			return superstep.To("say", "echo"), nil
		}
		return nil, nil
	}, "say", "echo")
	got, err := g.MustCompile().Invoke(t.Context(), map[string]any{"messages": []any{}})
	require.NoError(t, err)
	assert.Len(t, said, 3)
	assert.Equal(t, said[1], said[2])
	assert.Equal(t, said[1], said[3])
	ids := map[string]bool{}
	for _, m := range got.Output.Messages.Get() {
		ids[m.ID] = true
	}
	assert.Len(t, ids, 6, "six messages of the same text")
	assert.True(t, ids[said[1]])
}

// Runs without a thread, and runs of several threads, give no id twice: what came with the input and what a node wrote can be gathered
// in one list.
func TestMessagesOfSeveralRunsHaveIDsOfTheirOwn(t *testing.T) {
	g := superstep.NewStateGraph[talk]("talk")
	g.AddNode("say", func(_ context.Context, s talk) (talk, error) {
		s.Messages.Append(message.Message{Role: message.RoleAssistant, Content: message.Text("ok")})
		return s, nil
	})
	g.AddEdge(superstep.Start, "say")
	graph := g.MustCompile()
	memory := superstep.NewMemory()
	input := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "go"}}}
	ids := map[string]bool{}
	invoke := func(thread string) (superstep.Result[talk], error) {
		if thread == "" {
			return graph.Invoke(t.Context(), input)
		}
		return graph.Thread(memory, thread).Invoke(t.Context(), input)
	}
	for _, thread := range []string{"", "", "a", "b"} {
		got, err := invoke(thread)
		require.NoError(t, err)
		for _, m := range got.Output.Messages.Get() {
			ids[m.ID] = true
		}
	}
	assert.Len(t, ids, 8)
}
