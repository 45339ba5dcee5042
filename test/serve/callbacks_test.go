package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The callback events of a run tell the start and the end of the graph, of its subgraphs, its nodes and its models, each within what it is of.
// What asks or fails has no end.
func TestCallbackEvents(t *testing.T) {
	w := newWorld(t)
	around := func(name string, within ...string) []string {
		return slices.Concat([]string{"on_chain_start " + name}, within, []string{"on_chain_end " + name})
	}
	node := func(name string, within ...string) []string {
		return around(name, append(within, "on_chain_stream "+name)...)
	}
	said := func(model string, pieces int) []string {
		return slices.Concat([]string{"on_chat_model_start " + model}, slices.Repeat([]string{"on_chat_model_stream " + model}, pieces), []string{"on_chat_model_end " + model})
	}
	id := w.thread()
	for _, c := range []struct {
		graph, thread string
		body          object
		want          []string
	}{
		{"steps", w.thread(), object{"input": object{"note": "x"}}, around("steps", slices.Concat(node("a"), node("b"), node("c"))...)},
		{"steps", w.thread(), object{"input": object{}, "interrupt_before": []string{"b"}}, around("steps", node("a")...)},
		{"fails", w.thread(), object{"input": object{"word": "x"}}, slices.Concat([]string{"on_chain_start fails"}, node("first"), []string{"on_chain_start boom"})},
		{"outer", id, object{"input": object{"topic": "x"}}, around("outer", append(node("before"), append([]string{"on_chain_start child", "on_chain_start child"}, append(node("draft"), "on_chain_start ask")...)...)...)},
		{"outer", id, object{"command": object{"resume": "yes"}}, around("outer", append(node("child", around("child", node("ask")...)...), node("after")...)...)},
		{"chat", w.thread(), object{"input": object{"messages": "hi there"}}, around("chat", node("model", said("model", 5)...)...)},
	} {
		c.body["assistant_id"], c.body["stream_mode"] = c.graph, "events"
		raw, err := json.Marshal(c.body)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(w.request("POST", "/threads/"+c.thread+"/runs/stream", bytes.NewReader(raw)))
		require.NoError(t, err)
		var told []callback
		for _, e := range events(t, resp.Body, func(sent) bool { return false }) {
			if e.Event == "events" {
				var one callback
				require.NoError(t, json.Unmarshal([]byte(e.Data), &one))
				told = append(told, one)
			}
		}
		require.NoError(t, resp.Body.Close())
		var names []string
		open := map[string]callback{}
		for _, e := range told {
			names = append(names, e.Event+" "+e.Name)
			for _, parent := range e.Parents {
				require.Contains(t, open, parent, "%s is of something that has begun", e.Event)
			}
			begin, ended := strings.CutSuffix(e.Event, "_start")
			if ended {
				require.NotContains(t, open, e.ID)
				open[e.ID] = e
				continue
			}
			require.Equal(t, e.Name, open[e.ID].Name, begin)
			if strings.HasSuffix(e.Event, "_end") && len(e.Parents) > 0 {
				require.Equal(t, open[e.ID].Data["input"], e.Data["input"])
			}
		}
		require.Equal(t, c.want, names, c.graph)
		first, last := told[0], told[len(told)-1]
		require.Equal(t, w.runs(c.thread)[0], first.ID)
		if given := c.body["input"]; given != nil && c.graph != "fails" {
			require.Equal(t, asJSON(t, given), asJSON(t, first.Data["input"]))
			require.Equal(t, asJSON(t, w.stand(c.thread).Values), asJSON(t, last.Data["output"]))
		}
		if c.graph == "chat" {
			require.Equal(t, "You said hi there", told[len(told)-4].Data["output"].(object)["content"])
		}
	}
}

// callback is a callback event.
type callback struct {
	Event, Name string
	ID          string   `json:"run_id"`
	Parents     []string `json:"parent_ids"`
	Data        object
}

// runs are the ids of a thread's runs, the newest first.
func (w *world) runs(thread string) (ids []string) {
	w.Helper()
	var all []struct {
		ID string `json:"run_id"`
	}
	require.Equal(w, 200, w.ask("GET", "/threads/"+thread+"/runs", nil, &all))
	for _, r := range all {
		ids = append(ids, r.ID)
	}
	return ids
}

func asJSON(t *testing.T, v any) string {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// A run that stops behind a node has told what it stops at: the values, and the checkpoint with what comes next.
func TestABreakpointBehindANode(t *testing.T) {
	w := newWorld(t)
	for where, want := range map[string][]string{
		"interrupt_after":  {"checkpoints __start__", "values", "checkpoints a", "tasks", "updates", "tasks", "values", "checkpoints b", "updates"},
		"interrupt_before": {"checkpoints __start__", "values", "checkpoints a", "updates"},
	} {
		id := w.thread()
		raw, err := json.Marshal(object{"assistant_id": "steps", "input": object{"note": "x"}, where: []string{"a"}, "stream_mode": []string{"values", "updates", "tasks", "checkpoints"}})
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(w.request("POST", "/threads/"+id+"/runs/stream", bytes.NewReader(raw)))
		require.NoError(t, err)
		var told []string
		var last struct {
			Config struct {
				Configurable struct {
					ID string `json:"checkpoint_id"`
				}
			}
			Next []string
		}
		for _, e := range events(t, resp.Body, func(sent) bool { return false })[1:] {
			if e.Event == "checkpoints" {
				require.NoError(t, json.Unmarshal([]byte(e.Data), &last))
				e.Event += " " + strings.Join(last.Next, " ")
			}
			told = append(told, e.Event)
		}
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, told, where)
		var state struct {
			ID string `json:"checkpoint_id"`
		}
		require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/state", nil, &state))
		require.Equal(t, state.ID, last.Config.Configurable.ID)
	}
}
