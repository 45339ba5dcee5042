package main

import (
	"errors"
	"fmt"
	"testing"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/conformance/trace"
)

func TestErrorTypes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("wrapped: %w", &pregel.InvalidUpdateError{}), `{"type":"InvalidUpdateError"}`},
		{&pregel.InvalidUpdateError{Cause: errors.New("the reducer's")}, `{"type":"Error"}`},
		{&pregel.RecursionError{}, `{"type":"GraphRecursionError"}`},
		{&pregel.EmptyInputError{}, `{"type":"EmptyInputError"}`},
		{&pregel.MultipleInterruptsError{}, `{"type":"MultipleInterruptsError"}`},
		{&pregel.ParentCommandError{}, `{"type":"ParentCommand"}`},
		{errors.Join(&pregel.CompileError{}, &pregel.CompileError{}), `{"type":"CompileError"}`},
		{&pregel.NodeError{Type: "NodeFailure", Message: "boom"}, `{"message":"boom","type":"NodeFailure"}`},
		{fmt.Errorf("run: %w", &pregel.NodeError{Type: "InvalidUpdateError", Message: "m"}), `{"type":"InvalidUpdateError"}`},
		{&pregel.NodeError{Type: "Panic", Message: "m"}, `{"type":"Error"}`},
		{errors.New("anything"), `{"type":"Error"}`},
	} {
		if got := trace.Canonical(errorOf(c.err)); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

func TestStateOf(t *testing.T) {
	inner := &pregel.Snapshot{Checkpoint: "c2", Source: pregel.SourceLoop, Step: 1, Next: []string{"x"}}
	s := &pregel.Snapshot{
		Checkpoint: "c1", Source: pregel.SourceInput, Step: -1,
		Values: map[string]pregel.Value{"k": pregel.Null}, Next: []string{"a", "b"},
		Tasks: []pregel.TaskSnapshot{
			{Name: "a", Questions: []pregel.Question{{Value: pregel.Value(`2`)}, {Value: pregel.Value(`1`)}}, State: inner},
			{Name: "b", Error: &pregel.NodeError{Type: "NodeFailure", Message: "boom"}},
			{Name: "c", Error: &pregel.NodeError{Type: "RouteError", Message: "boom"}},
		},
	}
	flat := `{"metadata":{"source":"input","step":-1},"next":["a","b"],"tasks":[{"interrupts":[1,2],"name":"a"},` +
		`{"error":"boom","interrupts":[],"name":"b"},{"error":"Error","interrupts":[],"name":"c"}],"values":{"k":null}}`
	if got := trace.Canonical(stateOf(s, false)); got != flat {
		t.Errorf("got  %s\nwant %s", got, flat)
	}
	nested := stateOf(s, true)["tasks"].([]any)[0].(map[string]any)["state"]
	if want := `{"metadata":{"source":"loop","step":1},"next":["x"],"tasks":[],"values":{}}`; trace.Canonical(nested) != want {
		t.Errorf("nested: got %s, want %s", trace.Canonical(nested), want)
	}
	empty := `{"metadata":null,"next":[],"tasks":[],"values":{}}`
	if got := trace.Canonical(stateOf(&pregel.Snapshot{Step: -2}, false)); got != empty {
		t.Errorf("a thread without checkpoints: got %s, want %s", got, empty)
	}
}

func TestHistoryOf(t *testing.T) {
	got := historyOf([]*pregel.Snapshot{
		{Checkpoint: "c", Parent: "a", Source: pregel.SourceFork, Step: 1}, {Checkpoint: "b", Parent: "a", Source: pregel.SourceLoop},
		{Checkpoint: "a", Parent: "gone", Source: pregel.SourceInput, Step: -1},
	})
	for i, want := range []any{int64(2), int64(2), nil} {
		if parent := got[i].(map[string]any)["parent"]; parent != want {
			t.Errorf("parent of %d: %v, want %v", i, parent, want)
		}
	}
}
