package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
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

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.kills, "n", 1000, "kill workers `n` times, over all modes")
	f.IntVar(&o.freezes, "freezes", 100, "freeze `n` attempts of each kind of target; 0 freezes none")
	f.IntVar(&o.late, "late", 200, "freeze `n` calls that are about to send; 0 freezes none")
	f.StringVar(&o.lateAs, "late-as", lates[0].name, "write those as `kind`: documented, guarded, plain or deaf (see late.go)")
	f.IntVar(&o.threads, "threads", 12, "keep `n` threads running at once")
	f.IntVar(&o.workers, "workers", 4, "keep `n` workers running, at least 2")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of everything random but the kills' effects")
	f.StringVar(&o.mode, "mode", "", "only this `mode`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.kills < 0 || o.freezes < 0 || o.late < 0 || o.threads < 1 || o.workers < 2 {
		err := errors.New("want flags only, no negative number, at least 1 thread and 2 workers: see --help")
		fmt.Fprintln(stderr, "chaos:", err)
		return o, err
	}
	return o, nil
}

// execute runs the command line and returns the exit code: see stack.Trial.
func execute(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	return stack.Trial{Name: "chaos", Stderr: stderr}.Exit(err,
		func(ctx context.Context, set *processes.Set, dir string, s *stack.Stack) (bool, error) {
			w, err := newWorld(ctx, set, dir, s.Address, s.Payments)
			if err != nil {
				return false, err
			}
			defer w.temporal.Close()
			w.random, w.notes = rand.New(rand.NewPCG(o.seed, 0)), stderr
			fmt.Fprintln(stderr, "seed", o.seed)
			return w.everything(ctx, o, stdout)
		})
}

// everything kills in every mode, and freezes for every kind of target.
func (w *world) everything(ctx context.Context, o options, stdout io.Writer) (broken bool, err error) {
	chosen := modes()
	if o.mode != "" {
		chosen = nil
		for _, m := range modes() {
			if m.name == o.mode {
				chosen = append(chosen, m)
			}
		}
	}
	if len(chosen) == 0 {
		return false, fmt.Errorf("there is no mode %q", o.mode)
	}
	l, err := lateNamed(o.lateAs)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(stdout, tableFormat, "mode", "runs", "kills", "chosen", "lost", "twice", "unequal", "again", "p50 s", "p95 s")
	for i, m := range chosen {
		if o.kills == 0 {
			break
		}
		kills := (o.kills + i) / len(chosen) // the rest is shared out
		t, err := w.campaign(ctx, m, kills, o)
		if err != nil {
			return false, fmt.Errorf("%s: %w", m.name, err)
		}
		t.print(stdout)
		broken = broken || t.broken()
	}
	for _, f := range []frozen{keyed, lookupOnly} {
		if o.freezes == 0 {
			break
		}
		r, err := w.freeze(ctx, f, o.freezes)
		if err != nil {
			return false, fmt.Errorf("frozen, %s: %w", f.name, err)
		}
		r.print(stdout)
		broken = broken || r.broken()
	}
	if o.late > 0 {
		r, err := w.freezeLate(ctx, l, o.late)
		if err != nil {
			return false, fmt.Errorf("late, %s: %w", l.name, err)
		}
		r.print(stdout)
		broken = broken || r.broken()
	}
	return broken, nil
}
