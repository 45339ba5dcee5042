package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"superstep.dev/cli"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
)

// exitBroken says that something could not be measured.
const exitBroken = 2

func main() {
	if os.Getenv(envProgram) != "" {
		cli.Main(clock()) // ends the process
	}
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	roles := map[string]func(context.Context, string) error{"publish": publish, "forward": forward}
	if len(os.Args) == 3 && roles[os.Args[1]] != nil {
		if err := roles[os.Args[1]](ctx, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "streams:", err)
			os.Exit(exitBroken)
		}
		return
	}
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitBroken // it has been printed
	}
	if err := measure(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "streams:", err)
		return exitBroken
	}
	return 0
}

// measure takes all rows that were asked for, and prints them.
func measure(ctx context.Context, o options, stdout, notes io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "superstep-streams")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	set, ctx, err := processes.New(ctx, filepath.Join(dir, "logs"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Stop()) }()
	s := &stage{options: o, Bed: &testbed.Bed{Processes: set, Dir: dir, Notes: notes, Devserver: o.devserver}}
	var t table
	for _, row := range []struct {
		name string
		do   func(context.Context, *table) error
	}{{"emission", s.emission}, {"slow reader", s.slowReader}, {"open streams", s.openStreams}, {"chats", s.chats},
		{"idle threads", s.idle}, {"reference", s.reference}} {
		if !o.run.MatchString(row.name) || row.name == "reference" && o.reference == "" {
			continue
		}
		fmt.Fprintln(notes, "measuring", row.name)
		if err := row.do(ctx, &t); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", row.name, err), t.print(stdout))
		}
	}
	fmt.Fprintf(stdout, "%s %s/%s, %d processors, %d rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.rounds)
	return t.print(stdout)
}
