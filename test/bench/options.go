package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
)

// The exit codes: 1 is a bar that was missed, 2 a measurement that could not be made.
const (
	exitMissed = 1
	exitBroken = 2
)

// options are the command line.
type options struct {
	selected  *regexp.Regexp
	json      string
	rounds    int
	kills     int
	waiting   int
	devserver string
	langgraph string
	profile   string
	list      bool
}

const help = `Measure what Superstep costs and how fast it recovers, and hold the figures to bars.

usage: go run ./test/bench [flags]

  go run ./test/bench                           everything, about half an hour
  go run ./test/bench -run engine               the engine alone, without a server: seconds
  go run ./test/bench -run chain -rounds 3      a quick look at the cost of a step
  go run ./test/bench -run state -rounds 1      a quick look at what a large state costs
  go run ./test/bench -run recovery -kills 5    a quick look at a lost worker
  go test -bench . -count 10 ./test/bench       the engine's figures for benchstat

A row prints the median, the bar, and the spread of its rounds. Comparisons alternate: a machine that is busy makes
both sides slow, and the ratio stays. A wide spread means that the run should be repeated when less is going on.

The exit code is 0 when every bar is met, 1 when one is missed, 2 when something could not be measured.

flags:
`

// parse reads the command line. Its errors have been printed.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, help)
		f.PrintDefaults()
	}
	f.Func("run", "take only the measurements whose name matches the `regexp`", func(s string) (err error) {
		o.selected, err = regexp.Compile(s)
		return err
	})
	f.StringVar(&o.json, "json", filepath.Join("test", "bench", "results", "latest.json"), "write all samples to this `file`; empty writes none")
	f.IntVar(&o.rounds, "rounds", 0, "repeat each comparison `n` times; 0 leaves it to the measurement")
	f.IntVar(&o.waiting, "waiting", 10_000, "let `n` runs wait to measure the inbox, at least 1,000")
	f.IntVar(&o.kills, "kills", 20, "kill a worker `n` times to measure recovery")
	f.StringVar(&o.devserver, "devserver", "", "use this devserver `binary` instead of building one")
	f.StringVar(&o.langgraph, "langgraph", "", "compare async and exit with LangGraph too, run by this `python`, for which it is installed")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process, workers of the chain included, to this `file`")
	f.BoolVar(&o.list, "list", false, "list the measurements and take none")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.rounds < 0 || o.kills < 1 || o.waiting < 1000 {
		err := fmt.Errorf("want flags only, -rounds of at least 0, -kills of at least 1, -waiting of at least 1,000: see --help")
		fmt.Fprintln(stderr, "bench:", err)
		return o, err
	}
	return o, nil
}

// repeat is how many rounds a measurement takes that wants n by itself.
func (o options) repeat(n int) int {
	if o.rounds > 0 {
		return o.rounds
	}
	return n
}

// startProfile profiles this process until the returned function is called; path "" does nothing.
func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
