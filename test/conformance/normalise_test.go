package main

import (
	"testing"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/conformance/trace"
)

func TestStreamSortsBetweenValues(t *testing.T) {
	n := &normaliser{}
	got := n.stream([]chunk{
		{modeUpdates, "b"}, {modeUpdates, "a"}, {modeCustom, "z"}, {modeValues, "1"},
		{modeUpdates, "d"}, {modeUpdates, "c"}, {modeValues, "0"}, {modeValues, "0"}, {modeUpdates, "f"}, {modeUpdates, "e"},
	})
	want := `[["custom","z"],["updates","a"],["updates","b"],["values","1"],["updates","c"],["updates","d"],` +
		`["values","0"],["values","0"],["updates","e"],["updates","f"]]`
	if trace.Canonical(got) != want {
		t.Errorf("got  %s\nwant %s", trace.Canonical(got), want)
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
	if got := trace.Canonical(n.value(before)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if trace.Canonical(before) != trace.Canonical(mustDecode(t, in)) {
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
	if got := trace.Canonical(n.value(mustDecode(t, in))); got != in {
		t.Errorf("got %s", got)
	}
}

func TestSubstreamsAreSorted(t *testing.T) {
	n := &normaliser{}
	got := n.substreams(map[string]*stream{
		"": {}, "2/s": {path: []string{"s"}, chunks: []chunk{{modeCustom, "b"}}}, "3/s": {path: []string{"s"}, chunks: []chunk{{modeCustom, "a"}}},
	})
	if want := `[[["s"],[["custom","a"]]],[["s"],[["custom","b"]]]]`; trace.Canonical(got) != want {
		t.Errorf("got %s, want %s", trace.Canonical(got), want)
	}
}

// TestChunksAsRecorded: what the product streams loses what a case does not show.
func TestChunksAsRecorded(t *testing.T) {
	for _, c := range []struct{ mode, chunk, want string }{
		{modeUpdates, `{"a": {"x": {"__overwrite__": 2}}}`, `{"a":{"x":{"__overwrite__":2}}}`},
		{modeUpdates, `{"__interrupt__": [{"value": "b", "id": "2"}, {"value": "a", "id": "1"}]}`, `{"__interrupt__":["a","b"]}`},
		{modeUpdates, `{"__interrupt__": []}`, `{"__interrupt__":[]}`},
		{modeValues, `{"x": 1, "__interrupt__": [{"value": "b", "id": "2"}]}`, ``},
		{modeTasks, `{"id": "1/a", "name": "a", "input": {"x": 1}, "triggers": ["branch:to:a"]}`, `{"input":{"x":1},"name":"a"}`},
		{modeTasks, `{"id": "1/a", "name": "a", "error": null, "result": {"h": 3}, "interrupts": [{"value": 1, "id": "q"}]}`,
			`{"interrupts":[1],"name":"a","result":{"h":3}}`},
		{modeTasks, `{"id": "1/a", "name": "a", "error": {"type": "E"}, "result": {}, "interrupts": []}`, ``},
		{modeCustom, `"c"`, `"c"`},
	} {
		got := ""
		if v, ok := asRecorded(c.mode, shown([]byte(c.chunk))); ok {
			got = trace.Canonical(v)
		}
		if got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.mode, c.chunk, got, c.want)
		}
	}
}

func TestRecorderKeepsSubgraphsApart(t *testing.T) {
	toSub := []pregel.Edge{{From: pregel.Start, To: "sub"}}
	program, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "g", Nodes: []pregel.NodeSpec{{Name: "sub", Subgraph: "child"}}, Edges: toSub,
		Subgraphs: map[string]*pregel.Spec{"child": {
			Version: pregel.SpecVersion, Name: "child", Nodes: []pregel.NodeSpec{{Name: "sub"}}, Edges: toSub,
		}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{program: program, streams: map[string]*stream{"": {}}}
	r.take("1/sub", []string{"sub"}, modeCustom, "a")
	r.take("1/sub", []string{"sub"}, modeCustom, "b")
	r.take("", nil, modeCustom, "c")
	if s := r.streams["1/sub"]; s == nil || len(s.chunks) != 2 || s.path[0] != "sub" || len(r.streams[""].chunks) != 1 {
		t.Errorf("streams %v", r.streams)
	}
}
