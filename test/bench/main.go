package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
)

// measurements are all there are, in the order in which they are taken.
var measurements = []measurement{
	{"engine/step", "one superstep of the pure engine: a node that loops on itself over three channels", engineStep},
	{"engine/sends", "10,000 Sends in one superstep of the pure engine, and what twice as many cost", engineSends},
	{"engine/list", "a superstep in memory that reads a list of 3,000 items and appends one", engineList},
	{"chain", "200 no-op nodes through Superstep against 200 no-op activities of a hand-written workflow", chain},
	{"durability/sqlite", "one run of 1,000 no-op supersteps in each mode against the bare transport, on SQLite", onSQLite},
	{"durability/postgres", "the same on a PostgreSQL server of its own, where PostgreSQL is installed", onPostgres},
	{"jobs", "1,000 subjobs of a job, 100 at once, against a hand-written parent with as many children", jobs},
	{"state", "200 nodes that read 64 KiB of state against a workflow that hands it on, on workers that have it and that do not", state},
	{"answer", "from an approval, signed and verified, to the start of the next node", answer},
	{"inbox", "the first page of what waits for people, with many runs that wait, on PostgreSQL where it is installed", onPostgresInbox},
	{"figures", "processor time of runs on a worker that counts against one that does not", figuresCost},
	{"recovery", "from the kill of the worker that runs a node to the node's next start, on stock server settings", recovery},
}

// choose returns the measurements whose name matches; nil matches all.
func choose(run *regexp.Regexp) []measurement {
	var out []measurement
	for _, m := range measurements {
		if run == nil || run.MatchString(m.name) {
			out = append(out, m)
		}
	}
	return out
}

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
	defer func() { err = errors.Join(err, os.RemoveAll(dir), os.RemoveAll(dir+testbed.PostgresSuffix)) }()
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
	b := &bench{options: o, Bed: &testbed.Bed{Processes: set, Dir: dir, Notes: stderr, Devserver: o.devserver}}
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
