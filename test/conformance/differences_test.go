package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"superstep.dev/test/conformance/trace"
)

// row is a row of the table in docs/differences.md.
type row struct{ name, cases string }

// noCase stands in the table where no recorded case can show the difference.
const noCase = "("

// differenceRows reads the table. Rows about what is not in recorded traces stand in tables of their own.
func differenceRows(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []row
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|.*\\| ([^|]*) \\|$").FindAllStringSubmatch(string(text), -1) {
		out = append(out, row{m[1], m[2]})
	}
	return out
}

// TestDifference has one test for each row of docs/differences.md, named after it.
func TestDifference(t *testing.T) {
	all, err := deviations()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range differenceRows(t) {
		t.Run(r.name, func(t *testing.T) {
			if strings.HasPrefix(r.cases, noCase) {
				runOnEngines(t, rowTests[r.name])
				return
			}
			for _, name := range strings.Split(r.cases, ", ") {
				if d := all[name]; d == nil || d.Row != r.name {
					t.Errorf("the row names the case %s, which has no file in differences/ that names this row", name)
					continue
				}
				runOnEngines(t, func(t *testing.T, e engine) { checkDeviation(t, e, name) })
			}
		})
	}
}

// TestDifferencesAgree holds rows, files and tests together from the other side.
func TestDifferencesAgree(t *testing.T) {
	all, err := deviations()
	if err != nil {
		t.Fatal(err)
	}
	rows := differenceRows(t)
	for name, d := range all {
		recordedCase(t, name)
		if !slices.ContainsFunc(rows, func(r row) bool {
			return r.name == d.Row && slices.Contains(strings.Split(r.cases, ", "), name)
		}) {
			t.Errorf("differences/%s.json: the row %q of docs/differences.md does not name it", name, d.Row)
		}
	}
	for name := range rowTests {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name && strings.HasPrefix(r.cases, noCase) }) {
			t.Errorf("there is a test for %q, which is no row without cases", name)
		}
	}
	for _, r := range rows {
		if strings.HasPrefix(r.cases, noCase) && rowTests[r.name] == nil {
			t.Errorf("the row %q has neither a case nor a test", r.name)
		}
	}
}

// checkDeviation runs a case that differs on purpose.
func checkDeviation(t *testing.T, e engine, name string) {
	t.Helper()
	tr := newTrial(recordedCase(t, name), graphName(t))
	serve(t, e, tr)
	if v := tr.judge(t.Context(), e); !v.deviates {
		t.Errorf("%s does not do as we want: %s", name, v.failure)
	}
}

// rowTests show the differences that are in no trace.
var rowTests = map[string]func(*testing.T, engine){
	"exit-conflict": testExitConflict,
}

// TestQuestionIDs: no two questions share an id.
func TestQuestionIDs(t *testing.T) { runOnEngines(t, testQuestionIDs) }

// testQuestionIDs asks from parallel tasks of one node, and asks twice in one task: no two questions share an id.
func testQuestionIDs(t *testing.T, e engine) {
	c := newSource("ids.json", []byte(`{"name": "ids", "graph": {"channels": {"log": {"kind": "append"}},
		"nodes": [{"name": "a", "script": [
			{"op": "interrupt", "value": {"$cat": ["first ", {"$arg": true}]}, "into": "v"},
			{"op": "interrupt", "value": {"$cat": ["second ", {"$arg": true}]}, "into": "w"},
			{"op": "write", "channel": "log", "value": {"$list": [{"$cat": [{"$arg": true}, {"$var": "v"}, {"$var": "w"}]}]}}]}],
		"edges": [], "branches": [{"from": "__start__", "script": [
			{"op": "route", "to": [{"send": "a", "each": [1, 2], "arg": {"$item": true}}]}], "paths": ["a"]}]},
		"actions": [{"invoke": {}}, {"resume_map": {"first 1": "x", "first 2": "y"}}, {"resume_map": {"second 1": "z", "second 2": "w"}}],
		"expect": [{}, {}, {}]}`))
	tr := newTrial(&c, graphName(t))
	if tr.broken != nil {
		t.Fatal(tr.broken)
	}
	tr.run.states = func(int) bool { return true }
	serve(t, e, tr)
	seen := map[string]any{}
	watched := &idWatcher{engine: e, seen: seen}
	answers, err := tr.run.on(t.Context(), watched)
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 4 {
		t.Errorf("4 questions have %d ids: %v", len(seen), seen)
	}
	values := answers[2].(map[string]any)["state"].(map[string]any)["values"]
	if got := trace.Canonical(values); got != `{"log":["1xz","2yw"]}` {
		t.Errorf("the answers reached %s", got)
	}
}

// testExitConflict: a superstep whose writes conflict is still to do afterwards, also where only ends are kept.
func testExitConflict(t *testing.T, e engine) {
	c := newSource("exit.json", []byte(`{"name": "exit", "graph": {"channels": {"x": {"kind": "last"}},
		"nodes": [{"name": "a", "script": [{"op": "write", "channel": "x", "value": 1}]},
			{"name": "b", "script": [{"op": "write", "channel": "x", "value": 2}]}],
		"edges": [["__start__", "a"], ["__start__", "b"]]},
		"actions": [{"invoke": {}, "durability": "exit"}, {"invoke": null, "durability": "exit"}], "expect": [{}, {}]}`))
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
	for i, a := range answers {
		state := a.(map[string]any)["state"].(map[string]any)
		if got := trace.Canonical(state["next"]); got != `["a","b"]` {
			t.Errorf("after run %d the tasks still to do are %s", i, got)
		}
		if got := trace.Canonical(a.(map[string]any)["error"]); got != `{"type":"InvalidUpdateError"}` {
			t.Errorf("run %d ended with %s", i, got)
		}
	}
}

// idWatcher notes the ids of all questions in the states that are read.
type idWatcher struct {
	engine
	seen map[string]any
}

func (w *idWatcher) open(ctx context.Context, g *graph) (threads, error) {
	opened, err := w.engine.open(ctx, g)
	return &idThreads{threads: opened, seen: w.seen}, err
}

type idThreads struct {
	threads
	seen map[string]any
}

func (w *idThreads) state(ctx context.Context, at place) (*snapshot, error) {
	s, err := w.threads.state(ctx, at)
	if err != nil {
		return nil, err
	}
	for _, task := range s.Tasks {
		for _, q := range task.Questions {
			value := trace.Canonical(shown(q.Value))
			if other, ok := w.seen[q.ID]; ok && other != value {
				return nil, fmt.Errorf("the questions %v and %s share the id %s", other, value, q.ID)
			}
			w.seen[q.ID] = value
		}
	}
	return s, nil
}
