package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
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

// execute runs the command line and returns the exit code: see stack.Trial.
func execute(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	return stack.Trial{Name: "soak", Stderr: stderr}.Exit(err,
		func(ctx context.Context, set *processes.Set, dir string, s *stack.Stack) (bool, error) {
			l, err := soak(ctx, set, dir, s.Address, o, stderr)
			if err != nil {
				return false, err
			}
			l.print(stdout)
			return len(l.broken) > 0, nil
		})
}
