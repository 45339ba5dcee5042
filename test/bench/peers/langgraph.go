package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"superstep.dev/test/processes"
)

// programs are in the languages that LangGraph is written in.
//
//go:embed graphs.py invoke.py plugin.py invoke.mjs
var programs embed.FS

const (
	// langGraphStart bounds how long an interpreter takes to import LangGraph.
	langGraphStart = 2 * time.Minute
	// squareTurns is how many turns LangGraph takes one after the other when what they store is measured: it is half a KiB for
	// each of them, times their number.
	squareTurns = 1_000
)

// langGraph is LangGraph in one language.
type langGraph struct {
	// name begins the names of its ways; database is that of its own in PostgreSQL.
	name, database string
	// flag is how one asks for it, install how one gets what the flag wants.
	flag, install string
	program       string
	// with is what the flag was given; "" leaves it out. interpreter runs the program in a folder that it has prepared.
	with        string
	interpreter func(dir string) (string, error)
}

// langGraphs are all there are.
func (o *options) langGraphs() []langGraph {
	return []langGraph{
		{
			name: "langgraph", database: "langgraph", flag: "-langgraph PYTHON", install: pythonInstall, program: "invoke.py", with: o.langgraph,
			interpreter: func(string) (string, error) { return o.langgraph, nil },
		},
		{
			name: "langgraphjs", database: "langgraphjs", flag: "-langgraphjs DIR", install: nodeInstall, program: "invoke.mjs", with: o.langgraphjs,
			interpreter: func(dir string) (string, error) {
				modules, err := filepath.Abs(filepath.Join(o.langgraphjs, "node_modules"))
				return "node", errors.Join(err, os.Symlink(modules, filepath.Join(dir, "node_modules")))
			},
		},
	}
}

// langGraphWork is what such a process is told to do, and langGraphResult what it tells then.
type (
	langGraphWork struct {
		Graph  string `json:"graph"`
		Saver  string `json:"saver"`
		Mode   string `json:"mode"`
		Thread string `json:"thread"`
		Input  fields `json:"input"`
		Asks   bool   `json:"asks"`
		AtOnce int    `json:"at_once"`
	}
	langGraphResult struct {
		Milliseconds float64 `json:"ms"`
		Step         int     `json:"step"`
	}
)

// langGraph starts a process of it, and makes the ways of those who invoke it there. Where it is not there it says how to get it.
func (f *field) langGraph(ctx context.Context, l langGraph) error {
	if l.with == "" && !f.list {
		f.leaveOut(fmt.Sprintf("%s, without %s: %s", l.name, l.flag, l.install))
		return nil
	}
	address, sqlite, postgres := "", source{}, source{}
	if !f.list {
		dir, p, err := f.startLangGraph(ctx, l)
		if err != nil {
			return err
		}
		address = p.Said()[0]
		sqlite = source{clientPID: p.PID(), database: sqliteFile(dir + "/langgraph.db")}
		postgres = source{clientPID: p.PID(), database: f.database, serverPIDs: []int{f.postgresPID}}
		var versions map[string]string
		if err := call(ctx, address, nil, &versions); err != nil {
			return err
		}
		maps.Copy(f.report.Versions, versions)
	}
	for _, saver := range []struct {
		name   string
		there  bool
		source *source
	}{{"sqlite", true, &sqlite}, {"postgres", f.dsn != "" || f.list, &postgres}} {
		for _, mode := range []string{"sync", "async", "exit"} {
			if saver.there {
				f.ways = append(f.ways, l.way(address, saver.name, mode, saver.source))
			}
		}
	}
	return nil
}

func (f *field) startLangGraph(ctx context.Context, l langGraph) (dir string, p *processes.Process, err error) {
	if dir, err = f.unpack(l.name); err != nil {
		return dir, nil, err
	}
	interpreter, err := l.interpreter(dir)
	if err != nil {
		return dir, nil, err
	}
	ready := filepath.Join(dir, "ready")
	args := []string{filepath.Join(dir, l.program), ready, filepath.Join(dir, "langgraph.db")}
	if f.dsn != "" {
		args = append(args, databaseOf(f.dsn, l.database))
	}
	p, err = f.bed.Processes.Start(ctx, processes.Command{
		Name: l.name, Path: interpreter, Args: args, ReadyFile: ready, ReadyWithin: langGraphStart,
	})
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s\ninstall it: %s", l.name, err, f.bed.Processes.Tail(l.name, 5), l.install)
	}
	return dir, p, err
}

// unpack writes the programs to a folder of their own.
func (f *field) unpack(name string) (dir string, err error) {
	if dir, err = os.MkdirTemp(f.bed.Dir, name); err != nil {
		return "", err
	}
	return dir, os.CopyFS(dir, programs)
}

// langGraphCan leaves out kills, as nobody goes on with a run whose process was killed, and what would store gigabytes.
func langGraphCan(w *workload) bool {
	return !w.kills && w.graph != largeGraph && w.turns <= squareTurns
}

// against is LangGraph's mode that a way is compared with, in workloads that LangGraph does.
func against(mode string) func(*workload) string {
	return func(w *workload) string {
		if !langGraphCan(w) {
			return ""
		}
		return mode
	}
}

func (l langGraph) way(address, saver, mode string, from *source) *way {
	do := func(ctx context.Context, w *workload, id, mode string, in fields, step int) (time.Duration, error) {
		var out langGraphResult
		err := call(ctx, address, langGraphWork{Graph: w.graph, Saver: saver, Mode: mode, Thread: id, Input: in, Asks: w.asks, AtOnce: w.atOnce}, &out)
		if err == nil {
			err = wrongStep(out.Step, step)
		}
		return time.Duration(out.Milliseconds * float64(time.Millisecond)), err
	}
	langgraph := against(mode)
	if l.name == "langgraph" { // which is what others are compared with
		langgraph = noWay
	}
	return &way{
		name: l.name + " " + saver + " " + mode, mode: mode, source: from, floor: noWay, langgraph: langgraph,
		can: langGraphCan,
		do: func(ctx context.Context, w *workload, id string, turn int) (time.Duration, error) {
			return do(ctx, w, id, mode, w.inputOf(id, turn), w.step(turn))
		},
		// A conversation has had its turns when its first one brought all their texts: each checkpoint has all of them anyway.
		grow: func(ctx context.Context, w *workload, id string, turns int) error {
			_, err := do(ctx, w, id, "exit", fields{"texts": texts(id, 0, turns)}, turns)
			return err
		},
	}
}

const pythonInstall = "python3 -m venv lg && lg/bin/pip install langgraph==1.2.22 langgraph-checkpoint-postgres " +
	"langgraph-checkpoint-sqlite 'psycopg[binary,pool]' aiosqlite temporalio-langgraph==0.1.0, then -langgraph lg/bin/python"

const nodeInstall = "npm install --prefix lgjs @langchain/langgraph@1.7.3 @langchain/core " +
	"@langchain/langgraph-checkpoint-postgres @langchain/langgraph-checkpoint-sqlite, then -langgraphjs lgjs"
