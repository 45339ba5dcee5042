package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.temporal.io/sdk/client"

	"superstep.dev/test/processes"
)

// The workflows of plugin.py, which take the updates of floor.local and floor.talk.
const (
	pluginFlow     = "plugin.run"
	pluginTalkFlow = "plugin.talk"
)

// pluginQueue is served by Temporal's plugin for LangGraph.
const pluginQueue = "peers-plugin"

// pluginVersions prints the versions of Temporal's plugin for LangGraph and of its SDK; it fails where one is not installed.
const pluginVersions = "from importlib.metadata import version; print(version('temporalio-langgraph'), version('temporalio'))"

// plugin reports whether the Python that has LangGraph has Temporal's plugin for it too.
func (f *field) plugin(ctx context.Context) bool {
	if f.list || f.langgraph == "" {
		return f.list
	}
	printed, err := exec.CommandContext(ctx, f.langgraph, "-c", pluginVersions).Output()
	versions := strings.Fields(string(printed))
	if err != nil || len(versions) != 2 {
		f.leaveOut("Temporal's plugin for LangGraph, which that Python does not have: pip install temporalio-langgraph==0.1.0")
		return false
	}
	f.report.Versions["temporalio-langgraph"], f.report.Versions["temporalio"] = versions[0], versions[1]
	return true
}

// startPlugin starts a worker process with the plugin, and returns when it polls. Its calls are not counted.
func (f *field) startPlugin(ctx context.Context, queue, address string, output io.Writer) (*workerProcess, error) {
	dir, err := f.unpack("plugin")
	if err != nil {
		return nil, err
	}
	ready := filepath.Join(dir, "ready")
	p, err := f.bed.Processes.Start(ctx, processes.Command{
		Name: queue, Path: f.langgraph, Args: []string{filepath.Join(dir, "plugin.py"), ready, address, queue},
		ReadyFile: ready, ReadyWithin: langGraphStart, Output: output,
	})
	if err != nil {
		return nil, fmt.Errorf("the plugin for LangGraph: %w\n%s", err, f.bed.Processes.Tail(queue, 20))
	}
	return &workerProcess{Process: p}, nil
}

// pluginWays are those of the plugin on a server: each node is an activity.
func (f *field) pluginWays(ctx context.Context, t *cluster) ([]*way, error) {
	from := t.base
	from.clientCalls, from.clientPID = t.byHandCalls, os.Getpid()
	if t.server != nil {
		p, err := f.startPlugin(ctx, pluginQueue, t.server.Address, nil)
		if err != nil {
			return nil, err
		}
		from.workerPID = p.PID()
	}
	name := "plugin " + t.store
	floor := func(w *workload) string { return t.floor(w, "sync") }
	killed := newCrew(func(ctx context.Context, output io.Writer) (*workerProcess, error) {
		return f.startPlugin(ctx, pluginQueue+"-kill", t.server.Address, output)
	})
	return []*way{
		{name: name, do: byHand(t.byHand, pluginDo), source: &from, can: pluginCan, floor: floor, langgraph: against("sync")},
		killed.way(name, "", t, func(ctx context.Context, w *workload, id string) error {
			options := floorStart(id)
			options.TaskQueue = pluginQueue + "-kill"
			_, err := t.byHand.ExecuteWorkflow(ctx, options, pluginFlow, w.byHand(w.input))
			return err
		}),
	}, nil
}

// pluginCan leaves out what has more activities at once than the server takes of a run, which the plugin has no answer to, and a
// state that is larger than what it can give to one.
func pluginCan(w *workload) bool {
	return !w.kills && w.graph != largeGraph && w.steps < wideWidth && w.turns == 0
}

func pluginDo(ctx context.Context, c client.Client, w *workload, id string, in fields, turn int) error {
	options := floorStart(id)
	options.TaskQueue = pluginQueue
	switch {
	case w.talks():
		return floorUpdates(ctx, c, options, pluginTalkFlow, w, w.byHand(in), turn)
	case w.asks:
		return floorUpdates(ctx, c, options, pluginFlow, w, w.byHand(in), turn)
	}
	return floorGet(ctx, c, options, pluginFlow, w, in, turn)
}
