package main

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"superstep.dev/test/processes"
)

//go:embed langgraph.py
var langGraphProgram string

const (
	// langGraphInstall makes a Python that has LangGraph with both savers.
	langGraphInstall = "python3 -m venv lg && lg/bin/pip install langgraph==1.2.22 langgraph-checkpoint-postgres " +
		"langgraph-checkpoint-sqlite 'psycopg[binary,pool]' aiosqlite, then -langgraph lg/bin/python"
	// langGraphStart bounds how long Python takes to import it.
	langGraphStart = 2 * time.Minute
)

// langGraphWork is what the Python process is told to do, and langGraphResult what it tells then.
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

// langGraph starts a Python process, and makes the ways of those who invoke LangGraph in it. Without a Python it says how to
// get one.
func (f *field) langGraph(ctx context.Context, dsn string) error {
	if f.langgraph == "" && !f.list {
		f.leaveOut("LangGraph, without -langgraph PYTHON: " + langGraphInstall)
		return nil
	}
	address, base := "", source{}
	if !f.list {
		p, err := f.startLangGraph(ctx, dsn)
		if err != nil {
			return err
		}
		address, base.clientPID = p.Said()[0], p.PID()
		var versions map[string]string
		if err := call(ctx, address, nil, &versions); err != nil {
			return err
		}
		maps.Copy(f.report.Versions, versions)
	}
	onPostgres := base
	if f.postgresPID != 0 {
		onPostgres.serverPIDs = []int{f.postgresPID}
	}
	for _, saver := range []struct {
		name   string
		there  bool
		source *source
	}{{"sqlite", true, &base}, {"postgres", dsn != "" || f.list, &onPostgres}} {
		for _, mode := range []string{"sync", "async", "exit"} {
			if saver.there {
				f.ways = append(f.ways, langGraphWay(address, saver.name, mode, saver.source))
			}
		}
	}
	return nil
}

func (f *field) startLangGraph(ctx context.Context, dsn string) (*processes.Process, error) {
	dir, err := os.MkdirTemp(f.bed.Dir, "langgraph")
	if err != nil {
		return nil, err
	}
	program, ready := filepath.Join(dir, "peer.py"), filepath.Join(dir, "ready")
	if err := os.WriteFile(program, []byte(langGraphProgram), 0o600); err != nil {
		return nil, err
	}
	args := []string{program, ready, filepath.Join(dir, "langgraph.db")}
	if dsn != "" {
		args = append(args, dsn[:strings.LastIndex(dsn, "/")]+"/langgraph")
	}
	p, err := f.bed.Processes.Start(ctx, processes.Command{
		Name: "langgraph", Path: f.langgraph, Args: args, ReadyFile: ready, ReadyWithin: langGraphStart,
	})
	if err != nil {
		return nil, fmt.Errorf("LangGraph: %w\n%s\ninstall it: %s", err, f.bed.Processes.Tail("langgraph", 5), langGraphInstall)
	}
	return p, nil
}

func langGraphWay(address, saver, mode string, from *source) *way {
	return &way{
		name: "langgraph " + saver + " " + mode, mode: mode, source: from, floor: noWay, langgraph: noWay,
		can: func(w *workload) bool { return !w.kills }, // nobody goes on with a run whose process was killed
		do: func(ctx context.Context, w *workload, id string, turn int) (time.Duration, error) {
			var out langGraphResult
			err := call(ctx, address, langGraphWork{Graph: w.graph, Saver: saver, Mode: mode, Thread: id, Input: w.inputOf(turn), Asks: w.asks,
				AtOnce: w.atOnce}, &out)
			if err == nil {
				err = wrongStep(out.Step, w.step(turn))
			}
			return time.Duration(out.Milliseconds * float64(time.Millisecond)), err
		},
	}
}
