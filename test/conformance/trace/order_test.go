package trace

import "testing"

// TestInOrder: the questions of an ended task, and the chunks between two values chunks, have one order.
func TestInOrder(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{
			`{"stream": [["updates", 1], ["tasks", {"name": "a", "result": {}, "interrupts": ["z", "b"]}], ["custom", 1], ["values", 1], ["values", 0]]}`,
			`{"stream":[["custom",1],["tasks",{"interrupts":["b","z"],"name":"a","result":{}}],["updates",1],["values",1],["values",0]]}`,
		},
		{
			`{"substreams": [[["b"], [["tasks", {"interrupts": [2, 1]}]]], [["a"], []]], "output": ["z", "b"]}`,
			`{"output":["z","b"],"substreams":[[["a"],[]],[["b"],[["tasks",{"interrupts":[1,2]}]]]]}`,
		},
		{`{"state": {"tasks": [{"interrupts": [2, 1]}]}}`, `{"state":{"tasks":[{"interrupts":[2,1]}]}}`},
		{`[1]`, `[1]`},
	} {
		before := decoded(t, c.in)
		if got := Canonical(InOrder(before)); got != c.want {
			t.Errorf("%s\nis in order %s\nwant %s", c.in, got, c.want)
		}
		if Canonical(before) != Canonical(decoded(t, c.in)) {
			t.Errorf("%s was changed", c.in)
		}
	}
}
