package serve

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/serve/blocks"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// narrate returns the events of parts, in short: those of messages with their text.
func narrate(n *narrator, parts ...thread.Part) (out []string) {
	for _, p := range parts {
		out = append(out, brief(n.of(p))...)
	}
	return out
}

func brief(all []happened) (out []string) {
	for _, e := range all {
		line := fmt.Sprint(e.method, " ", len(e.space))
		data, _ := e.data.(map[string]any)
		if b, ok := e.data.(blocks.Data); ok {
			data = b
		}
		for _, name := range []string{"event", "id", "delta", "node", "interrupt_id", "name"} {
			if v, ok := data[name]; ok {
				line += fmt.Sprint(" ", v)
			}
		}
		out = append(out, line)
	}
	return out
}

func said(task, id, text string) thread.Part {
	data := fmt.Sprintf(`[{"id": %q, "role": "assistant", "content": %q}, {}]`, id, text)
	return thread.Part{Mode: thread.StreamMessages, Task: task, Data: json.RawMessage(data), Time: time.Unix(1, 0)}
}

func wrote(task, data string, space ...string) thread.Part {
	return thread.Part{Mode: thread.StreamUpdates, Task: task, Namespace: space, Data: json.RawMessage(data)}
}

func narratorOf(t *testing.T) *narrator {
	t.Helper()
	return newNarrator(&renderer{thread: "t", spec: &pregel.Spec{Name: "g"}, conversations: map[string]bool{}}, record.Run{ID: "r"})
}

// Tasks beside one another stream messages of their own, each finished before its task's update. An attempt that is repeated
// begins its message anew, and what is open at the end is finished there.
func TestMessagesOfTasks(t *testing.T) {
	n := narratorOf(t)
	require.Equal(t, []string{
		"messages 0 message-start x",
		"messages 0 content-block-start",
		"messages 0 content-block-delta map[text:a type:text-delta]",
		"messages 0 message-start y",
		"messages 0 content-block-start",
		"messages 0 content-block-delta map[text:b type:text-delta]",
		"messages 0 message-start x",
		"messages 0 content-block-start",
		"messages 0 content-block-delta map[text:c type:text-delta]",
		"messages 0 content-block-finish",
		"messages 0 message-finish",
		"updates 0 one",
		"messages 0 content-block-finish",
		"messages 0 message-finish",
		"messages 0 message-start z",
	}, narrate(n, said("1/one", "x", "a"), said("1/two", "y", "b"), thread.Part{Mode: thread.StreamReset, Task: "1/one"},
		said("1/one", "x", "c"), wrote("1/one", `{"one": null}`), said("1/two", "z", "")))
	require.Equal(t, []string{"messages 0 message-finish"}, brief(n.rest(nil)))
}

// Subgraphs of one node beside one another end each with its own task; a question is asked once, where it is asked first.
func TestSubgraphsOfTasks(t *testing.T) {
	n := narratorOf(t)
	values := func(space ...string) thread.Part {
		return thread.Part{Mode: thread.StreamValues, Namespace: space, Data: json.RawMessage(`{}`)}
	}
	asks := `{"__interrupt__": [{"id": "q-1", "value": 1}]}`
	require.Equal(t, []string{
		"values 1",
		"lifecycle 1 started",
		"values 1",
		"lifecycle 1 started",
		"updates 0 sub",
		"lifecycle 1 completed",
		"input.requested 1 q-1",
	}, narrate(n, values("1/sub:0"), values("1/sub:1"), thread.Part{Mode: thread.StreamValues, Namespace: []string{"1/sub:0"}, Data: json.RawMessage(asks)}, wrote("1/sub:1", `{"sub": {}}`), wrote("1/sub:0|2/ask", asks, "1/sub:0"), wrote("1/sub:0", asks)))
	require.Empty(t, n.rest(nil))
	require.Equal(t, []string{"lifecycle 0 interrupted", "values 1", "lifecycle 1 interrupted"}, brief(n.ended(nil)))
	require.Equal(t, "sub", n.space([]string{"1/sub:0"})[0][:3])
}

// Something custom has the name that it says, and can be asked for by it.
func TestCustomByName(t *testing.T) {
	n := narratorOf(t)
	all := n.of(thread.Part{Mode: thread.StreamCustom, Data: json.RawMessage(`{"name": "progress", "done": 1}`)})
	require.Equal(t, []string{"custom 0 progress"}, brief(all))
	for channel, wanted := range map[string]bool{"custom": true, "custom:progress": true, "custom:other": false, "values": false} {
		require.Equal(t, wanted, (&subscription{Channels: []string{channel}}).wants(all[0]), channel)
	}
}
