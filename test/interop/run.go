package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"superstep.dev/test/processes"
)

// suite is a program that runs scenarios, a line each.
type suite struct {
	name, path string
	args       []string
	dir        string
	// single runs one scenario only, given its name.
	single func(name string) []string
	// least is how many scenarios it has to have.
	least int
}

// suites are the project's own, and the kit's.
func (b *bed) suites() []suite {
	only := func(name string) []string { return []string{"--only", name} }
	own := func(name, program string, least int) suite {
		return suite{name: name, path: program, args: []string{filepath.Join(b.clients.dir, name), b.front.url, b.asked}, dir: b.clients.dir, single: only, least: least}
	}
	all := []suite{own("scenarios.py", b.clients.python, 1), own("remote.py", b.clients.python, 1), own("scenarios.mjs", "node", 1)}
	if b.kit != "" {
		python, js := own("run.py", b.clients.python, 1), own("run.mjs", "node", 1)
		python.dir, python.args = b.clients.kit(), []string{"run.py", b.front.url, "--jobs", "4"}
		js.dir, js.args = b.clients.kit(), []string{"run.mjs", b.front.url}
		all = append(all, python, js)
	}
	return all
}

// result is what became of a scenario. Why is "" for one that passed.
type result struct{ name, why string }

// line is how a scenario's end is told: "ok", or "FAIL" and why, with its name and how long it took.
var line = regexp.MustCompile(`^(ok|FAIL) +(?:(?:shared|heldout) +)?(.+?) \([\d.]+ s\)(?:: (.*))?$`)

// results reads what a suite wrote.
func results(text io.Reader) (all []result, err error) {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := line.FindStringSubmatch(lines.Text()); m != nil {
			if m[1] == "FAIL" && m[3] == "" {
				m[3] = "no reason given"
			}
			all = append(all, result{m[2], m[3]})
		}
	}
	return all, lines.Err()
}

// cut is how clients tell of a connection that a killed server has left, where they do not resume by themselves what they had asked for.
var cut = regexp.MustCompile(`RemoteProtocolError|ConnectError|ReadError|Server disconnected|peer closed|fetch failed|terminated|ECONNRE|socket hang up|other side closed`)

// tries bounds how often a scenario that a kill has cut is tried again.
const tries = 4

// run runs all suites, and reports whether a scenario failed.
func (b *bed) run(ctx context.Context, stdout io.Writer) (broken bool, err error) {
	for round := range b.rounds {
		for _, s := range b.suites() {
			began := time.Now()
			t, err := b.round(ctx, s, stdout)
			if err != nil {
				return broken, err
			}
			fmt.Fprintf(stdout, "round %d  %-13s %3d of %d scenarios pass, %d excepted, %d tried again after a kill  (%.0f s)\n",
				round+1, s.name, t.all-t.failed-t.excepted, t.all, t.excepted, t.again, time.Since(began).Seconds())
			broken = broken || t.failed > 0
		}
	}
	if b.kill > 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		fmt.Fprintln(stdout, b.kills, "processes were killed")
	}
	return broken, nil
}

// tally counts scenarios.
type tally struct{ all, failed, excepted, again int }

// round runs a suite once.
func (b *bed) round(ctx context.Context, s suite, stdout io.Writer) (t tally, err error) {
	var more []string
	if b.only != "" {
		more = s.single(b.only)
	}
	all, err := b.suite(ctx, s, more)
	if err != nil {
		return t, err
	}
	if len(all) < s.least && b.only == "" {
		return t, fmt.Errorf("%s ran %d scenarios:\n%s", s.name, len(all), b.set.Tail(s.name, 20))
	}
	for _, r := range all {
		t.all++
		for n := 0; b.kill > 0 && n < tries && cut.MatchString(r.why); n++ {
			t.again++
			if r, err = b.once(ctx, s, r); err != nil {
				return t, err
			}
		}
		switch {
		case r.why == "":
		case b.kill > 0 && b.except != nil && b.except.MatchString(r.name):
			t.excepted++
			fmt.Fprintf(stdout, "excepted  %s: %s\n", r.name, r.why)
		default:
			t.failed++
			fmt.Fprintf(stdout, "FAIL  %s: %s\n", r.name, r.why)
		}
	}
	return t, nil
}

// once runs a scenario once more.
func (b *bed) once(ctx context.Context, s suite, failed result) (result, error) {
	all, err := b.suite(ctx, s, s.single(failed.name))
	for _, r := range all {
		if r.name == failed.name {
			return r, err
		}
	}
	return failed, err
}

// suite runs a suite's program to its end, and returns what it tells.
func (b *bed) suite(ctx context.Context, s suite, more []string) ([]result, error) {
	path, err := exec.LookPath(s.path)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	limited, done := context.WithTimeoutCause(ctx, 20*time.Minute, fmt.Errorf("%s did not end within 20 minutes", s.name))
	defer done()
	code, err := b.set.Run(limited, processes.Command{Name: s.name, Path: path, Args: append(s.args, more...), Dir: s.dir, Output: &text,
		Env: append(os.Environ(), "LANGSMITH_TRACING=false", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")})
	if err != nil {
		return nil, err
	}
	all, err := results(strings.NewReader(text.String()))
	if err == nil && code != 0 && !failed(all) {
		err = errors.New("no scenario failed")
	}
	if err != nil {
		return nil, fmt.Errorf("%s ended with exit code %d: %w:\n%s", s.name, code, err, b.set.Tail(s.name, 20))
	}
	return all, nil
}

func failed(all []result) bool {
	for _, r := range all {
		if r.why != "" {
			return true
		}
	}
	return false
}
