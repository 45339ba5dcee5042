package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"superstep.dev/test/conformance/cmdline"
)

// script writes a program to a folder and returns its path.
func script(t *testing.T, folder, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return path
}

// environmentOf is a cache folder whose environment of release 9.9.9 has that program as its Python.
func environmentOf(t *testing.T, program string) string {
	t.Helper()
	cache := t.TempDir()
	folder := filepath.Join(cache, "langgraph-9.9.9")
	script(t, filepath.Join(folder, "bin"), "python", program)
	if err := os.WriteFile(filepath.Join(folder, readyFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return cache
}

// record runs the command and returns what it printed.
func record(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = start(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// caseFile writes cases, one a line, and returns the file.
func caseFile(t *testing.T, cases ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cases.jsonl")
	if err := os.WriteFile(file, []byte(strings.Join(cases, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const hello = `echo '{"packages": {"langgraph": "9.9.9", "langchain-core": "1.0"}}'` + "\n"

// TestWhatMovedIsSaidAndWritten runs the command against a release that answers the same to every case.
func TestWhatMovedIsSaidAndWritten(t *testing.T) {
	cache := environmentOf(t, hello+`while read line; do echo '{"expect": [{"output": 2}, {}], "actions": []}'; done`)
	file := caseFile(t, caseText("same", `{"output": 2}`, `{}`), caseText("moved", `{"output": 1}`, `{}`))
	flags := []string{"-version", "9.9.9", "-cache", cache}
	status, out, errs := record(t, append(flags, file)...)
	if status != exitMoved || !strings.Contains(out, "1 moved in output\n  moved\n    action 0, invoke: output: expect[0].output: want 1, got 2\n1 of 2 cases moved in LangGraph 9.9.9") {
		t.Errorf("status %d, printed\n%s%s", status, out, errs)
	}
	status, out, errs = record(t, append(flags, "-o", "json", "-write", file)...)
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != exitMoved || r.Moved != 1 || r.Groups[0].Cases[0] != "moved" {
		t.Errorf("status %d, %v, printed\n%s%s", status, err, out, errs)
	}
	if status, out, _ = record(t, append(flags, file)...); status != 0 || !strings.Contains(out, "0 of 2 cases moved") {
		t.Errorf("what was written moved again: status %d\n%s", status, out)
	}
}

// TestUnstableAnswersAreTold: a release that answers the stored answer now and then has not moved.
func TestUnstableAnswersAreTold(t *testing.T) {
	cache := environmentOf(t, hello+`n=0; while read line; do n=$((n+1)); echo '{"expect": [{"output": '$((n%2))'}, {}], "actions": []}'; done`)
	file := caseFile(t, caseText("shaky", `{"output": 0}`, `{}`), caseText("both", `{"output": 7}`, `{}`))
	status, out, errs := record(t, "-version", "9.9.9", "-cache", cache, "-parallel", "1", file)
	if status != exitMoved || !strings.Contains(out, "still answers what is stored: shaky") || !strings.Contains(out, "both (not stable)") {
		t.Errorf("status %d, printed\n%s%s", status, out, errs)
	}
}

// TestALostProcessCostsOneCase: a case that kills LangGraph's process or takes too long fails, and the next one is recorded.
func TestALostProcessCostsOneCase(t *testing.T) {
	cache := environmentOf(t, hello+`while read line; do case "$line" in
		*deadly*) echo "no memory left" >&2; exit 3;;
		*endless*) exec sleep 60;;
		*) echo '{"expect": [{}, {}], "actions": []}';; esac; done`)
	file := caseFile(t, caseText("deadly", `{}`, `{}`), caseText("fine", `{}`, `{}`), caseText("endless", `{}`, `{}`), caseText("finer", `{}`, `{}`))
	status, out, errs := record(t, "-version", "9.9.9", "-cache", cache, "-parallel", "1", "-timeout", "10s", file)
	if status != exitMoved || !strings.Contains(out, "FAIL deadly") || !strings.Contains(out, "no memory left") ||
		!strings.Contains(out, "FAIL endless") || !strings.Contains(out, "longer than 10s") || !strings.Contains(out, "0 of 4 cases moved") ||
		!strings.Contains(out, "2 could not be recorded") {
		t.Errorf("status %d, printed\n%s%s", status, out, errs)
	}
}

// TestAnEnvironmentOfAnotherReleaseIsRefused: a report must not name a release that did not answer.
func TestAnEnvironmentOfAnotherReleaseIsRefused(t *testing.T) {
	cache := environmentOf(t, `echo '{"packages": {"langgraph": "9.9.8"}}'; read line`)
	status, _, errs := record(t, "-version", "9.9.9", "-cache", cache, caseFile(t, caseText("x", `{}`, `{}`)))
	if status != cmdline.ExitUsage || !strings.Contains(errs, "holds langgraph 9.9.8, not 9.9.9: delete it") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// TestWithoutPython: what is missing is named, and what to do about it.
func TestWithoutPython(t *testing.T) {
	file := caseFile(t, caseText("x", `{}`, `{}`))
	status, _, errs := record(t, "-python", "no-such-python", "-cache", t.TempDir(), file)
	if status != cmdline.ExitUsage || !strings.Contains(errs, "no-such-python") || !strings.Contains(errs, "install Python 3.10 or newer") {
		t.Errorf("status %d: %s", status, errs)
	}
	python := script(t, t.TempDir(), "python3", `echo "No module named venv"; exit 1`)
	status, _, errs = record(t, "-python", python, "-cache", t.TempDir(), file)
	if status != cmdline.ExitUsage || !strings.Contains(errs, "No module named venv") || !strings.Contains(errs, "python3-venv") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// venvWithPip is a Python whose environments have that program in place of theirs.
func venvWithPip(t *testing.T, pip string) string {
	t.Helper()
	inner := script(t, t.TempDir(), "inner", pip)
	return script(t, t.TempDir(), "python3", `mkdir -p "$3/bin" && cp `+inner+` "$3/bin/python"`)
}

// TestWhenPipFails: the installer's words are passed on, and the next attempt begins anew.
func TestWhenPipFails(t *testing.T) {
	file, cache := caseFile(t, caseText("x", `{}`, `{}`)), t.TempDir()
	python := venvWithPip(t, `echo "No matching distribution found for langgraph==9.9.9" >&2; exit 1`)
	for range 2 {
		status, _, errs := record(t, "-version", "9.9.9", "-python", python, "-cache", cache, file)
		if status != cmdline.ExitUsage || !strings.Contains(errs, "No matching distribution found") || !strings.Contains(errs, "PIP_INDEX_URL") {
			t.Errorf("status %d: %s", status, errs)
		}
	}
	python = venvWithPip(t, `[ "$2" = pip ] && exit 0; `+hello+`while read line; do echo '{"expect": [{}, {}], "actions": []}'; done`)
	if status, out, errs := record(t, "-version", "9.9.9", "-python", python, "-cache", cache, file); status != 0 {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
}

// TestWrongUsage: nothing is started for a command line that makes no sense.
func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "name the cases"},
		{"-o xml x.json", "-o: there are text and json"},
		{"-generate 3 x.json", "one .jsonl file"},
		{"-generate -3 x.jsonl", "-generate: at least 1"},
		{"-kind deep x.jsonl", "-kind: there are wide and random"},
		{"-parallel 0 x.jsonl", "-parallel: at least 1"},
		{"-timeout 0s x.jsonl", "-timeout: more than"},
		{"-verison 1 x.jsonl", "-help shows the flags"},
		{"no-such-file.json", "finding cases"},
		{"-version ../x ../testdata/cases/chain.json", "names no release"},
	} {
		status, _, errs := record(t, strings.Fields(c.args)...)
		if status != cmdline.ExitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: status %d, printed %q, want %q", c.args, status, errs, c.want)
		}
	}
}

// TestStoppedInTheMiddle: an interrupt ends the recording with an error, and nothing is written.
func TestStoppedInTheMiddle(t *testing.T) {
	cache := environmentOf(t, hello+`exec sleep 60`)
	file := caseFile(t, caseText("x", `{}`, `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{})
	go func() { <-ready; cancel() }()
	c, err := parse([]string{"-version", "9.9.9", "-cache", cache, "-write", file})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.stdout, c.stderr = &out, &out
	close(ready)
	if _, err := c.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; printed %s", err, &out)
	}
}

// TestRecordingFromTheRelease asks the real release, if it can be installed: cases that no release changed have not
// moved, and drawn cases can be recorded, and recorded again without a difference.
func TestRecordingFromTheRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("asks LangGraph")
	}
	drawn := filepath.Join(t.TempDir(), "drawn.jsonl")
	c, err := parse([]string{drawn})
	if err != nil {
		t.Fatal(err)
	}
	c.stdout, c.stderr = t.Output(), t.Output()
	p, err := c.start(t.Context())
	var noPython *PythonError
	var noPackage *InstallError
	if errors.As(err, &noPython) || errors.As(err, &noPackage) {
		t.Skipf("LangGraph cannot be asked on this machine: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.close()
	if status, out, errs := record(t, "../testdata/cases/chain.json", "../testdata/cases/send-map-reduce.json", "../testdata/cases/subgraph-in-loop.json"); status != 0 {
		t.Errorf("status %d:\n%s%s", status, out, errs)
	}
	if status, out, errs := record(t, "-generate", "4", "-seed", "3", drawn); status != 0 {
		t.Fatalf("status %d:\n%s%s", status, out, errs)
	}
	if status, out, errs := record(t, "-generate", "4", "-seed", "3", drawn); status == 0 || !strings.Contains(errs, "is there already") {
		t.Errorf("the file was written over: status %d:\n%s%s", status, out, errs)
	}
	status, out, errs := record(t, drawn)
	if status != 0 || !strings.Contains(out, "0 of 4 cases moved") {
		t.Errorf("status %d:\n%s%s", status, out, errs)
	}
}
