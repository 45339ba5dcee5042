package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"

	"superstep.dev/test/conformance/trace"
)

// deviation is a case in which this project differs from LangGraph on purpose: the results that we want instead.
type deviation struct {
	// Reason says in a sentence why LangGraph's trace is not followed.
	Reason string `json:"reason"`
	// Row names the row of docs/differences.md that explains the rule.
	Row string `json:"row"`
	// Expect holds our results, one for each action, as FORMAT.md describes them.
	Expect []json.RawMessage `json:"expect"`
}

// deviationFiles are part of the program: what differs on purpose does not depend on which cases are run.
//
//go:embed differences/*.json
var deviationFiles embed.FS

// deviations are all of them by the name of their case. They are read once; a file that cannot be read is a mistake of
// this program and stops it.
var deviations = sync.OnceValues(func() (map[string]*deviation, error) {
	files, err := deviationFiles.ReadDir("differences")
	if err != nil {
		return nil, fmt.Errorf("reading the differences: %w", err)
	}
	out := make(map[string]*deviation, len(files))
	for _, f := range files {
		text, err := deviationFiles.ReadFile(path.Join("differences", f.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the differences: %w", err)
		}
		var d deviation
		if err := trace.DecodeStrict(text, &d); err != nil {
			return nil, fmt.Errorf("differences/%s: %w", f.Name(), err)
		}
		if d.Reason == "" || d.Row == "" || len(d.Expect) == 0 {
			return nil, fmt.Errorf("differences/%s: it needs a reason, a row and expected results", f.Name())
		}
		out[strings.TrimSuffix(f.Name(), ".json")] = &d
	}
	return out, nil
})
