// Package dev runs the processes of an example until Ctrl-C, with the output of each under its name: what make dev and make chat do.
package dev

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"superstep.dev/examples/internal/approver"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

// Example is what stays.
type Example struct {
	// Programs are built and started: stack.Refund, say. Ports says which ports they take, for people.
	Programs []string
	Ports    string
	// Folder holds databases, keys and logs, in the repository, unless --dir names another one. Kept is what it has when all has stopped.
	Folder, Kept string
	// Env is added to the workers' environment, and Workers is how many there are.
	Env     []string
	Workers int
	// Begin starts what the example has besides, and returns what people are told once all of it is up.
	Begin func(ctx context.Context, root string, s *stack.Stack, a approver.Approver) (welcome string, err error)

	anyPort bool
	dir     string
}

// Flags adds those that every example has.
func (e *Example) Flags(flags *flag.FlagSet) {
	flags.BoolVar(&e.anyPort, "any-port", false, "take free ports even where the usual ones ("+e.Ports+") are free")
	flags.StringVar(&e.dir, "dir", "", "`directory` for databases and logs (default "+e.Folder+" of the repository)")
}

// Run parses the command line and stays until a signal, which is no error, or until one of the processes ends, which is. It returns the
// exit code: 2 is a command line that does not fit.
func (e *Example) Run(flags *flag.FlagSet, args []string, out, stderr io.Writer) int {
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case e.Workers < 1:
		fmt.Fprintf(stderr, "%s: --workers %d: at least one has to serve the graph\n", flags.Name(), e.Workers)
		return 2
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	if err := e.stay(ctx, out); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", flags.Name(), err)
		return 1
	}
	return 0
}

func (e *Example) stay(ctx context.Context, out io.Writer) error {
	root, err := stack.Root(ctx)
	if err != nil {
		return err
	}
	if e.dir == "" {
		e.dir = filepath.Join(root, e.Folder)
	}
	dir, err := filepath.Abs(e.dir)
	if err != nil {
		return fmt.Errorf("find the directory for databases and logs: %w", err)
	}
	logs := filepath.Join(dir, "logs")
	if err := os.RemoveAll(logs); err != nil { // those of the last time
		return fmt.Errorf("remove old logs: %w", err)
	}
	set, ctx, err := processes.New(ctx, logs)
	if err != nil {
		return err
	}
	err = e.serve(ctx, out, set, root, dir)
	fmt.Fprintln(out, "\nstopping …")
	if slow := set.Stop(); slow != nil {
		fmt.Fprintln(out, "note:", slow)
	}
	var signal *processes.SignalError
	if errors.As(err, &signal) {
		fmt.Fprintf(out, "stopped; %s are kept in %s\n", e.Kept, dir)
		return nil
	}
	return err
}

// serve builds and starts the processes and returns why they have to stop.
func (e *Example) serve(ctx context.Context, out io.Writer, set *processes.Set, root, dir string) error {
	fmt.Fprintln(out, "Building (first time 4 to 7 min: the Temporal server) …")
	programs, err := stack.Build(ctx, set, root, filepath.Join(dir, "bin"), e.Programs, func(name string) {
		fmt.Fprintln(out, "  "+name)
	})
	if err != nil {
		return err
	}
	a, err := approver.Prepare(dir)
	if err != nil {
		return err
	}
	const width = len("devserver")
	prefixer := processes.NewPrefixer(out, width, isTerminal(out))
	s, err := stack.Start(ctx, set, programs, stack.Config{
		Dir: dir, AnyPort: e.anyPort, Drain: 10 * time.Second, Output: prefixer.For, Env: append(a.Env(), e.Env...),
	})
	if err != nil {
		return err
	}
	for range e.Workers {
		if _, err := s.Worker(ctx); err != nil {
			return err
		}
	}
	welcome, err := e.Begin(ctx, root, s, a)
	if err != nil {
		return err
	}
	fmt.Fprint(out, welcome)
	<-ctx.Done()
	return context.Cause(ctx)
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
