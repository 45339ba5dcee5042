package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"superstep.dev/internal/processes"
	"superstep.dev/internal/processes/stack"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(serve(os.Args[2:]))
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// options are the command line.
type options struct {
	supersteps, questions int
	people, workers       int
	every                 time.Duration
	events                int
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.supersteps, "supersteps", 20_000, "run `n` supersteps")
	f.IntVar(&o.questions, "questions", 200, "ask `n` questions, at most one in two supersteps")
	f.IntVar(&o.people, "people", 6, "have `n` people answer them all")
	f.IntVar(&o.workers, "workers", 2, "keep `n` workers running")
	f.DurationVar(&o.every, "every", 30*time.Second, "kill a worker after each `interval`, besides those that die at a continue-as-new")
	f.IntVar(&o.events, "events", 0, "continue the thread as a new run after `n` events; 0 is as usual")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.questions < 1 || o.supersteps < 2*o.questions || o.people < 1 || o.workers < 1 || o.every < time.Second || o.events < 0 {
		err := errors.New("want flags only, two supersteps for each question, and an interval of at least 1 s: see --help")
		fmt.Fprintln(stderr, "soak:", err)
		return o, err
	}
	return o, nil
}

// execute runs the command line and returns the exit code: 1 is a promise that was broken, 2 something that kept it
// from being tested.
func execute(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	broken, err := run(ctx, o, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "soak:", err)
		return 2
	case broken:
		return 1
	}
	return 0
}

// run makes a server, has the thread live on it, and takes it away.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (broken bool, err error) {
	dir, err := os.MkdirTemp("", "superstep-soak")
	if err != nil {
		return false, err
	}
	defer func() {
		if broken || err != nil {
			fmt.Fprintln(stderr, "the logs and the server's database are in", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	set, ctx, err := processes.New(ctx, filepath.Join(dir, "logs"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, set.Stop()) }()
	root, err := stack.Root(ctx)
	if err != nil {
		return false, err
	}
	programs, err := stack.Build(ctx, set, root, dir, func(name string) { fmt.Fprintln(stderr, "building", name) })
	if err != nil {
		return false, err
	}
	s, err := stack.Start(ctx, set, programs, stack.Config{Dir: dir, AnyPort: true})
	if err != nil {
		return false, err
	}
	fmt.Fprintln(stderr, "the Temporal server is at", s.Address, "with a web UI at", s.WebUI)
	l, err := soak(ctx, set, dir, s.Address, o, stderr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return false, err
	}
	l.print(stdout)
	return len(l.broken) > 0, nil
}
