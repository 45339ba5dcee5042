package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
)

// options are the command line.
type options struct {
	run       *regexp.Regexp
	rounds    int
	threads   int
	reference string
	devserver string
}

const help = `Measure the streams of superstep serve: how late events come, what open streams cost, and what requests take.

usage: go run ./test/bench/streams [flags]

Worker, server and devserver are processes of their own. What is compared takes turns within one run, and a figure is the median of the
rounds. Bars stand beside the figures; the exit code is 2 when something could not be measured, else 0.

flags:
`

// parse reads the command line. Its errors have been printed.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("streams", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, help)
		f.PrintDefaults()
	}
	o.run = regexp.MustCompile("")
	f.Func("run", "only the rows whose name matches the `regexp`: emission, slow reader, open streams, chats, idle threads, reference", func(s string) (err error) {
		o.run, err = regexp.Compile(s)
		return err
	})
	f.IntVar(&o.rounds, "rounds", 5, "let what is compared take turns `n` times")
	f.IntVar(&o.threads, "threads", 2000, "let `n` threads rest")
	f.StringVar(&o.reference, "reference", "", "compare with the reference server that this `langgraph` starts, with its in-memory runtime")
	f.StringVar(&o.devserver, "devserver", "", "use this devserver `binary` instead of building one")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || min(o.rounds, o.threads) < 1 {
		err := errors.New("want flags only, -rounds and -threads of at least 1: see --help")
		fmt.Fprintln(stderr, "streams:", err)
		return o, err
	}
	return o, nil
}
