package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/conformance/trace"
)

// fakeHost answers from a list and notes what it is told.
type fakeHost struct {
	answers []any
	asked   []string
	emitted []string
	called  []string
}

var errWaits = errors.New("waits")

func (h *fakeHost) ask(_ context.Context, question any) (any, error) {
	h.asked = append(h.asked, trace.Canonical(question))
	if len(h.asked) > len(h.answers) {
		return nil, errWaits
	}
	return h.answers[len(h.asked)-1], nil
}

func (h *fakeHost) emit(_ context.Context, v any) error {
	h.emitted = append(h.emitted, trace.Canonical(v))
	return nil
}

func (h *fakeHost) call(_ context.Context, graph string, input any) (any, error) {
	h.called = append(h.called, graph+trace.Canonical(input))
	return map[string]any{"out": input}, nil
}

func parseNode(t *testing.T, text string) script {
	t.Helper()
	s, err := (&parser{counts: &sync.Mutex{}, calls: map[string]bool{}}).script(json.RawMessage(text))
	if err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	return s
}

func mustDecode(t *testing.T, text string) any {
	t.Helper()
	v, err := trace.Decode([]byte(text))
	if err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return v
}

func TestExpressions(t *testing.T) {
	input := `{"x": 3, "l": [1, 2], "s": "abc", "o": {"k": null}, "z": null}`
	for _, c := range []struct{ e, want string }{
		{`{"$get": "x"}`, `3`},
		{`{"$get": "none"}`, `null`},
		{`{"$arg": true}`, `{"l":[1,2],"o":{"k":null},"s":"abc","x":3,"z":null}`},
		{`{"$var": "v"}`, `"set"`},
		{`{"$var": "unset"}`, `null`},
		{`{"$len": {"$get": "l"}}`, `2`},
		{`{"$len": {"$get": "s"}}`, `3`},
		{`{"$len": {"$get": "o"}}`, `1`},
		{`{"$len": null}`, `0`},
		{`{"$add": [1, {"$get": "x"}, {"$get": "none"}, -7]}`, `-3`},
		{`{"$add": []}`, `0`},
		{`{"$lt": [{"$get": "none"}, 1]}`, `true`},
		{`{"$lt": [3, {"$get": "x"}]}`, `false`},
		{`{"$cat": [{"$get": "l"}, ["y"], []]}`, `[1,2,"y"]`},
		{`{"$cat": ["n=", 3, [1, {"b": 1, "a": 2}], null]}`, `"n=3[1,{\"a\":2,\"b\":1}]null"`},
		{`{"$eq": [{"a": 1, "b": [2]}, {"b": [2], "a": 1}]}`, `true`},
		{`{"$eq": [0, false]}`, `false`},
		{`{"$not": {"$get": "none"}}`, `true`},
		{`{"$not": "x"}`, `false`},
		{`{"$list": [{"$get": "x"}, {"y": {"$get": "x"}}]}`, `[3,{"y":{"$get":"x"}}]`},
		{`{"$obj": {"a": {"$get": "x"}, "b": 1}}`, `{"a":3,"b":1}`},
		{`{"$at": [{"$get": "o"}, "k"]}`, `null`},
		{`{"$at": [{"$get": "l"}, 1]}`, `2`},
		{`{"$at": [{"$get": "l"}, 2]}`, `null`},
		{`{"$at": [{"$get": "l"}, -1]}`, `null`},
		{`{"$at": [{"$get": "s"}, "k"]}`, `null`},
		{`{"$get": "x", "other": 1}`, `{"$get":"x","other":1}`},
		{`[{"$get": "x"}]`, `[{"$get":"x"}]`},
	} {
		e, err := parseExpr(json.RawMessage(c.e))
		if err != nil {
			t.Errorf("parsing %s: %v", c.e, err)
			continue
		}
		f := newFrame(t.Context(), nil, mustDecode(t, input))
		f.vars["v"] = "set"
		got, err := e(f)
		if err != nil {
			t.Errorf("%s: %v", c.e, err)
			continue
		}
		if trace.Canonical(got) != c.want {
			t.Errorf("%s = %s, want %s", c.e, trace.Canonical(got), c.want)
		}
	}
}

func TestGetOfInputThatIsNoObject(t *testing.T) {
	e, err := parseExpr(json.RawMessage(`{"$get": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := e(newFrame(t.Context(), nil, int64(4))); v != nil || err != nil {
		t.Errorf("got %v, %v, want null", v, err)
	}
}

func TestTruthy(t *testing.T) {
	for _, text := range []string{`false`, `null`, `0`, `""`, `[]`, `{}`} {
		if truthy(mustDecode(t, text)) {
			t.Errorf("%s counts as true", text)
		}
	}
	for _, text := range []string{`true`, `1`, `-1`, `"0"`, `[null]`, `{"a": 0}`} {
		if !truthy(mustDecode(t, text)) {
			t.Errorf("%s counts as false", text)
		}
	}
}

func TestScriptWritesReplaceAndBranch(t *testing.T) {
	s := parseNode(t, `[
		{"op": "write", "channel": "a", "value": 1}, {"op": "write", "channel": "b", "value": 2},
		{"op": "write", "channel": "a", "value": 3}, {"op": "let", "var": "v", "value": {"$len": {"$get": "l"}}},
		{"op": "if", "cond": {"$var": "v"}, "then": [{"op": "write", "channel": "c", "value": "then"}],
		 "else": [{"op": "write", "channel": "c", "value": "else"}]},
		{"op": "if", "cond": [], "then": [{"op": "write", "channel": "d", "value": 1}]}]`)
	f := newFrame(t.Context(), nil, mustDecode(t, `{"l": [1]}`))
	if err := s.run(f, "n"); err != nil {
		t.Fatal(err)
	}
	if want := []write{{"a", int64(3)}, {"b", int64(2)}, {"c", "then"}}; !reflect.DeepEqual(f.writes, want) {
		t.Errorf("writes %v, want %v", f.writes, want)
	}
}

func TestScriptAsksAndCalls(t *testing.T) {
	s := parseNode(t, `[
		{"op": "custom", "value": "in"}, {"op": "interrupt", "value": {"$cat": ["q", 1]}, "into": "v"},
		{"op": "call", "graph": "g", "input": {"$obj": {"a": {"$var": "v"}}}, "into": "r"},
		{"op": "interrupt", "value": null}, {"op": "write", "channel": "x", "value": {"$at": [{"$var": "r"}, "out"]}}]`)
	h := &fakeHost{answers: []any{"yes", int64(0)}}
	f := newFrame(t.Context(), h, nil)
	if err := s.run(f, "n"); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(h.asked, []string{`"q1"`, "null"}) || !reflect.DeepEqual(h.emitted, []string{`"in"`}) ||
		!reflect.DeepEqual(h.called, []string{`g{"a":"yes"}`}) {
		t.Errorf("asked %q, emitted %q, called %q", h.asked, h.emitted, h.called)
	}
	if len(f.writes) != 1 || trace.Canonical(f.writes[0].value) != `{"a":"yes"}` {
		t.Errorf("writes %v", f.writes)
	}
}

func TestScriptPassesTheEnginesErrorsOn(t *testing.T) {
	s := parseNode(t, `[{"op": "if", "cond": 1, "then": [{"op": "interrupt", "value": "q"}]}]`)
	if err := s.run(newFrame(t.Context(), &fakeHost{}, nil), "n"); err != errWaits {
		t.Errorf("got %v, want the host's own error, unwrapped", err)
	}
}

func TestFailCountsOverExecutions(t *testing.T) {
	s := parseNode(t, `[{"op": "fail", "message": "boom", "times": 2}, {"op": "write", "channel": "x", "value": 1}]`)
	for i, fails := range []bool{true, true, false, false} {
		err := s.run(newFrame(t.Context(), nil, nil), "n")
		var failure *NodeFailure
		if errors.As(err, &failure) != fails {
			t.Errorf("execution %d: %v, want a failure: %v", i, err, fails)
		}
		if fails && err.Error() != "boom" {
			t.Errorf("the failure says %q", err)
		}
	}
	always := parseNode(t, `[{"op": "fail", "message": "no"}]`)
	for range 3 {
		if err := always.run(newFrame(t.Context(), nil, nil), "n"); err == nil {
			t.Error("a fail without times must always fail")
		}
	}
}

func TestScriptFaults(t *testing.T) {
	for _, text := range []string{
		`[{"op": "let", "var": "v", "value": {"$add": ["x"]}}]`,
		`[{"op": "let", "var": "v", "value": {"$add": [9223372036854775807, 1]}}]`,
		`[{"op": "let", "var": "v", "value": {"$len": 5}}]`,
		`[{"op": "goto", "to": [5]}]`,
		`[{"op": "goto", "to": [{"send": "n", "each": 1, "arg": 1}]}]`,
	} {
		err := parseNode(t, text).run(newFrame(t.Context(), nil, nil), "a")
		var fault *ScriptError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), "script of a") {
			t.Errorf("%s: %v, want a *ScriptError that names the script", text, err)
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := parseNode(t, `[{"op": "sleep", "ms": 60000}]`).run(newFrame(ctx, nil, nil), "n"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTargets(t *testing.T) {
	s := parseNode(t, `[{"op": "goto", "to": ["b", {"$get": "next"}, {"send": "w", "arg": {"$get": "l"}},
		{"send": "w", "each": {"$get": "l"}, "arg": {"$obj": {"i": {"$item": true}}}}, null]}]`)
	f := newFrame(t.Context(), nil, mustDecode(t, `{"next": "c", "l": [7, 8]}`))
	if err := s.run(f, "n"); err != nil {
		t.Fatal(err)
	}
	want := []pregel.Target{
		{Node: "b"}, {Node: "c"}, {Node: "w", Send: true, Arg: pregel.Value(`[7,8]`)},
		{Node: "w", Send: true, Arg: pregel.Value(`{"i":7}`)}, {Node: "w", Send: true, Arg: pregel.Value(`{"i":8}`)}, {},
	}
	if !reflect.DeepEqual(f.targets, want) {
		t.Errorf("targets %v, want %v", f.targets, want)
	}
}

func TestNodeResult(t *testing.T) {
	n := &nodeScript{kinds: map[string]pregel.Kind{"r": pregel.KindReduce, "l": pregel.KindLast}}
	for _, c := range []struct {
		script string
		want   pregel.Command
	}{
		{`[{"op": "write", "channel": "r", "value": {"__overwrite__": [1]}}, {"op": "write", "channel": "l", "value": {"__overwrite__": 1}}]`,
			pregel.Command{Update: []pregel.Write{
				{Channel: "r", Value: pregel.Value(`[1]`), Overwrite: true}, {Channel: "l", Value: pregel.Value(`{"__overwrite__":1}`)}}}},
		{`[{"op": "write", "channel": "l", "value": 1}, {"op": "return_nothing"}, {"op": "write", "channel": "l", "value": 2}]`, pregel.Command{}},
		{`[{"op": "goto", "to": ["b"]}]`, pregel.Command{Goto: []pregel.Target{{Node: "b"}}}},
		{`[{"op": "write", "channel": "l", "value": 1}, {"op": "goto", "to": ["b"], "graph": "parent"}]`,
			pregel.Command{Parent: &pregel.Command{
				Update: []pregel.Write{{Channel: "l", Value: pregel.Value(`1`)}}, Goto: []pregel.Target{{Node: "b"}}}}},
	} {
		f := newFrame(t.Context(), nil, nil)
		if err := parseNode(t, c.script).run(f, "n"); err != nil {
			t.Fatal(err)
		}
		if got := n.result(f); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.script, got, c.want)
		}
	}
}
