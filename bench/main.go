package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
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
		return exitBroken // the flag package has said why
	}
	chosen := choose(o.run)
	if o.list {
		printList(stdout, chosen)
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	missed, err := measure(ctx, o, chosen, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitBroken
	case missed > 0:
		return exitMissed
	}
	return 0
}

// measure takes the chosen measurements, prints their figures as they come, and returns how many missed their bar.
func measure(ctx context.Context, o options, chosen []measurement, stdout, stderr io.Writer) (missed int, err error) {
	if len(chosen) == 0 {
		return 0, fmt.Errorf("no measurement matches -run %s: --list names them", o.run)
	}
	stopProfile, err := startProfile(o.profile)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	b := &bench{options: o, notes: stderr}
	defer func() { err = errors.Join(err, b.close()) }()
	r := newReport(o)
	printHead(stdout)
	for _, m := range chosen {
		figures, err := m.take(ctx, b)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.name, err)
		}
		r.Figures = append(r.Figures, figures...)
		printFigures(stdout, figures)
	}
	printSummary(stdout, r.Figures)
	return count(r.Figures, figure.missed), r.write(o.json)
}
