package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

// play runs the demo in a directory of its own and returns its verdict. No process of it runs when it returns. The
// directory is kept only after a failure, with the logs.
func (d Demo) play(ctx context.Context, out *Screen, flags settings) (verdict string, err error) {
	root, err := stack.Root(ctx)
	if err != nil {
		return "", err
	}
	dir, err := makeDir(root, flags.parent)
	if err != nil {
		return "", err
	}
	logs := filepath.Join(dir, "logs")
	defer func() { err = tidy(out, dir, logs, err) }()
	set, ctx, err := processes.New(ctx, logs)
	if err != nil {
		return "", err
	}
	defer func() {
		if slow := set.Stop(); slow != nil {
			out.Line("note: %v", slow)
		}
	}()
	verdict, err = d.playIn(ctx, out, set, root, stack.Config{Dir: dir, AnyPort: flags.anyPort, Drain: d.Drain, LostAfter: flags.lostAfter, Env: d.Env(dir)})
	if err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx) // the rest is what came of it
	}
	return verdict, err
}

func (d Demo) playIn(ctx context.Context, out *Screen, set *processes.Set, root string, c stack.Config) (verdict string, err error) {
	programs, err := build(ctx, out, set, root, c.Dir, d.Programs)
	if err != nil {
		return "", err
	}
	s, err := open(ctx, out, set, programs, c)
	if err != nil {
		return "", err
	}
	defer s.Temporal.Close()
	return d.Scenes(ctx, s)
}

// makeDir makes the directory of this demo. It is inside the repository by default, on the disk of the programs.
func makeDir(root, parent string) (string, error) {
	if parent == "" {
		parent = filepath.Join(root, ".demo")
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("make a directory for the demo: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "run-")
	if err != nil {
		return "", fmt.Errorf("make a directory for the demo: %w", err)
	}
	return filepath.Abs(dir)
}

// tidy removes the directory, or shows where the logs are and how they end.
func tidy(out *Screen, dir, logs string, err error) error {
	var signal *processes.SignalError
	var over *EndedError
	if err == nil || errors.As(err, &signal) || errors.As(err, &over) {
		if removed := os.RemoveAll(dir); removed != nil {
			return errors.Join(err, fmt.Errorf("remove the directory of the demo: %w", removed))
		}
		return err
	}
	var ended *processes.ExitError
	if !errors.As(err, &ended) { // which has its log in its text
		showLogs(out, logs)
	}
	out.Line("The logs are in %s", logs)
	return err
}

// showLogs shows the end of every log that has something in it.
func showLogs(out *Screen, logs string) {
	const lines = 10
	files, err := filepath.Glob(filepath.Join(logs, "*.log"))
	if err != nil {
		return
	}
	for _, file := range files {
		if text := processes.Tail(file, lines); text != "" {
			out.Line("--- the end of %s\n%s", filepath.Base(file), text)
		}
	}
}
