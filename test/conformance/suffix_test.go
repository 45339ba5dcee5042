package main

import (
	"context"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/test/conformance/casegen"
)

// TestEveryCheckpointGivesTheSameSuffix: a run from any earlier checkpoint makes again what came after it. The graphs are
// pure: nothing in them asks, fails or depends on what is never stored.
func TestEveryCheckpointGivesTheSameSuffix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := caseOf(true).Draw(t, "case")
		sameSuffixes(t, memoryEngine{}, c, rootName)
	})
}

// TestEveryCheckpointGivesTheSameSuffixRegressions runs what once failed.
func TestEveryCheckpointGivesTheSameSuffixRegressions(t *testing.T) {
	cases, err := loadCases([]string{"regressions"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		t.Run(cases[i].name(), func(t *testing.T) { sameSuffixes(t, memoryEngine{}, &cases[i], rootName) })
	}
}

// sameSuffixes runs a case of one run, and then the graph from each checkpoint of that run, on a thread of its own.
func sameSuffixes(t rapid.TB, e engine, c *source, name string) {
	recorded := withActions(t, c, doc{"history": true})
	first := historyIn(t, recorded, answersOf(t, context.Background(), e, recorded, name), 1)
	for k := 1; k < len(first); k++ {
		again := withActions(t, c, doc{"invoke": nil, "from_checkpoint": k, "recursion_limit": casegen.Limit}, doc{"history": true})
		history := historyIn(t, again, answersOf(t, context.Background(), e, again, name), 2)
		// Above the first run's checkpoints lie the fork and what the second run made. It may go further than the first
		// one did, which its recursion limit ended.
		fork := len(history) - len(first) - 1
		if fork < k {
			t.Fatalf("from checkpoint %d: %d new checkpoints after the fork\nin the case\n%s", k, fork, again.text)
		}
		if source := history[fork].(map[string]any)["source"]; source != "fork" {
			t.Fatalf("from checkpoint %d: a %v checkpoint where the fork should be\nin the case\n%s", k, source, again.text)
		}
		for i := 1; i <= k; i++ {
			agree(t, again, atStep(first[k-i], 1), atStep(history[fork-i], 0))
		}
	}
}

// atStep is a line of a history without its parent, and some steps later: a fork takes one.
func atStep(line any, later int64) map[string]any {
	out := without(line.(map[string]any), "parent")
	out["step"] = out["step"].(int64) + later
	return out
}

// GoString makes rapid print a drawn case as the document that it is.
func (s *source) GoString() string { return string(s.text) }

// withActions is a case with more actions.
func withActions(t rapid.TB, c *source, more ...doc) *source {
	var text map[string]any
	if err := json.Unmarshal(c.text, &text); err != nil {
		t.Fatal(err)
	}
	actions, expect := text["actions"].([]any), text["expect"].([]any)
	for _, a := range more {
		actions, expect = append(actions, a), append(expect, doc{})
	}
	text["actions"], text["expect"] = actions, expect
	changed, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	s := newSource("generated", changed)
	if s.err != nil {
		t.Fatal(s.err)
	}
	return &s
}

// historyIn is the history that an action of the case showed.
func historyIn(t rapid.TB, c *source, answers any, action int) []any {
	list := answers.(map[string]any)["answers"].([]any)
	if len(list) <= action {
		t.Fatalf("the case ended early: %v\n%s", answers.(map[string]any)["ended"], c.text)
	}
	return list[action].(map[string]any)["history"].([]any)
}
