package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const help = `Compare what users wait for Superstep with hand-written Temporal workflows and with LangGraph, in one run.

usage: go run ./test/bench/peers [flags]

  go run ./test/bench/peers -langgraph python3               everything on SQLite; an hour or two
  go run ./test/bench/peers -list                            what there is, by name
  go run ./test/bench/peers -run '^chain-20/' -rounds 3      one workload, minutes
  go run ./test/bench/peers -run '/(superstep sqlite async client|floor)' -calls
  go run ./test/bench/peers -store sqlite,postgres           on both databases
  go run ./test/bench/peers -turns 1,500,2000 -run '^turn'   a long conversation
  go run ./test/bench/peers -run bytes-of-turns -talk 1000   what turns store; it is only done when it is named

LangGraph, and Temporal's plugin for it, need a Python that has them; LangGraph.js needs a folder:

  python3 -m venv lg && lg/bin/pip install langgraph==1.2.22 langgraph-checkpoint-postgres \
      langgraph-checkpoint-sqlite 'psycopg[binary,pool]' aiosqlite temporalio-langgraph==0.1.0
  npm install --prefix lgjs @langchain/langgraph@1.7.3 @langchain/core \
      @langchain/langgraph-checkpoint-postgres @langchain/langgraph-checkpoint-sqlite
  go run ./test/bench/peers -langgraph lg/bin/python -langgraphjs lgjs

All ways take turns within one run, in an order that is drawn for each round. A ratio is the median over the rounds, with
the lowest and the highest round in brackets; below 1 is faster. Names are WORKLOAD/WAY; a way is

  superstep STORE MODE CALLER   client: Client.Start and Client.Wait; thread: Thread.Invoke, both in another process than the
                                worker; runs: the same with a run of its own for each turn; here: Thread.Invoke in the
                                worker's process; follow: the command superstep run --follow, start of its process included
  superstep version             that start: the command when it asks nobody anything
  floor STORE KIND              by hand: activities, heartbeats, local (an update that starts the run, a local activity), or
                                stored (the same, and an activity for the step that is not to begin before another is stored)
  plugin STORE                  Temporal's plugin for LangGraph in Python, an activity for each node
  langgraph SAVER MODE          invoke in its own process, in Python
  langgraphjs SAVER MODE        the same in JavaScript

The exit code is 0 when every way did its work, 1 when one failed, 2 when nothing could be measured.

flags:
`

type options struct {
	run               *regexp.Regexp
	rounds, crowd     int
	talk              int
	turns             []int
	stores            []string
	seed              uint64
	output, json, svg string
	langgraph         string
	langgraphjs       string
	storage           bool
	devserver         string
	list, callsToo    bool
}

// parse reads the command line. Its errors have been printed.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, help)
		f.PrintDefaults()
	}
	f.Func("run", "only what matches the `regexp`, as WORKLOAD/WAY", func(s string) (err error) {
		o.run, err = regexp.Compile(s)
		return err
	})
	o.turns, o.stores = []int{1, 500}, []string{"sqlite"}
	f.Func("turns", "measure conversations that have had as many turns: `n,n` (1,500)", func(s string) (err error) {
		o.turns = nil
		for word := range strings.SplitSeq(s, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return fmt.Errorf("want numbers of turns from 1 on, such as 1,500,2000")
			}
			o.turns = append(o.turns, n)
		}
		return nil
	})
	f.Func("store", "where Temporal keeps its data: `sqlite,postgres` (sqlite)", func(s string) error {
		o.stores = strings.Split(s, ",")
		for _, store := range o.stores {
			if store != "sqlite" && store != "postgres" {
				return fmt.Errorf("want sqlite, postgres or both with a comma")
			}
		}
		return nil
	})
	f.IntVar(&o.rounds, "rounds", 5, "let everybody do everything `n` times")
	f.IntVar(&o.crowd, "crowd", 200, "let `n` runs be under way at once in the workload crowd")
	f.IntVar(&o.talk, "talk", 10_000, "let the conversation of bytes-of-turns have `n` turns")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "draw the order of the ways from this `number`")
	f.StringVar(&o.output, "o", "table", "print `table` or json; json has every round, and the tables go to standard error")
	f.StringVar(&o.json, "json", "", "write the same JSON to this `file`, after each workload")
	f.StringVar(&o.svg, "svg", "", "draw the ratios to this `file`, after each workload")
	f.StringVar(&o.langgraph, "langgraph", "", "compare with LangGraph, run by this `python`, for which it is installed")
	f.StringVar(&o.langgraphjs, "langgraphjs", "", "compare with LangGraph.js, which is installed in this `folder`'s node_modules")
	f.BoolVar(&o.storage, "storage", true, "let Superstep keep large values in files, as docs/storage.md has it")
	f.StringVar(&o.devserver, "devserver", "", "use this devserver `binary` instead of building one")
	f.BoolVar(&o.callsToo, "calls", false, "print remote calls by method below each table")
	f.BoolVar(&o.list, "list", false, "list what there is and measure nothing")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || min(o.rounds, o.crowd, o.talk) < 1 || o.output != "table" && o.output != "json" {
		err := errors.New("want flags only, -o of table or json, -rounds, -crowd and -talk of at least 1: see --help")
		fmt.Fprintln(stderr, "peers:", err)
		return o, err
	}
	return o, nil
}
