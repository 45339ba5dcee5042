package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// stubEngine answers every run by a function, and has one empty thread.
type stubEngine func(in pregel.Input, opts graphadapter.RunOptions) error

func (stubEngine) serve(context.Context, []*graphadapter.Graph) (func() error, error) {
	return func() error { return nil }, nil
}

func (stubEngine) patience() time.Duration { return time.Minute }

func (stubEngine) parallel() int { return 1 }

func (stubEngine) close() error { return nil }

func (s stubEngine) open(context.Context, *graphadapter.Graph) (threads, error) {
	return stubThreads{s}, nil
}

type stubThreads struct{ answer stubEngine }

func (s stubThreads) run(_ context.Context, _ string, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error {
	opts.Observer = rec.observe
	return s.answer(in, opts)
}

func (s stubThreads) runOnce(ctx context.Context, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error {
	return s.run(ctx, "", in, opts, rec)
}

func (stubThreads) state(context.Context, place) (*pregel.Snapshot, error) {
	return &pregel.Snapshot{Tasks: []pregel.TaskSnapshot{{Name: "a", Questions: []pregel.Question{
		{ID: "q-1", Value: pregel.Value(`"text"`)}, {ID: "q-2", Value: pregel.Value(`{"b": 1, "a": 2}`)},
	}}}}, nil
}

func (stubThreads) history(context.Context, place) ([]*pregel.Snapshot, error) {
	return []*pregel.Snapshot{{Checkpoint: "c-2"}, {Checkpoint: "c-1"}}, nil
}

func (stubThreads) update(context.Context, place, graphadapter.StateUpdate) error {
	return &UnsupportedError{Engine: "stub", What: "update states"}
}

func (stubThreads) close() error { return nil }

// runStub runs a case of one action and one expected result on an engine.
func runStub(t *testing.T, action, expect string, answer stubEngine) verdict {
	t.Helper()
	text := []byte(`{"name": "n", "graph": {"channels": {"log": {"kind": "append"}},
		"nodes": [{"name": "a", "script": []}], "edges": [["__start__", "a"]]},
		"actions": [` + action + `], "expect": [` + expect + `]}`)
	c := newSource("n.json", text)
	if c.err != nil {
		t.Fatal(c.err)
	}
	return newTrial(&c, rootName).judge(t.Context(), answer)
}

// incomplete is what the verdict says when an action could not be performed.
const incomplete = "action 0: "

func TestInputs(t *testing.T) {
	const hex = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct{ action, want string }{
		{`{"invoke": null}`, `{}`},
		{`{"invoke": {"log": [1]}}`, `{"value":{"log":[1]}}`},
		{`{"resume": {"x": 1}}`, `{"resume":{"scalar":{"x":1},"ask_again":true}}`},
		{`{"resume": false}`, `{"resume":{"scalar":false,"ask_again":true}}`},
		{`{"resume": {"` + hex + `": 1}}`, `{"resume":{"by_id":{"` + hex + `":1},"ask_again":true}}`},
		{`{"resume": {"` + hex + `": 1, "x": 2}}`, `{"resume":{"scalar":{"` + hex + `":1,"x":2},"ask_again":true}}`},
		{`{"resume_map": {"text": 1, "{\"a\":2,\"b\":1}": 2, "other": 3}}`, `{"resume":{"by_id":{"q-1":1,"q-2":2},"ask_again":true}}`},
		{`{"command": {"update": {"log": {"__overwrite__": []}}, "goto": ["a", {"send": "a", "arg": 1}]}}`,
			`{"control":{"update":[{"channel":"log","value":[],"overwrite":true}],"goto":[{"node":"a"},{"node":"a","send":true,"arg":1}]}}`},
	} {
		var got pregel.Input
		v := runStub(t, c.action, `{}`, func(in pregel.Input, _ graphadapter.RunOptions) error {
			got = in
			return nil
		})
		if strings.Contains(v.failure, incomplete) {
			t.Fatal(v.failure)
		}
		if text := string(marshal(t, got)); text != c.want {
			t.Errorf("%s: %s, want %s", c.action, text, c.want)
		}
	}
}

func TestRunOptions(t *testing.T) {
	var got graphadapter.RunOptions
	keep := func(_ pregel.Input, opts graphadapter.RunOptions) error { got = opts; return nil }
	v := runStub(t, `{"invoke": {}, "from_checkpoint": 1, "interrupt_before": "*", "durability": "exit"}`, `{}`, keep)
	if strings.Contains(v.failure, incomplete) {
		t.Fatal(v.failure)
	}
	if got.Checkpoint != "c-1" || got.RecursionLimit != 25 || got.InterruptBefore[0] != "*" || got.InterruptAfter != nil ||
		got.Durability != graphadapter.DurabilityExit {
		t.Errorf("options %+v", got)
	}
	v = runStub(t, `{"invoke": {}, "from_checkpoint": 2}`, `{}`, keep)
	if !strings.Contains(v.failure, incomplete+"from_checkpoint is 2, but the history has 2 checkpoints") {
		t.Errorf("a checkpoint that is not there: %v", v.failure)
	}
}

func TestResults(t *testing.T) {
	asks := func(_ pregel.Input, opts graphadapter.RunOptions) error {
		opts.Observer(pregel.Event{Kind: pregel.EventInterrupt, Task: &pregel.Task{Node: "a"},
			Questions: []pregel.Question{{Value: pregel.Value(`"q"`)}}})
		return nil
	}
	for _, c := range []struct {
		name, expect string
		answer       stubEngine
	}{
		{"questions", `{"stream": [["updates", {"__interrupt__": ["q"]}]], "interrupts": ["q"], "output": null, "runs": {}}`, asks},
		{"failure", `{"stream": [["updates", {"__interrupt__": ["q"]}]], "error": {"type": "NodeFailure", "message": "m"}, "runs": {}}`,
			func(in pregel.Input, opts graphadapter.RunOptions) error {
				return errors.Join(asks(in, opts), &pregel.NodeError{Type: "NodeFailure", Message: "m"})
			}},
		{"values", `{"stream": [["values", {"log": [1]}], ["values", {"log": [2]}]], "output": {"log": [2]}, "runs": {}}`,
			func(_ pregel.Input, opts graphadapter.RunOptions) error {
				for _, v := range []string{"[1]", "[2]"} {
					opts.Observer(pregel.Event{Kind: pregel.EventValues, Values: func() map[string]pregel.Value {
						return map[string]pregel.Value{"log": pregel.Value(v)}
					}})
				}
				return nil
			}},
	} {
		if v := runStub(t, `{"invoke": {}}`, c.expect, c.answer); v.failure != "" {
			t.Errorf("%s: %s", c.name, v.failure)
		}
	}
}

func TestUnsupportedIsNoAnswer(t *testing.T) {
	v := runStub(t, `{"update_state": {"values": null}}`, `{"error": {"type": "Error"}}`, nil)
	if v.failure != incomplete+(&UnsupportedError{Engine: "stub", What: "update states"}).Error() {
		t.Errorf("got %q, want the *UnsupportedError, not a result", v.failure)
	}
}

func TestPanicOfAnEngineFailsTheCase(t *testing.T) {
	v := runStub(t, `{"invoke": {}}`, `{}`, func(pregel.Input, graphadapter.RunOptions) error { panic("lost") })
	if !strings.Contains(v.failure, "lost") || !strings.Contains(v.failure, "run_test.go:") {
		t.Errorf("got %q, want what panicked and where", v.failure)
	}
}

func TestCompileErrorMustCome(t *testing.T) {
	v := runStub(t, `{"invoke": {}}`, `{"error": {"type": "CompileError"}}`, nil)
	if v.failure != `expect[0].error: want {"type":"CompileError"}, got nothing` {
		t.Errorf("a graph that compiles although it must not: %q", v.failure)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
