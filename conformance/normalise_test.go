package main

import (
	"testing"

	"superstep.dev/graphadapter/pregel"
)

func TestStreamSortsBetweenValues(t *testing.T) {
	n := &normaliser{}
	got := n.stream([]chunk{
		{modeUpdates, "b"}, {modeUpdates, "a"}, {modeCustom, "z"}, {modeValues, "1"},
		{modeUpdates, "d"}, {modeUpdates, "c"}, {modeValues, "0"}, {modeValues, "0"}, {modeUpdates, "f"}, {modeUpdates, "e"},
	})
	want := `[["custom","z"],["updates","a"],["updates","b"],["values","1"],["updates","c"],["updates","d"],` +
		`["values","0"],["values","0"],["updates","e"],["updates","f"]]`
	if canonical(got) != want {
		t.Errorf("got  %s\nwant %s", canonical(got), want)
	}
}

func TestMessagesHideTheEnginesIDs(t *testing.T) {
	text := []byte(`{"name": "n", "graph": {"channels": {"m": {"kind": "messages"}}},
		"actions": [{"invoke": {"m": [{"role": "user", "content": "x", "id": "1"}]}}], "expect": [{}]}`)
	c, err := decodeCase(text)
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNormaliser(c, text)
	if err != nil {
		t.Fatal(err)
	}
	in := `{"m": [{"role": "user", "content": "x", "id": "1"}, {"role": "assistant", "content": "y", "id": "m-5"},
		{"role": "assistant", "content": "z"}, {"role": "remove", "id": "9"}], "id": "other"}`
	before := mustDecode(t, in)
	want := `{"id":"other","m":[{"content":"x","id":"1","role":"user"},{"content":"y","id":"auto","role":"assistant"},` +
		`{"content":"z","id":"auto","role":"assistant"},{"id":"9","role":"remove"}]}`
	if got := canonical(n.value(before)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if canonical(before) != canonical(mustDecode(t, in)) {
		t.Error("the value itself was changed")
	}
}

func TestNothingIsAMessageWithoutAMessagesChannel(t *testing.T) {
	text := []byte(`{"name": "n", "graph": {"channels": {"m": {"kind": "append"}}}, "actions": [{"invoke": {}}], "expect": [{}]}`)
	c, err := decodeCase(text)
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNormaliser(c, text)
	if err != nil {
		t.Fatal(err)
	}
	in := `[{"content":"y","id":"m-5","role":"assistant"}]`
	if got := canonical(n.value(mustDecode(t, in))); got != in {
		t.Errorf("got %s", got)
	}
}

func TestSubstreamsAreSorted(t *testing.T) {
	n := &normaliser{}
	got := n.substreams(map[string]*stream{
		"": {}, "2/s": {path: []string{"s"}, chunks: []chunk{{modeCustom, "b"}}}, "3/s": {path: []string{"s"}, chunks: []chunk{{modeCustom, "a"}}},
	})
	if want := `[[["s"],[["custom","a"]]],[["s"],[["custom","b"]]]]`; canonical(got) != want {
		t.Errorf("got %s, want %s", canonical(got), want)
	}
}

func TestRecorder(t *testing.T) {
	child := &built{output: map[string]bool{"y": true}, kinds: map[string]pregel.Kind{"y": pregel.KindLast, "p": pregel.KindLast}}
	root := &built{
		output: map[string]bool{"x": true}, kinds: map[string]pregel.Kind{"x": pregel.KindReduce, "h": pregel.KindLast},
		nodes: map[string]*built{"sub": child},
	}
	task := &pregel.Task{Node: "a", State: map[string]pregel.Value{"x": pregel.Value(`1`)}}
	send := &pregel.Task{Node: "w", Arg: pregel.Null}
	q := []pregel.Question{{Value: pregel.Value(`"b"`)}, {Value: pregel.Value(`"a"`)}}
	for _, c := range []struct {
		event pregel.Event
		want  string
	}{
		{pregel.Event{Kind: pregel.EventUpdate, Task: task, Writes: []pregel.Write{
			{Channel: "x", Value: pregel.Value(`2`), Overwrite: true}, {Channel: "h", Value: pregel.Value(`3`)}, {Channel: "?", Value: pregel.Value(`4`)}}},
			`["updates",{"a":{"x":{"__overwrite__":2}}}]`},
		{pregel.Event{Kind: pregel.EventUpdate, Task: task, Writes: []pregel.Write{{Channel: "h", Value: pregel.Value(`3`)}}, Cached: true},
			`["updates",{"__metadata__":{"cached":true},"a":null}]`},
		{pregel.Event{Kind: pregel.EventUpdate, Nodes: []string{"sub"}, Task: task, Writes: []pregel.Write{
			{Channel: "y", Value: pregel.Value(`1`)}, {Channel: "p", Value: pregel.Value(`2`)}}}, `["updates",{"a":{"y":1}}]`},
		{pregel.Event{Kind: pregel.EventInterrupt, Task: task, Questions: q}, `["updates",{"__interrupt__":["a","b"]}]`},
		{pregel.Event{Kind: pregel.EventInterrupt}, `["updates",{"__interrupt__":[]}]`},
		{pregel.Event{Kind: pregel.EventTaskStart, Task: task}, `["tasks",{"input":{"x":1},"name":"a"}]`},
		{pregel.Event{Kind: pregel.EventTaskStart, Task: send}, `["tasks",{"input":null,"name":"w"}]`},
		{pregel.Event{Kind: pregel.EventTaskEnd, Task: task, Writes: []pregel.Write{{Channel: "h", Value: pregel.Value(`3`)}, {Channel: "?", Value: pregel.Value(`4`)}}},
			`["tasks",{"interrupts":[],"name":"a","result":{"h":3}}]`},
		{pregel.Event{Kind: pregel.EventTaskEnd, Task: task, Error: &pregel.NodeError{}}, ``},
		{pregel.Event{Kind: pregel.EventValues, Values: map[string]pregel.Value{"x": pregel.Value(`[1]`)}}, `["values",{"x":[1]}]`},
		{pregel.Event{Kind: pregel.EventCustom, Task: task, Value: pregel.Value(`"c"`)}, `["custom","c"]`},
		{pregel.Event{Kind: pregel.EventCheckpoint}, ``},
	} {
		r := newRecorder(root, &action{})
		got := ""
		if chunk, ok := r.chunk(c.event); ok {
			got = canonical([]any{chunk.mode, chunk.value})
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.event.Kind, got, c.want)
		}
	}
}

func TestRecorderKeepsWhatWasAskedFor(t *testing.T) {
	values := pregel.Event{Kind: pregel.EventValues, Namespace: "1/sub", Nodes: []string{"sub"}}
	plain := newRecorder(&built{}, &action{Modes: []string{modeCustom}})
	plain.observe(values)
	plain.observe(pregel.Event{Kind: pregel.EventValues})
	if len(plain.streams) != 1 || len(plain.streams[""].chunks) != 0 {
		t.Errorf("streams %v: want neither subgraphs nor other modes", plain.streams)
	}
	all := newRecorder(&built{}, &action{Subgraphs: true})
	all.observe(values)
	all.observe(values)
	if s := all.streams["1/sub"]; s == nil || len(s.chunks) != 2 || s.path[0] != "sub" {
		t.Errorf("stream of the subgraph: %v", s)
	}
}
