package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/stream"
)

// emitting returns a node that emits and then writes.
func emitting(emitted []pregel.Emission, writes ...string) node {
	return func(*pregel.Task, int) pregel.Outcome {
		return pregel.Outcome{Emitted: emitted, Command: command(writes...)}
	}
}

func piece(text string) pregel.Emission {
	return pregel.Emission{Kind: pregel.EmissionMessage, Value: pregel.Value(text)}
}

// TestCustom: what a node emits comes before its update, as it is.
func TestCustom(t *testing.T) {
	lines := one(t, emitting([]pregel.Emission{{Value: pregel.Value(`{"done":1}`)}, {Value: pregel.Value("2")}}, "x=1"), stream.Custom, stream.Updates)
	assert.Equal(t, []string{`custom {"done":1}`, `custom 2`, `updates {"a":{"x":1}}`}, lines)
}

// TestMessages: each whole message once: neither one that the node was given, nor one whose pieces were emitted.
func TestMessages(t *testing.T) {
	const user, reply, other = `{"id":"u","role":"user"}`, `{"id":"r","role":"assistant"}`, `{"id":"o","role":"assistant"}`
	where := `,{"langgraph_step":1,"langgraph_node":"a","langgraph_triggers":["branch:to:a"],` +
		`"langgraph_path":["__pregel_pull","a"],"langgraph_checkpoint_ns":"1/a"}]`
	s := newSession(t, chainOf("a", "b"), map[string]node{
		"a": emitting([]pregel.Emission{piece(`{"id":"r","content":"he"}`), piece(`{"id":"r","content":"llo"}`)},
			"messages=["+user+","+reply+","+other+`,{"id":"u","role":"remove"}]`),
		"b": writing("messages=" + other),
	}, stream.Messages)
	assert.Equal(t, []string{
		`messages [{"id":"r","content":"he"}` + where,
		`messages [{"id":"r","content":"llo"}` + where,
		`messages [` + other + where,
	}, s.run(input(`{"messages":[`+user+`]}`)))
}

// TestAPieceThatIsNoJSON is an error of the stream, whatever it looks like.
func TestAPieceThatIsNoJSON(t *testing.T) {
	for _, broken := range []string{`{"id":"r","content":"he`, `"he"},{"id":"r"`, "he", `{}]`, "1,2"} {
		s := newSession(t, chainOf("a"), nil, stream.Messages)
		shaper := stream.New("t-1", s.modes, false)
		shaper.Began(s.program, s.durability)
		task := &pregel.Task{Step: 1, Path: "a", Node: "a"}
		_, err := shaper.Shape(pregel.Event{Kind: pregel.EventMessage, Task: task, Step: 1, Value: pregel.Value(broken)}, noon)
		require.ErrorContains(t, err, "a streamed value is not JSON", broken)
	}
}

// TestMessagesOfSends have the Send's place in their path, and what the Send was given is no news.
func TestMessagesOfSends(t *testing.T) {
	s := newSession(t, chainOf("a"), map[string]node{"a": func(task *pregel.Task, _ int) pregel.Outcome {
		if task.IsSend() {
			return pregel.Outcome{Command: command(`messages=[{"id":"g","role":"user"},{"id":"n","role":"user"}]`)}
		}
		given := pregel.Value(`{"messages":[{"id":"g","role":"user"}]}`)
		return pregel.Outcome{Command: pregel.Command{Goto: []pregel.Target{{Node: "a", Send: true, Arg: given}}}}
	}}, stream.Messages)
	lines := s.run(input(`{"x":0}`))
	assert.Len(t, lines, 1)
	assert.Contains(t, lines[0], `{"id":"n","role":"user"},{"langgraph_step":2,"langgraph_node":"a","langgraph_triggers":["__pregel_push"],`+
		`"langgraph_path":["__pregel_push",0,false],"langgraph_checkpoint_ns":"2/a:0"}`)
}

// TestReset: a repeated attempt voids what the earlier one emitted, its messages' ids included.
func TestReset(t *testing.T) {
	lines := one(t, emitting([]pregel.Emission{{Value: pregel.Value("1")}, piece(`{"id":"m","content":"ha"}`),
		{Kind: pregel.EmissionReset, Attempt: 2}, {Value: pregel.Value("2")}}, `messages={"id":"m","role":"assistant"}`),
		stream.Custom, stream.Messages)
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], `,{"langgraph_step"`)
	}
	assert.Equal(t, []string{`custom 1`, `messages [{"id":"m","content":"ha"}`, `reset {"id":"1/a","name":"a","attempt":2}`,
		`custom 2`, `messages [{"id":"m","role":"assistant"}`}, lines)
	assert.Empty(t, one(t, emitting([]pregel.Emission{{Kind: pregel.EmissionReset, Attempt: 2}}), stream.Values)[1:])
}

// TestFinishedWorkIsNoNews: messages of a task that an earlier run finished are not streamed again.
func TestFinishedWorkIsNoNews(t *testing.T) {
	s := newSession(t, besides(chainOf("a"), "b"), map[string]node{"a": asking("x=1"), "b": writing(`messages={"id":"m","role":"user"}`)}, stream.Messages)
	assert.Len(t, s.run(input(`{"x":0}`)), 1)
	assert.Empty(t, s.run(answer("1")))
}
