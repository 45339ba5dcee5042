package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"superstep.dev/test/conformance/trace"
)

// asksAfterP is a graph p → x of a log, where x asks and logs the answer.
const asksAfterP = `"graph": {"channels": {"log": {"kind": "append"}}, "nodes": [
	{"name": "p", "script": [{"op": "write", "channel": "log", "value": ["p"]}]},
	{"name": "x", "script": [{"op": "interrupt", "value": "q", "into": "v"},
		{"op": "write", "channel": "log", "value": {"$list": [{"$var": "v"}]}}]}],
	"edges": [["__start__", "p"], ["p", "x"]]}`

// played is what an engine answers to the actions of a case.
func played(t *testing.T, e engine, graph, actions string) []any {
	t.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(actions), &all); err != nil {
		t.Fatal(err)
	}
	expect := strings.TrimSuffix(strings.Repeat("{},", len(all)), ",")
	c := newSource("played.json", []byte(fmt.Sprintf(`{"name": "played", %s, "actions": %s, "expect": [%s]}`, graph, actions, expect)))
	tr := newTrial(&c, graphName(t))
	if tr.broken != nil {
		t.Fatal(tr.broken)
	}
	tr.run.states = func(int) bool { return true }
	serve(t, e, tr)
	answers, err := tr.run.on(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// part is what stands at a path of fields and places, as canonical JSON.
func part(v any, path ...any) string {
	for _, at := range path {
		switch at := at.(type) {
		case string:
			fields, _ := v.(map[string]any)
			v = fields[at]
		case int:
			list, _ := v.([]any)
			if at >= len(list) {
				return "nothing"
			}
			v = list[at]
		}
	}
	return trace.Canonical(v)
}

func holds(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// TestAnswerAtThePassedQuestion: an answer from the checkpoint of an answered question corrects it, on a line of its own.
func TestAnswerAtThePassedQuestion(t *testing.T) {
	runOnEngines(t, func(t *testing.T, e engine) {
		got := played(t, e, asksAfterP, `[{"invoke": {}}, {"resume": "old"}, {"resume": "new", "from_checkpoint": 1}, {"history": true}]`)
		holds(t, "what x did", part(got[2], "runs"), `{"x":1}`)
		holds(t, "the thread", part(got[2], "state", "values", "log"), `["p","new"]`)
		holds(t, "the newest", part(got[3], "history", 0, "values", "log")+part(got[3], "history", 0, "parent"), `["p","new"]2`)
		holds(t, "the line before", part(got[3], "history", 1, "values", "log")+part(got[3], "history", 1, "parent"), `["p","old"]2`)
	})
}

// TestAnswerBeforeThePassedQuestion: an answer from the input's checkpoint finds no question there. The thread runs again
// from there, on checkpoints of its own, and asks.
func TestAnswerBeforeThePassedQuestion(t *testing.T) {
	runOnEngines(t, func(t *testing.T, e engine) {
		got := played(t, e, asksAfterP, `[{"invoke": {}}, {"resume": "old"}, {"resume": "early", "from_checkpoint": 3},
			{"history": true}, {"resume": "late"}]`)
		holds(t, "what is asked", part(got[2], "interrupts"), `["q"]`)
		holds(t, "the thread waits for", part(got[2], "state", "next"), `["x"]`)
		for i, step := range []string{"1", "0", "2", "1", "0", "-1"} {
			holds(t, fmt.Sprintf("the step of checkpoint %d", i), part(got[3], "history", i, "step"), step)
		}
		holds(t, "the newest", part(got[3], "history", 0, "parent")+part(got[3], "history", 1, "parent"), `15`)
		holds(t, "the thread in the end", part(got[4], "state", "values", "log"), `["p","late"]`)
	})
}

// TestAnswerAtTheNamedHead is as without naming it, also where the subgraph that asks remembers.
func TestAnswerAtTheNamedHead(t *testing.T) {
	graph := `"graph": {"channels": {"log": {"kind": "append"}}, "nodes": [{"name": "s", "subgraph": "sub"}], "edges": [["__start__", "s"]]},
		"graphs": {"sub": {"compile": {"checkpointer": true}, ` + asksAfterP[len(`"graph": {`):] + `}`
	runOnEngines(t, func(t *testing.T, e engine) {
		got := played(t, e, graph, `[{"invoke": {}}, {"resume": "yes", "from_checkpoint": 0}]`)
		holds(t, "what ran", part(got[1], "runs"), `{"sub.x":1}`)
		holds(t, "the thread", part(got[1], "state", "values", "log")+part(got[1], "state", "next"), `["p","yes"][]`)
	})
}

// TestCommandAtAnEarlierCheckpoint leaves that checkpoint as it is: the next command there finds nothing of it.
func TestCommandAtAnEarlierCheckpoint(t *testing.T) {
	graph := `"graph": {"channels": {"log": {"kind": "append"}}, "nodes": [
		{"name": "a", "script": [{"op": "write", "channel": "log", "value": ["a"]}]},
		{"name": "b", "script": [{"op": "write", "channel": "log", "value": ["b"]}]}],
		"edges": [["__start__", "a"], ["a", "b"]]}`
	runOnEngines(t, func(t *testing.T, e engine) {
		got := played(t, e, graph, `[{"invoke": {}}, {"command": {"update": {"log": ["f"]}}, "from_checkpoint": 1},
			{"get_state": true, "from_checkpoint": 3}, {"command": {"update": {"log": ["f"]}}, "from_checkpoint": 3}]`)
		holds(t, "the first fork", part(got[1], "state", "values", "log"), `["a","f","b"]`)
		holds(t, "the checkpoint", part(got[2], "state", "values", "log"), `["a"]`)
		holds(t, "the second fork", part(got[3], "state", "values", "log"), `["a","f","b"]`)
	})
}

// TestStateOfATaskWithOneAnswer: it is still to do, while it asks and after it has failed, and nothing of it shows; once
// it has finished it asks nothing.
func TestStateOfATaskWithOneAnswer(t *testing.T) {
	graph := `"graph": {"channels": {"log": {"kind": "append"}, "once": {"kind": "ephemeral"}}, "nodes": [
		{"name": "x", "script": [{"op": "interrupt", "value": "q1"}, {"op": "interrupt", "value": "q2"},
			{"op": "fail", "message": "boom", "times": 1}, {"op": "write", "channel": "log", "value": ["x"]}]},
		{"name": "y", "script": [{"op": "interrupt", "value": "q3"}]}],
		"edges": [["__start__", "x"], ["__start__", "y"]]}`
	runOnEngines(t, func(t *testing.T, e engine) {
		got := played(t, e, graph, `[{"invoke": {"once": 1}}, {"resume_map": {"q1": 1}}, {"resume_map": {"q2": 2}}, {"invoke": null}]`)
		for i := 1; i <= 2; i++ {
			holds(t, fmt.Sprintf("what is to do after action %d", i), part(got[i], "state", "next"), `["x","y"]`)
			holds(t, fmt.Sprintf("what shows after action %d", i), part(got[i], "state", "values"), `{"log":[],"once":1}`)
		}
		holds(t, "what is to do once x has finished", part(got[3], "state", "next"), `["y"]`)
		holds(t, "what x asks then", part(got[3], "state", "tasks", 0, "interrupts"), `[]`)
	})
}

// TestAnswerAfterAnUpdate: a question that an update of the state dropped takes its answer when it is asked again, in the
// graph and in a subgraph, bare and by its id. Another question is asked.
func TestAnswerAfterAnUpdate(t *testing.T) {
	nested := `"graph": {"channels": {"log": {"kind": "append"}}, "nodes": [{"name": "s", "subgraph": "sub"}], "edges": [["__start__", "s"]]},
		"graphs": {"sub": {` + asksAfterP[len(`"graph": {`):] + `}`
	runOnEngines(t, func(t *testing.T, e engine) {
		for _, c := range []struct{ graph, actions, want string }{
			{asksAfterP, `[{"invoke": {}}, {"update_state": {"values": {"log": ["u"]}}}, {"resume": "yes"}]`, `["p","u","yes"]`},
			{nested, `[{"invoke": {}}, {"update_state": {"values": {"log": ["u"]}}, "subgraph": ["s"]}, {"resume": "yes"}]`, `["p","u","yes"]`},
			{nested, `[{"invoke": {}}, {"update_state": {"values": {"log": ["u"]}}, "subgraph": ["s"]}, {"resume_map": {"q": "yes"}}]`, `["p","u","yes"]`},
			{asksAfterP, `[{"invoke": {}}, {"resume": "yes"}, {"update_state": {"values": {"log": ["u"]}, "as_node": "p"}}, {"resume": "late"}]`, `["p","yes","u"]`},
		} {
			got := played(t, e, c.graph, c.actions)
			holds(t, "after "+c.actions, part(got[len(got)-1], "state", "values", "log"), c.want)
		}
	})
}
