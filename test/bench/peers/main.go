package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
)

// exitBroken says that nothing could be measured.
const exitBroken = 2

func main() {
	runCommand()
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		os.Exit(serveMain(os.Args[2:]))
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
	ctx, stop := processes.UntilSignal(context.Background())
	defer stop()
	failed, err := measure(ctx, o, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "peers:", err)
		return exitBroken
	case failed:
		return 1
	}
	return 0
}

// measure makes what is needed, lets everybody take turns, and takes it all away.
func measure(ctx context.Context, o options, stdout, notes io.Writer) (failed bool, err error) {
	dir, err := os.MkdirTemp("", "superstep-peers")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), os.RemoveAll(dir+testbed.PostgresSuffix)) }()
	set, ctx, err := processes.New(ctx, filepath.Join(dir, "logs"))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, set.Stop()) }()
	f := &field{options: o, bed: &testbed.Bed{Processes: set, Dir: dir, Notes: notes, Devserver: o.devserver},
		report: report{At: time.Now().UTC(), Seed: o.seed, Versions: versions()}}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.gather(ctx); err != nil {
		return false, err
	}
	if o.list {
		for _, w := range f.workloads() {
			for _, one := range f.chosen(w) {
				fmt.Fprintf(stdout, "%s/%s\n", w.name, one.name)
			}
		}
		return false, nil
	}
	return f.compete(ctx, stdout, notes)
}

// compete does all workloads and prints a table of each.
func (f *field) compete(ctx context.Context, stdout, notes io.Writer) (failed bool, err error) {
	tables := stdout
	if f.output == "json" {
		tables = notes
	}
	f.head(tables)
	order := rand.New(rand.NewPCG(f.seed, 0))
	for _, w := range f.workloads() {
		ways := f.chosen(w)
		if len(ways) == 0 {
			continue
		}
		all, err := race(ctx, w, ways, f.rounds, order, notes)
		if err != nil {
			return false, fmt.Errorf("%s: %w", w.name, err)
		}
		rows := rowsOf(w, all)
		if err := printTable(tables, w, rows); err != nil {
			return false, err
		}
		if f.callsToo {
			printCalls(tables, rows)
		}
		failed = failed || slices.ContainsFunc(rows, func(r row) bool { return r.Failed != "" })
		f.report.Rows = append(f.report.Rows, rows...)
		if err := f.write(); err != nil { // what there is, in case that something ends this early
			return false, err
		}
	}
	if len(f.report.Rows) == 0 {
		return false, fmt.Errorf("nothing matches -run %s: -list names what there is", f.run)
	}
	fmt.Fprintln(tables, "\nload average at the end:", load())
	if f.output != "json" {
		return failed, nil
	}
	text, err := f.report.encode()
	if err == nil {
		_, err = stdout.Write(text)
	}
	return failed, err
}

// write stores what was measured, as JSON and as a picture, where that was asked for.
func (f *field) write() error {
	text, err := f.report.encode()
	if err == nil && f.json != "" {
		err = os.WriteFile(f.json, text, 0o644)
	}
	if err == nil && f.svg != "" {
		err = os.WriteFile(f.svg, draw(f.report), 0o644)
	}
	return err
}

// head prints what was measured with, and what was left out.
func (f *field) head(out io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(f.report.Versions)) {
		fmt.Fprintf(out, "%s %s\n", name, f.report.Versions[name])
	}
	fmt.Fprintf(out, "%d rounds, seed %d, load average at the beginning: %s\n", f.rounds, f.seed, load())
	for _, what := range f.report.LeftOut {
		fmt.Fprintln(out, "left out:", what)
	}
}

// load is how busy the machine is; "" where the system does not tell.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:min(3, len(strings.Fields(string(text))))], " ")
}

// versions are those of what this program is made of.
func versions() map[string]string {
	out := map[string]string{
		"Go":         runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		"processors": strconv.Itoa(runtime.NumCPU()),
	}
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, m := range built.Deps {
			if m.Path == "go.temporal.io/sdk" {
				out["Temporal's Go SDK"] = m.Version
			}
		}
	}
	if commit, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		out["Superstep"] = strings.TrimSpace(string(commit))
	}
	return out
}
