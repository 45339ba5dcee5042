package main

import (
	"encoding/json"

	"pgregory.net/rapid"

	"superstep.dev/test/conformance/casegen"
)

// doc is a JSON object of a case.
type doc = casegen.Doc

// caseOf draws a case without expected results: engines are held to each other. Its name is the same for all: engines
// get a name of their own for the graph. It shrinks as rapid's numbers do, and what a failing test prints can be run by
// the command.
func caseOf(pure bool) *rapid.Generator[*source] {
	return rapid.Custom(func(t *rapid.T) *source {
		draw := func(least, most int, label string) int { return rapid.IntRange(least, most).Draw(t, label) }
		text, err := json.Marshal(casegen.Case(draw, "generated", casegen.Options{Pure: pure}))
		if err != nil {
			t.Fatal(err)
		}
		s := newSource("generated", text)
		if s.err != nil {
			t.Fatalf("the generator made no case: %v\n%s", s.err, text)
		}
		return &s
	})
}
