package stack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"superstep.dev/test/processes"
)

// Trial is a program that puts a stack of its own through something, and says whether it broke a promise.
type Trial struct {
	// Name is the program's.
	Name string
	// Stderr is told how far it is, and what went wrong.
	Stderr io.Writer
	// Programs are those to build, [Refund] unless it says otherwise.
	Programs []string
	// Prepare says how the stack runs, once the directory is there, and may start what that needs; nil is a file and any port.
	Prepare func(ctx context.Context, set *processes.Set, dir string) (Config, error)
}

// Run is what a trial does with its stack. Whatever it leaves in dir is kept when a promise was broken.
type Run func(ctx context.Context, set *processes.Set, dir string, s *Stack) (broken bool, err error)

// Exit runs the trial until it is over or a signal ends it, and returns the program's exit code: 1 is a promise that was
// broken, 2 something that kept it from being tested. parsed is what became of the command line.
func (t Trial) Exit(parsed error, run Run) int {
	switch {
	case errors.Is(parsed, flag.ErrHelp):
		return 0
	case parsed != nil:
		return 2
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	broken, err := t.within(ctx, run)
	switch {
	case err != nil:
		fmt.Fprintf(t.Stderr, "%s: %v\n", t.Name, err)
		return 2
	case broken:
		return 1
	}
	return 0
}

// within makes a directory and the processes, and takes them away.
func (t Trial) within(ctx context.Context, run Run) (broken bool, err error) {
	dir, err := os.MkdirTemp("", "superstep-"+t.Name)
	if err != nil {
		return false, err
	}
	defer func() {
		if broken || err != nil {
			fmt.Fprintln(t.Stderr, "the logs and the server's database are in", dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	set, ctx, err := processes.New(ctx, filepath.Join(dir, "logs"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, set.Stop()) }()
	s, err := t.start(ctx, set, dir)
	if err != nil {
		return false, err
	}
	if broken, err = run(ctx, set, dir, s); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return broken, err
}

// start builds the programs, and starts a Temporal server and, where it is among them, the payments service.
func (t Trial) start(ctx context.Context, set *processes.Set, dir string) (*Stack, error) {
	root, err := Root(ctx)
	if err != nil {
		return nil, err
	}
	names := t.Programs
	if names == nil {
		names = Refund
	}
	programs, err := Build(ctx, set, root, dir, names, func(name string) { fmt.Fprintln(t.Stderr, "building", name) })
	if err != nil {
		return nil, err
	}
	cfg := Config{Dir: dir}
	if t.Prepare != nil {
		if cfg, err = t.Prepare(ctx, set, dir); err != nil {
			return nil, err
		}
	}
	cfg.AnyPort = true
	s, err := Start(ctx, set, programs, cfg)
	if err == nil {
		fmt.Fprintln(t.Stderr, "the Temporal server is at", s.Address, "with a web UI at", s.WebUI)
	}
	return s, err
}
