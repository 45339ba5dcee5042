package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"superstep.dev/test/conformance/cmdline"
)

// TestRecordedTraces runs every recorded case on the in-process engine: it does as LangGraph did, or as we want.
func TestRecordedTraces(t *testing.T) {
	seen := map[string]string{}
	for _, c := range recordedCases(t) {
		if other, twice := seen[c.name()]; twice {
			t.Errorf("%s and %s have the same name %s", other, c.place, c.name())
		}
		seen[c.name()] = c.place
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			if v := newTrial(c, graphName(t)).judge(t.Context(), memoryEngine{}); v.failure != "" {
				t.Error(v.failure)
			}
		})
	}
}

// TestRecordedTracesInEachMode runs every recorded case on the in-process engine in the modes that keep less; with -short a
// third of them in each.
func TestRecordedTracesInEachMode(t *testing.T) {
	t.Parallel()
	for k, mode := range []string{"async", modeExit} {
		t.Run(mode, func(t *testing.T) {
			all, err := loadCases([]string{"testdata"})
			if err != nil {
				t.Fatal(err)
			}
			var cases []source
			for i, c := range all {
				if !testing.Short() || i%3 == k {
					cases = append(cases, c)
				}
			}
			judgeCases(t, memoryEngine{}, cases, mode)
		})
	}
}

// TestAllCasesAreFound keeps the suite from shrinking unnoticed.
func TestAllCasesAreFound(t *testing.T) {
	for folder, want := range map[string]int{"testdata/cases": 241, "testdata/random": 349, "testdata/more.jsonl": 298} {
		cases, err := loadCases([]string{folder})
		if err != nil || len(cases) != want {
			t.Errorf("%s has %d cases, %v; want %d", folder, len(cases), err, want)
		}
	}
}

// runCommand runs the program and returns its status and outputs.
func runCommand(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = command(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestCommandUsage(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--help"}, 0, "Usage: go run ./test/conformance"},
		{nil, cmdline.ExitUsage, "name the cases"},
		{[]string{"-nope", "testdata"}, cmdline.ExitUsage, "-nope"},
		{[]string{"-address", "here:1", "testdata"}, cmdline.ExitUsage, "-address needs -engine temporal"},
		{[]string{"-durability", "fused", "testdata"}, cmdline.ExitUsage, "fused needs -engine temporal"},
		{[]string{"-durability", "later", "testdata"}, cmdline.ExitUsage, `there are sync, fused, async and exit, not "later"`},
		{[]string{"-parallel", "-1", "testdata"}, cmdline.ExitUsage, "-parallel: at least 1"},
		{[]string{"-engine", "quantum", "testdata"}, cmdline.ExitUsage, `no engine "quantum"`},
		{[]string{"-run", "(", "testdata"}, cmdline.ExitUsage, "-run"},
		{[]string{"-run", "no such case", "testdata"}, cmdline.ExitUsage, "none of the 888 cases"},
		{[]string{"testdata/none"}, cmdline.ExitUsage, "testdata/none"},
		{[]string{"testdata/FORMAT.md"}, cmdline.ExitUsage, "neither a .json nor a .jsonl"},
	} {
		status, stdout, stderr := runCommand(t, c.args...)
		if status != c.status || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%v: status %d, output %q; want status %d and %q", c.args, status, stdout+stderr, c.status, c.says)
		}
		if c.status == cmdline.ExitUsage && strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: want one line, got %q", c.args, stderr)
		}
	}
}

func TestCommandReports(t *testing.T) {
	folder := t.TempDir()
	chain, err := os.ReadFile("testdata/cases/chain.json")
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Replace(bytes.Replace(chain, []byte(`"chain"`), []byte(`"wrong"`), 1), []byte(`"step": `), []byte(`"step": 1`), 1)
	for name, text := range map[string][]byte{"chain.json": chain, "deep/wrong.json": wrong, "broken.jsonl": []byte("{}\n\n{\"name\": 1}\n")} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	status, stdout, _ := runCommand(t, "-v", folder)
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if status != exitFailed || len(lines) != 5 || lines[4] != "1 passed, 0 as we differ on purpose, 3 failed, none skipped" {
		t.Errorf("status %d, output %q", status, stdout)
	}
	for i, want := range []string{
		"broken.jsonl:1: ", "broken.jsonl:3: ", "ok   chain", "FAIL wrong: expect[0].state.metadata.step: want 1",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	if status, stdout, stderr := runCommand(t, "-run", "^chain$", folder); status != 0 || stdout != "1 passed, 0 as we differ on purpose, 0 failed, none skipped\n" ||
		!strings.Contains(stderr, "leaves out 3 of 4") {
		t.Errorf("status %d, output %q, %q", status, stdout, stderr)
	}
}
