package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/test/conformance/cmdline"
)

const usage = `Usage: go run ./test/conformance [flags] PATH...

Runs recorded LangGraph traces against an engine. A PATH is a case file (.json), a file with one case a line (.jsonl),
or a folder that is searched for both. The last line says how many cases passed, and how many of them differ from
LangGraph on purpose. For those the program holds results of our own (test/conformance/differences); docs/differences.md
explains each, and -v prints the reason.

A failing case prints one line: its name, where its answer first differs (a JSON path into the case's "expect"), what
was wanted and what came.

Flags:
  -engine NAME       the engine to test: memory (the default) runs in this process, temporal runs each case as workflows
                     on a real Temporal server
  -address H:P       the Temporal server to use; without it, and without SUPERSTEP_TEST_ADDRESS, the program starts one
                     (built on first use, which takes minutes) and ends it again
  -durability MODE   run every case in this mode (sync, fused, async, exit) where it names none; fused is sync with
                     consecutive supersteps in one activity, which only the temporal engine has; for exit see below
  -parallel N        how many cases run at a time
  -run REGEXP        only the cases whose name matches
  -v                 print passing cases too, and why those that differ on purpose do

What exit by definition does not keep is not compared; everything else is, and the last line says how many cases show
or name such checkpoints. The exact rule, in FORMAT's terms:
  - of the checkpoints that a run action makes, in each graph, only the newest is kept; those of update_state all are;
  - "history" lists what is kept; "parent" is the nearest kept one on the way back, null if there is none;
  - "from_checkpoint" names the same checkpoint at its place among the kept ones. When a later action names one that exit
    would not keep, the run action that made it runs in sync;
  - a command's writes are not kept with the checkpoint where the command began. When a later action shows or names
    checkpoints of the thread, the command runs in sync.

Exit status: 0 all passed or differ on purpose, 1 some failed, 2 wrong usage or no server.

Examples: run everything in this process, the same on Temporal, and look at one case.
  go run ./test/conformance ./test/conformance/testdata
  go run ./test/conformance -engine temporal ./test/conformance/testdata
  go run ./test/conformance -v -run '^join-' ./test/conformance/testdata/cases

testdata/FORMAT.md says what a case means. go run ./test/conformance/recorder records what a release of LangGraph answers.
`

// exitFailed is the status when a case failed.
const exitFailed = 1

func main() { cmdline.Main(command) }

// settings are the parsed flags.
type settings struct {
	engine     string
	address    string
	durability string
	parallel   int
	only       *regexp.Regexp
	verbose    bool
	paths      []string
}

// command is the whole program; it returns the exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	var cases []source
	if err == nil {
		cases, err = selectCases(s, stderr)
	}
	var e engine
	if err == nil {
		e, err = newEngine(s, stderr)
	}
	if err != nil {
		return cmdline.Refused("conformance", usage, err, stdout, stderr)
	}
	defer closing(e.close, stderr)
	trials := newTrials(cases, s.mode())
	stop, err := e.serve(ctx, graphsOf(trials))
	if err != nil {
		return cmdline.Refused("conformance", usage, err, stdout, stderr)
	}
	defer closing(stop, stderr)
	t := tally{verbose: s.verbose, out: stdout}
	if s.engine == engineTemporal {
		t.begun = time.Now()
	}
	judgeAll(ctx, e, trials, s.parallel, t.note)
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "conformance: stopped")
		return exitFailed
	}
	t.summary()
	if t.failed > 0 {
		return exitFailed
	}
	return 0
}

// closing says what went wrong when something was closed.
func closing(end func() error, stderr io.Writer) {
	if err := end(); err != nil {
		fmt.Fprintf(stderr, "conformance: %v\n", err)
	}
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	flags := cmdline.Flags("conformance")
	flags.StringVar(&s.engine, "engine", engineMemory, "")
	flags.StringVar(&s.address, "address", "", "")
	flags.StringVar(&s.durability, "durability", "", "")
	flags.IntVar(&s.parallel, "parallel", 0, "")
	only := flags.String("run", "", "")
	flags.BoolVar(&s.verbose, "v", false, "")
	if err := cmdline.Parse(flags, args); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	if s.paths = flags.Args(); len(s.paths) == 0 {
		return nil, errors.New("name the cases to run, such as ./test/conformance/testdata (-help shows more)")
	}
	return s, nil
}

const (
	// modeFused is sync mode with consecutive supersteps in one activity.
	modeFused = "fused"
	// modeExit keeps one checkpoint of each run.
	modeExit = string(graphadapter.DurabilityExit)
)

// mode is the durability as a run is asked for it.
func (s *settings) mode() string {
	if s.durability == modeFused {
		return "sync"
	}
	return s.durability
}

func (s *settings) check() error {
	switch {
	case s.engine != engineMemory && s.engine != engineTemporal:
		return fmt.Errorf("there is no engine %q: the engines are memory and temporal", s.engine)
	case s.address != "" && s.engine != engineTemporal:
		return errors.New("-address needs -engine temporal")
	case s.durability != modeFused && !slices.Contains(durabilities, s.durability):
		return fmt.Errorf("-durability: there are sync, fused, async and exit, not %q", s.durability)
	case s.durability == modeFused && s.engine != engineTemporal:
		return errors.New("-durability fused needs -engine temporal: memory has no activities")
	case s.parallel < 0:
		return fmt.Errorf("-parallel: at least 1, not %d", s.parallel)
	}
	return nil
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
