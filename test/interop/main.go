// Program interop runs the clients that exist against superstep serve: langgraph-sdk and RemoteGraph of Python, and both versions of
// @langchain/langgraph-sdk that npm's users have. It starts a Temporal server, a worker and a server, installs the clients from PyPI and
// npm into a folder of its own, .interop, which later runs use again, and lets them do what programs do with an agent server:
//
//	go run ./test/interop
//	go run ./test/interop -store postgres
//	go run ./test/interop -kill 20s -rounds 2
//
// With -kit FOLDER it also runs that folder's run.py and run.mjs, each with the server's URL as its argument.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"time"

	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// options are the command line.
type options struct {
	kit, only, store string
	except           *regexp.Regexp
	kill             time.Duration
	rounds           int
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("interop", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.kit, "kit", "", "run the run.py and run.mjs of `folder` too")
	f.StringVar(&o.only, "only", "", "run only scenarios with `part` in their names")
	f.StringVar(&o.store, "store", "sqlite", "`database` of the Temporal server and of the store: sqlite or postgres")
	f.DurationVar(&o.kill, "kill", 0, "kill the worker and the server by turns after each `interval`")
	f.IntVar(&o.rounds, "rounds", 1, "run everything `n` times")
	f.Func("except", "with -kill, let scenarios whose names match the `pattern` fail: those that measure time", func(text string) (err error) {
		if text != "" {
			o.except, err = regexp.Compile(text)
		}
		return err
	})
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.rounds < 1 || o.kill < 0 || o.kill > 0 && o.kill < 5*time.Second || o.store != "sqlite" && o.store != "postgres" {
		err := errors.New("want flags only, a round at least, sqlite or postgres, and 5 s or more between two kills: see --help")
		fmt.Fprintln(stderr, "interop:", err)
		return o, err
	}
	return o, nil
}

// execute runs the command line and returns the exit code: see stack.Trial. Where Python or Node.js are missing there is nothing to
// test with: that is said, and no failure.
func execute(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if lacks := missing(); err == nil && lacks != "" {
		fmt.Fprintf(stderr, "interop: skipped: there is no %s (Debian: apt-get install python3-venv nodejs npm)\n", lacks)
		return 0
	}
	var base bed
	trial := stack.Trial{Name: "interop", Stderr: stderr, Programs: stack.Agents,
		Prepare: func(ctx context.Context, set *processes.Set, dir string) (stack.Config, error) {
			base = bed{set: set, dir: dir, options: o}
			return base.prepare(ctx, stderr)
		}}
	defer func() { _ = base.clear() }() // what another user's server has left
	return trial.Exit(err, func(ctx context.Context, _ *processes.Set, _ string, s *stack.Stack) (bool, error) {
		if err := base.start(ctx, s); err != nil {
			return false, err
		}
		defer base.stop()
		return base.run(ctx, stdout)
	})
}

// missing is what the clients need and this machine has not, "" for nothing.
func missing() string {
	for _, name := range []string{"python3", "node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	if exec.Command("python3", "-c", "import ensurepip, venv").Run() != nil {
		return "venv of python3"
	}
	if exec.Command("node", "-e", "process.exit(+process.versions.node.split('.')[0] >= 20 ? 0 : 1)").Run() != nil {
		return "node of version 20 or newer"
	}
	return ""
}
