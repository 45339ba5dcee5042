package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/history"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// served makes a graph without types one that a worker serves.
type served struct{ graph *graphadapter.Graph }

func (s served) Name() string                 { return s.graph.Spec.Name }
func (s served) Adapter() *graphadapter.Graph { return s.graph }

// loopGraph runs one node until its counter is at the input's target. What the node returns beside the counter is up
// to the caller.
func loopGraph(name string, node func(s graphadapter.State, n int) ([]any, error)) *graphadapter.Graph {
	step := graphadapter.Node{Run: func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
		n := number(in.State["n"].Value())
		more, err := node(in.State, n)
		return writes(append([]any{"n", n + 1}, more...)...), err
	}}
	step.Branches = []graphadapter.BranchFunc{func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		if number(s["n"].Value()) < number(s["until"].Value()) {
			return []pregel.Target{{Node: "step"}}, nil
		}
		return []pregel.Target{{Node: pregel.End}}, nil
	}}
	g := graph(name, map[string]graphadapter.Node{"step": step}, []string{"step"}, to(pregel.Start, "step"))
	for _, ch := range []string{"big", "n", "until"} {
		g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: ch, Kind: pregel.KindLast})
	}
	g.Spec.Branches = []pregel.Branch{{From: "step", Targets: []string{"step", pregel.End}}}
	return g
}

func number(v pregel.Value) (n int) {
	if v != nil {
		if err := json.Unmarshal(v, &n); err != nil {
			panic(err)
		}
	}
	return n
}

// readsBig is a node's part that wants to find the input's large value in each superstep.
func readsBig(want pregel.Value) func(graphadapter.State, int) ([]any, error) {
	return func(s graphadapter.State, n int) ([]any, error) {
		if !bytes.Equal(s["big"].Value(), want) {
			return nil, fmt.Errorf("in superstep %d the node reads %d bytes, want %d", n+1, len(s["big"].Value()), len(want))
		}
		return nil, nil
	}
}

// large is a JSON string of that many bytes.
func large(size int) pregel.Value {
	return pregel.Value(`"` + strings.Repeat("0123456789abcdef", size/16+1)[:size-2] + `"`)
}

// looped starts a loop of so many supersteps.
func (r *rig) looped(graph string, until int, big pregel.Value) client.WorkflowRun {
	in := map[string]any{"until": until}
	if big != nil {
		in["big"] = big
	}
	return r.start(testserver.Queue(r.t), protocol.GraphInput{Graph: graph, Options: pregel.Options{RecursionLimit: until + 10},
		Input: protocol.Input{Value: pregel.Value(asJSON(r.t, in))}})
}

// historySize is what the server counts.
func (r *rig) historySize(run client.WorkflowRun) int {
	r.t.Helper()
	d, err := r.client.DescribeWorkflowExecution(r.ctx, run.GetID(), run.GetRunID())
	if err != nil {
		r.t.Fatal(err)
	}
	return int(d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
}

// serve starts one of several workers, each as if in a process of its own. Its options may leave out a kind of task.
func (r *rig) serve(cfg superstep.WorkerConfig, graphs ...*graphadapter.Graph) (stop func()) {
	r.t.Helper()
	cfg.TaskQueue = r.queue
	for _, g := range graphs {
		cfg.Graphs = append(cfg.Graphs, served{g})
	}
	ready := make(chan struct{})
	cfg.Options.WorkerStopTimeout, cfg.LostAfter, cfg.OnReady = patience, steady, func() { close(ready) }
	w, err := superstep.NewWorker(r.client, cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	}
	r.t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-ended:
		stopped = true
		r.t.Fatal("the worker ended: ", err)
	}
	return stop
}

// The kinds of task that a worker may leave to others.
var (
	decides = superstep.WorkerConfig{Options: worker.Options{LocalActivityWorkerOnly: true, DeadlockDetectionTimeout: raced}}
	runs    = superstep.WorkerConfig{Options: worker.Options{DisableWorkflowWorker: true}}
)

// counted runs nodes as a Worker does, with a rebuild that is counted, or replaced.
func (r *rig) counted(g *graphadapter.Graph, rebuild activities.Rebuild) {
	r.t.Helper()
	w := worker.New(r.client, r.queue, worker.Options{DisableWorkflowWorker: true, WorkerStopTimeout: patience})
	inputs := activities.NewInputs(0, rebuild)
	activities.NewNodes(r.client, []*graphadapter.Graph{g}).WithInputs(inputs).Register(w)
	if err := w.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(w.Stop)
}

// replaying finds values by replaying runs of these graphs.
func (r *rig) replaying(of ...*graphadapter.Graph) activities.Rebuild {
	tail := history.Tail{Service: r.client.WorkflowService(), Namespace: "default", Converter: converter.GetDefaultDataConverter()}
	return func(ctx context.Context, run activities.Run, pass func(pregel.Value)) error {
		graphs := workflows.NewGraphs(of, workflows.Config{Values: told(pass)})
		return tail.Replay(ctx, run.WorkflowID, run.RunID, code{graphs})
	}
}

type told func(pregel.Value)

func (f told) Sent(_ string, v pregel.Value) { f(v) }
func (f told) Passed(v pregel.Value)         { f(v) }

type code struct{ *workflows.Graphs }

func (code) Err() error { return nil }
