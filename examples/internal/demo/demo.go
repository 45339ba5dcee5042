// Package demo is what the demos of this repository have in common: a screen, processes with a directory of their own, a
// question at the terminal, and a verdict as the exit code.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"superstep.dev/test/processes"
)

// Demo is a program that shows something in scenes.
type Demo struct {
	// Name begins the last line: "demo: OK, exactly one refund".
	Name string
	// Programs are what runs: stack.Refund or stack.Research.
	Programs []string
	// Drain is how long a worker that is stopped in the middle may finish what it does.
	Drain time.Duration
	// Env is what the workers' environment has besides, for a demo whose data belong in dir.
	Env func(dir string) []string
	// Scenes play on a stage with one worker, and return the verdict.
	Scenes func(ctx context.Context, s *Stage) (verdict string, err error)
}

// EndedError ends a demo in which nothing went wrong and that did not get to its verdict.
type EndedError struct {
	Reason string
	// Exit is the exit code; it is not 0, which stands for the verdict.
	Exit int
}

// Error returns the reason.
func (e *EndedError) Error() string { return e.Reason }

// sceneWithin bounds what takes seconds, on a machine that is busy with other things.
const sceneWithin = 5 * time.Minute

// Within bounds a scene.
func Within(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, sceneWithin, fmt.Errorf("%s: not done after %v", what, sceneWithin))
}

// Until calls holds until it does, and waits a little between two calls. The end of ctx is its cause as the error.
func Until(ctx context.Context, holds func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := holds()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || done {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settings are the flags.
type settings struct {
	anyPort   bool
	parent    string
	lostAfter time.Duration
}

// Main runs the demo with the program's arguments and returns the exit code: 0 only with a verdict, 1 when something went
// wrong, 2 for arguments that are of no use.
func (d Demo) Main(args []string) (exit int) {
	var s settings
	flags := flag.NewFlagSet(d.Name, flag.ContinueOnError)
	flags.BoolVar(&s.anyPort, "any-port", false, "take free ports even where the usual ones (7233, 8233, 8090) are free")
	flags.DurationVar(&s.lostAfter, "lost-after", 0, "`TIME` of silence after which a worker is taken for lost, for a machine that is busy (default that of workers)")
	flags.StringVar(&s.parent, "dir", "", "`directory` for the data of the demo (default .demo of the repository)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	return d.conclude(d.play(ctx, NewScreen(os.Stdout), s))
}

// conclude prints the last line and returns the exit code.
func (d Demo) conclude(verdict string, err error) int {
	var signal *processes.SignalError
	var ended *EndedError
	switch {
	case err == nil:
		fmt.Printf("%s: OK, %s\n", d.Name, verdict)
		return 0
	case errors.As(err, &ended):
		fmt.Printf("%s: %v\n", d.Name, ended)
		return ended.Exit
	case errors.As(err, &signal):
		fmt.Printf("\n%s: %v; nothing of it is left\n", d.Name, signal)
		return signal.Exit()
	default:
		fmt.Printf("%s: FAILED: %v\n", d.Name, err)
		return 1
	}
}
