// Command conformance runs recorded LangGraph traces against this project's engines. What a case is, and what an
// engine must answer, is written in testdata/FORMAT.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

const usage = `Usage: go run ./conformance [-engine memory|temporal] [-run REGEXP] [-v] PATH...

Runs recorded LangGraph traces against an engine. A PATH is a case file (.json), a file with one case a line (.jsonl),
or a folder that is searched for both. A failing case prints one line: its name, where its answer first differs (a JSON
path into the case's "expect"), what was wanted and what came. The last line is "N passed, N failed".

Flags:
  -engine NAME   the engine to test: memory (the default), temporal
  -run REGEXP    only the cases whose name matches
  -v             print passing cases too

Exit status: 0 all passed, 1 some failed, 2 wrong usage.

Example: run everything, then look at one case.
  go run ./conformance ./conformance/testdata
  go run ./conformance -v -run '^join-' ./conformance/testdata/cases

testdata/FORMAT.md says what a case means.
`

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// settings are the parsed flags.
type settings struct {
	engine  engine
	only    *regexp.Regexp
	verbose bool
	paths   []string
}

// command is the whole program; it returns the exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitUsage
	}
	cases, err := selectCases(s, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "conformance: %v\n", err)
		return exitUsage
	}
	failed := 0
	for i := range cases {
		if ctx.Err() != nil {
			fmt.Fprintln(stderr, "conformance: stopped")
			return exitFailed
		}
		if !runOne(ctx, s, &cases[i], stdout) {
			failed++
		}
	}
	fmt.Fprintf(stdout, "%d passed, %d failed\n", len(cases)-failed, failed)
	if failed > 0 {
		return exitFailed
	}
	return 0
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	name := flags.String("engine", "memory", "")
	only := flags.String("run", "", "")
	flags.BoolVar(&s.verbose, "v", false, "")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("%w (-help shows the flags)", err)
	}
	var err error
	if s.engine, err = newEngine(*name); err != nil {
		return nil, err
	}
	if s.only, err = regexp.Compile(*only); err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	if s.paths = flags.Args(); len(s.paths) == 0 {
		return nil, errors.New("name the cases to run, such as ./conformance/testdata (-help shows more)")
	}
	return s, nil
}

// selectCases loads the cases and keeps those that -run asks for; how many it leaves out is said, never hidden.
func selectCases(s *settings, stderr io.Writer) ([]source, error) {
	all, err := loadCases(s.paths)
	if err != nil {
		return nil, err
	}
	var kept []source
	for _, c := range all {
		if s.only.MatchString(c.name()) {
			kept = append(kept, c)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("none of the %d cases has a name that matches -run %s", len(all), s.only)
	}
	if left := len(all) - len(kept); left > 0 {
		fmt.Fprintf(stderr, "conformance: -run leaves out %d of %d cases\n", left, len(all))
	}
	return kept, nil
}

// runOne runs one case, prints its line and returns whether it passed.
func runOne(ctx context.Context, s *settings, c *source, stdout io.Writer) bool {
	if why := verdict(ctx, s.engine, c); why != "" {
		fmt.Fprintf(stdout, "FAIL %s: %s\n", c.name(), why)
		return false
	}
	if s.verbose {
		fmt.Fprintf(stdout, "ok   %s\n", c.name())
	}
	return true
}

// verdict says on one line why a case fails, "" if it passes.
func verdict(ctx context.Context, e engine, c *source) string {
	if c.err != nil {
		return oneLine(c.err.Error())
	}
	d, err := runCase(ctx, e, c.doc, c.text)
	switch {
	case err != nil:
		return oneLine(err.Error())
	case d != nil:
		return d.String()
	}
	return ""
}

// oneLine folds the line breaks of joined errors.
func oneLine(text string) string {
	return regexp.MustCompile(`\s*\n\s*`).ReplaceAllString(text, "; ")
}
