package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"superstep.dev/test/conformance/trace"
)

// caseText is a case of two actions.
func caseText(name, first, second string) string {
	return `{"name":"` + name + `","about":"a  b","graph":{},"actions":[{"invoke":{}},{"resume":1}],"expect":[` + first + `, ` + second + `]}`
}

func storedCase(t *testing.T, text string) *stored {
	t.Helper()
	c, err := decodeStored(trace.Text{File: "cases.jsonl", Line: 1, Bytes: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func values(t *testing.T, text string) []any {
	t.Helper()
	v, err := trace.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v.([]any)
}

// TestMoves: each action that moved is named with its parts and its first difference.
func TestMoves(t *testing.T) {
	c := storedCase(t, caseText("x", `{"stream":[["values",1]],"state":{"next":["a"],"tasks":[{"name":"a"}]}}`,
		`{"history":[{"step":1}],"state":{"next":[]}}`))
	for _, m := range []struct {
		now   string
		parts [][]string
		first string
	}{
		{`[{"stream":[["values",1]],"state":{"next":["a"],"tasks":[{"name":"a"}]}},{"history":[{"step":1}],"state":{"next":[]}}]`, nil, ""},
		{
			`[{"stream":[["values",2]],"state":{"next":[],"tasks":[{"name":"b"}]}},{"history":[{"step":1}],"state":{"next":["b"]}}]`,
			[][]string{{"state.next", "state.tasks", "stream"}, {"state.next"}},
			`expect[0].state.next[0]: want "a", got nothing`,
		},
		{
			`[{"stream":[["values",1]],"error":{"type":"Error"},"state":{"next":["a"],"tasks":[{"name":"a"}]}},{"history":[{"step":2}]}]`,
			[][]string{{"error"}, {"history.step", "state"}},
			`expect[0].error: want nothing, got {"type":"Error"}`,
		},
		{`[{"error":{"type":"CompileError"}}]`, [][]string{{"error", "state", "stream"}, {"result"}}, `expect[0].error: want nothing, got {"type":"CompileError"}`},
	} {
		var parts [][]string
		got := c.moves(values(t, m.now))
		for i := range got {
			parts = append(parts, got[i].Parts)
			if want := []string{"invoke", "resume"}[got[i].Index]; got[i].Action != want {
				t.Errorf("action %d is called %s, want %s", got[i].Index, got[i].Action, want)
			}
		}
		if !reflect.DeepEqual(parts, m.parts) {
			t.Errorf("%s: moved in %v, want %v", m.now, parts, m.parts)
		}
		if len(got) > 0 && got[0].first != m.first {
			t.Errorf("%s: first %q, want %q", m.now, got[0].first, m.first)
		}
	}
}

// TestReportGroupsByWhatMoved: the largest group comes first, and each case stands in one group.
func TestReportGroupsByWhatMoved(t *testing.T) {
	in := func(name string, parts ...string) *outcome {
		return &outcome{Case: name, Moved: []moved{{Action: "invoke", Parts: parts, first: "expect[0]"}}}
	}
	r := newReport("9.9.9", map[string]string{"langchain-core": "1.0"}, []*outcome{
		in("a", "stream"), {Case: "same"}, in("b", "state.next", "state.tasks"), in("c", "state.next", "state.tasks"),
		{Case: "lost", Failure: "it took too long"}, {Case: "shaky", Unstable: true},
	})
	var groups []string
	for _, g := range r.Groups {
		groups = append(groups, strings.Join(g.Parts, "+")+":"+strings.Join(g.Cases, "+"))
	}
	if want := []string{"state.next+state.tasks:b+c", "stream:a"}; !slices.Equal(groups, want) {
		t.Errorf("groups %q, want %q", groups, want)
	}
	if r.Cases != 6 || r.Moved != 3 || r.Failed != 1 || r.Unstable != 1 || len(r.Outcomes) != 5 {
		t.Errorf("counts are off: %+v", r)
	}
	for _, line := range []string{
		"2 moved in state.next, state.tasks\n", "    action 0, invoke: stream: expect[0]\n", "FAIL lost", "still answers what is stored: shaky",
		"3 of 6 cases moved in LangGraph 9.9.9 (langchain-core 1.0), 1 are not stable, 1 could not be recorded\n",
	} {
		if !strings.Contains(r.text(), line) {
			t.Errorf("the report lacks %q:\n%s", line, r.text())
		}
	}
}

// TestRewriteLeavesTheRest: only results that moved are written anew; other cases, other results and white space stay.
func TestRewriteLeavesTheRest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cases.jsonl")
	before := caseText("x", `{"b":1, "a":[ ]}`, `{"state":{}}`) + "\n\n" + caseText("y", `{"b" : 1}`, `{"c":1}`) + "\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	cases, err := readStored([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []*outcome{{}, {expect: values(t, `[{"b":1},{"z":2,"c":{"d":[1, 2]}}]`)}}
	outcomes[1].Moved = cases[1].moves(outcomes[1].expect)
	if files, err := rewrite(cases, outcomes); err != nil || files != 1 {
		t.Fatal(files, err)
	}
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := caseText("x", `{"b":1, "a":[ ]}`, `{"state":{}}`) + "\n\n" + caseText("y", `{"b" : 1}`, `{"c":{"d":[1,2]},"z":2}`) + "\n"
	if string(after) != want {
		t.Errorf("the file is now\n%s\nwant\n%s", after, want)
	}
}

// TestResultsAreWrittenAsCasesAre: every result of every curated case has the text that the recorder would give it, so
// writing a result anew changes what moved and nothing else.
func TestResultsAreWrittenAsCasesAre(t *testing.T) {
	cases, err := readStored([]string{"../testdata/cases"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		list, results, err := expectIn(c.Bytes)
		if err != nil {
			t.Fatalf("%s: %v", c.File, err)
		}
		if got := spreadAfter(c.expect, 1, expectAt); !strings.HasSuffix(string(c.Bytes[:list.to]), got) {
			t.Errorf("%s: the results would be written as\n%s", c.File, got)
		}
		for i, at := range results {
			if got := spread(c.expect[i], 2); got != string(c.Bytes[at.from:at.to]) {
				t.Errorf("%s: result %d would be written as\n%s", c.File, i, got)
			}
		}
	}
}
