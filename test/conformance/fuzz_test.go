package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"superstep.dev/test/conformance/trace"
)

// FuzzCase: a case file is refused or its graph is built; nothing in it makes the runner panic.
func FuzzCase(f *testing.F) {
	files, err := filepath.Glob("testdata/cases/s*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := decodeCase(text)
		if err != nil {
			return
		}
		if r, err := newRun(doc, text, rootName); err == nil && r.root == nil {
			t.Error("neither a graph nor an error")
		}
	})
}

// FuzzInput: whatever JSON a graph is given, the engine answers, and can be run again.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{`{}`, `null`, `{"log": ["x"], "n": 3}`, `{"log": 1}`, `{"n": "x"}`, `[]`, `{"log": {"__overwrite__": []}}`, `{"m": {"a": null}}`} {
		f.Add([]byte(seed))
	}
	const shape = `{"name": "n", "graph": {"channels": {"log": {"kind": "append"}, "n": {"kind": "sum"}, "m": {"kind": "merge"}, "l": {"kind": "last"}},
		"nodes": [{"name": "a", "script": [{"op": "write", "channel": "log", "value": ["a"]}]}], "edges": [["__start__", "a"]]},
		"actions": [{"invoke": INPUT}, {"invoke": {}}], "expect": [{}, {}]}`
	f.Fuzz(func(t *testing.T, input []byte) {
		if !json.Valid(input) {
			return
		}
		c := newSource("n", []byte(strings.Replace(shape, "INPUT", string(input), 1)))
		if c.err != nil {
			return // what the format does not allow
		}
		r, err := newRun(c.doc, c.text, rootName)
		if err != nil {
			t.Fatal(err)
		}
		r.unreadable = unreadable
		if answers, err := r.on(t.Context(), memoryEngine{}); err != nil && strings.Contains(err.Error(), "panicked") {
			t.Errorf("%v after %s", err, trace.Canonical(answers))
		}
	})
}
