package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"superstep.dev/test/conformance/trace"
)

// update writes what the in-process engine answers into the difference files. Reason and row are written by hand, and so
// is the decision that an answer is what we want: read the change before committing it.
var update = flag.Bool("update", false, "rewrite the expected results in differences/")

// TestUpdateDifferences does nothing without -update.
func TestUpdateDifferences(t *testing.T) {
	if !*update {
		t.Skip("rewrites files with -update only")
	}
	all, err := deviations()
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range all {
		c := recordedCase(t, name)
		tr := newTrial(c, rootName)
		answers, err := tr.run.on(t.Context(), memoryEngine{})
		if err != nil {
			t.Fatal(err)
		}
		var expect [][]byte
		for i := range answers {
			if !hasState(c.doc.Expect, i) && tr.isStateBeside(i) {
				answers[i] = without(answers[i].(map[string]any), "state")
			}
			expect = append(expect, []byte("  "+trace.Canonical(answers[i])))
		}
		file := filepath.Join("differences", name+".json")
		text := "{\n \"reason\": " + string(marshal(t, d.Reason)) + ",\n \"row\": " + string(marshal(t, d.Row)) +
			",\n \"expect\": [\n" + string(bytes.Join(expect, []byte(",\n"))) + "\n ]\n}\n"
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s would not be JSON:\n%s", file, text)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// recordedCases are all cases that were recorded from LangGraph.
func recordedCases(t *testing.T) []*source {
	t.Helper()
	cases, err := loadCases([]string{"testdata"})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]*source, len(cases))
	for i := range cases {
		out[i] = &cases[i]
	}
	return out
}

// recordedCase is the case of that name.
func recordedCase(t *testing.T, name string) *source {
	t.Helper()
	for _, c := range recordedCases(t) {
		if c.name() == name {
			return c
		}
	}
	t.Fatalf("differences/%s.json is for no recorded case", name)
	return nil
}
