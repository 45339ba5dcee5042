package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"superstep.dev/internal/processes"
)

// The exit codes: 1 is a bar that was missed, 2 a measurement that could not be made.
const (
	exitMissed = 1
	exitBroken = 2
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(serveRecovery(os.Args[2:]))
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitBroken // it has been printed
	}
	if o.list {
		printList(stdout, choose(o.selected))
		return 0
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	missed, err := run(ctx, o, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitBroken
	case missed > 0:
		return exitMissed
	}
	return 0
}

// run makes what measurements need, and takes it away after them.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (missed int, err error) {
	dir, err := os.MkdirTemp("", "superstep-bench")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), os.RemoveAll(dir+postgresSuffix)) }()
	set, ctx, err := processes.New(ctx, filepath.Join(dir, "logs"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, set.Stop()) }()
	stopProfile, err := startProfile(o.profile)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	b := &bench{options: o, notes: stderr, processes: set, dir: dir}
	return b.measure(ctx, stdout)
}

// measure takes the chosen measurements, prints their figures as they come, and returns how many missed their bar.
func (b *bench) measure(ctx context.Context, stdout io.Writer) (missed int, err error) {
	chosen := choose(b.selected)
	if len(chosen) == 0 {
		return 0, fmt.Errorf("no measurement matches -run %s: --list names them", b.selected)
	}
	r := newReport(b.options)
	printHead(stdout)
	for _, m := range chosen {
		figures, err := m.take(ctx, b)
		if ctx.Err() != nil {
			return 0, fmt.Errorf("%s: %w", m.name, context.Cause(ctx))
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
		r.Figures = append(r.Figures, figures...)
		printFigures(stdout, figures)
	}
	printSummary(stdout, r.Figures)
	return count(r.Figures, figure.missed), r.write(b.json)
}
