// Command recorder records what a release of LangGraph answers to conformance cases, and says what moved since they were
// stored. It makes an environment for the release on first use.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"superstep.dev/test/conformance/cmdline"
	"superstep.dev/test/conformance/trace"
)

const usage = `Usage: go run ./test/conformance/recorder [flags] PATH...
       go run ./test/conformance/recorder -generate N [flags] FILE.jsonl

Records anew what LangGraph answers to cases, and prints what moved: which actions of which cases, and which parts of
their results, grouped by the parts. A PATH is a case file (.json), a file with one case a line (.jsonl), or a folder
that is searched for both. testdata/FORMAT.md says what a case means.

With -generate it draws cases instead, asks LangGraph for the answers, and writes them to a file. A case is left out
when LangGraph does not answer the same three times, when its answer is too large, or when it takes too long.

The release is installed from the package index into an environment of its own, once. That needs Python 3.10 or newer
with its venv module; pip's own settings (PIP_INDEX_URL) say where the index is.

Flags:
  -version V    the release of LangGraph (default ` + defaultVersion + `, which docs/differences.md compares with)
  -write        write the answers that moved into the files; with -generate, write a file that is there anew
  -generate N   draw N cases
  -kind KIND    of drawn cases: wide (the default) goes two subgraphs deep, forks, answers in parts and updates
                subgraphs; random is one of the engines' property tests
  -seed S       of drawn cases (default 1): the same seed, number and kind draw the same case
  -o json       print the report as JSON
  -parallel N   how many cases are recorded at a time (default: the machine's processors)
  -timeout D    how long a case may take (default 60s)
  -python NAME  the Python that makes the environment (default python3)
  -cache DIR    where environments are kept (default: superstep in the user's cache folder)

Exit status: 0 nothing moved, 1 something moved or could not be recorded, 2 wrong usage, or no environment.

Examples: ask whether a newer release still answers the same, take its answers over, and draw new cases.
  go run ./test/conformance/recorder -version 1.2.23 ./test/conformance/testdata
  go run ./test/conformance/recorder -version 1.2.23 -write ./test/conformance/testdata
  go run ./test/conformance/recorder -generate 200 -seed 7 /tmp/drawn.jsonl && go run ./test/conformance /tmp/drawn.jsonl
`

// exitMoved is the status when something moved.
const exitMoved = 1

func main() { cmdline.Main(start) }

// command is a parsed command line.
type command struct {
	version  string
	write    bool
	count    int
	kind     string
	seed     uint64
	output   string
	parallel int
	timeout  time.Duration
	python   string
	cache    string
	paths    []string

	stdout, stderr io.Writer
}

func (c *command) say(format string, args ...any) {
	fmt.Fprintf(c.stderr, "recorder: "+format+"\n", args...)
}

func (c *command) done(format string, args ...any) { fmt.Fprintf(c.stdout, format+"\n", args...) }

// start is the whole program; it returns the exit status.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args)
	if err != nil {
		return cmdline.Refused("recorder", usage, err, stdout, stderr)
	}
	c.stdout, c.stderr = stdout, stderr
	status, err := c.run(ctx)
	if err != nil {
		c.say("%v", err)
	}
	return status
}

func parse(args []string) (*command, error) {
	c := &command{}
	flags := cmdline.Flags("recorder")
	flags.StringVar(&c.version, "version", defaultVersion, "")
	flags.BoolVar(&c.write, "write", false, "")
	flags.IntVar(&c.count, "generate", 0, "")
	flags.StringVar(&c.kind, "kind", "wide", "")
	flags.Uint64Var(&c.seed, "seed", 1, "")
	flags.StringVar(&c.output, "o", "text", "")
	flags.IntVar(&c.parallel, "parallel", runtime.NumCPU(), "")
	flags.DurationVar(&c.timeout, "timeout", time.Minute, "")
	flags.StringVar(&c.python, "python", "python3", "")
	flags.StringVar(&c.cache, "cache", "", "")
	if err := cmdline.Parse(flags, args); err != nil {
		return nil, err
	}
	c.paths = flags.Args()
	return c, c.check()
}

func (c *command) check() error {
	_, known := kinds[c.kind]
	switch {
	case len(c.paths) == 0:
		return errors.New("name the cases to record, such as ./test/conformance/testdata (-help shows more)")
	case c.count < 0:
		return fmt.Errorf("-generate: at least 1, not %d", c.count)
	case c.count > 0 && (len(c.paths) != 1 || filepath.Ext(c.paths[0]) != ".jsonl"):
		return errors.New("-generate writes one .jsonl file: name it")
	case !known:
		return fmt.Errorf("-kind: there are wide and random, not %q", c.kind)
	case c.output != "text" && c.output != "json":
		return fmt.Errorf("-o: there are text and json, not %q", c.output)
	case c.parallel < 1:
		return fmt.Errorf("-parallel: at least 1, not %d", c.parallel)
	case c.timeout <= 0:
		return fmt.Errorf("-timeout: more than %v", c.timeout)
	}
	return nil
}

// run does what the command line asks for.
func (c *command) run(ctx context.Context) (int, error) {
	var cases []*stored
	if c.count == 0 {
		var err error
		if cases, err = readStored(c.paths); err != nil {
			return cmdline.ExitUsage, err
		}
	}
	p, err := c.start(ctx)
	if err != nil {
		return cmdline.ExitUsage, err
	}
	defer p.close()
	if c.count > 0 {
		if err := c.generate(ctx, p); err != nil {
			return exitMoved, err
		}
		return 0, nil
	}
	outcomes := make([]*outcome, len(cases))
	p.each(ctx, len(cases), func(i int) { outcomes[i] = cases[i].record(ctx, p) })
	if err := ctx.Err(); err != nil {
		return exitMoved, fmt.Errorf("stopped: %w", err)
	}
	return c.finish(cases, outcomes, newReport(c.version, p.packages, outcomes))
}

// start finds or makes the environment and starts LangGraph in it.
func (c *command) start(ctx context.Context) (*pool, error) {
	cache := c.cache
	if cache == "" {
		folder, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding a cache folder: %w: name one with -cache", err)
		}
		cache = filepath.Join(folder, "superstep")
	}
	e, err := install(ctx, cache, c.python, c.version, c.say)
	if err != nil {
		return nil, err
	}
	return newPool(e, c.parallel, c.timeout)
}

func readStored(paths []string) ([]*stored, error) {
	texts, err := trace.Read(paths)
	if err != nil {
		return nil, err
	}
	out := make([]*stored, len(texts))
	for i, t := range texts {
		if out[i], err = decodeStored(t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// finish prints the report and writes the files.
func (c *command) finish(cases []*stored, outcomes []*outcome, r *report) (int, error) {
	text := r.text()
	if c.output == "json" {
		encoded, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return exitMoved, fmt.Errorf("encoding the report: %w", err)
		}
		text = string(encoded) + "\n"
	}
	fmt.Fprint(c.stdout, text)
	if c.write {
		files, err := rewrite(cases, outcomes)
		if err != nil {
			return exitMoved, err
		}
		c.say("wrote the answers of %d cases into %d files", r.Moved, files)
	}
	return cmp.Or(min(r.Moved+r.Failed, exitMoved), 0), nil
}
