package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

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
)

// served makes a graph without types one that a worker serves.
type served struct{ graph *graphadapter.Graph }

func (s served) Name() string                 { return s.graph.Spec.Name }
func (s served) Adapter() *graphadapter.Graph { return s.graph }

// loopGraph runs one node until its counter is at the input's target. What the node returns beside the counter is up
// to the caller.
func loopGraph(name string, node func(s graphadapter.State, n int) ([]any, error)) *graphadapter.Graph {
	step := graphadapter.Node{Run: func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
		n := number(in.State["n"])
		more, err := node(in.State, n)
		return writes(append([]any{"n", n + 1}, more...)...), err
	}}
	step.Branches = []graphadapter.BranchFunc{func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		if number(s["n"]) < number(s["until"]) {
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
		if !bytes.Equal(s["big"], want) {
			return nil, fmt.Errorf("in superstep %d the node reads %d bytes, want %d", n+1, len(s["big"]), len(want))
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
	return r.start(testserver.Queue(r.t), workflows.GraphInput{Graph: graph, Options: pregel.Options{RecursionLimit: until + 10},
		Input: pregel.Input{Value: pregel.Value(asJSON(r.t, in))}})
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
	cfg.Options.WorkerStopTimeout = patience
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
	return stop
}

// The kinds of task that a worker may leave to others.
var (
	decides = superstep.WorkerConfig{Options: worker.Options{LocalActivityWorkerOnly: true}}
	runs    = superstep.WorkerConfig{Options: worker.Options{DisableWorkflowWorker: true}}
)

// TestHistoryGrowsWithWhatChanges: 1 MiB of state through 200 supersteps is sent once, in the run's input and again in
// its end.
func TestHistoryGrowsWithWhatChanges(t *testing.T) {
	t.Parallel()
	const steps, size = 200, 1 << 20
	r := newRig(t)
	big := large(size)
	r.serve(superstep.WorkerConfig{}, loopGraph("grows", readsBig(big)))
	run := r.looped("grows", steps, big)
	if result := r.finished(run); result.Step != steps {
		t.Fatalf("the run ended at step %d", result.Step)
	}
	got := r.historySize(run)
	t.Logf("%d supersteps that read %d bytes: %d bytes of history, %d a superstep without the input and the end",
		steps, size, got, (got-2*size)/steps)
	if most := 2*size + steps*4<<10 + 64<<10; got > most {
		t.Errorf("the history has %d bytes, want at most %d", got, most)
	}
}

// TestAListGrowsByWhatIsAppended: 1,000 supersteps append 1 KiB each, and each reads all there is.
func TestAListGrowsByWhatIsAppended(t *testing.T) {
	t.Parallel()
	const steps, size = 1000, 1 << 10
	r := newRig(t)
	piece := strings.Repeat("x", size-3)
	r.serve(superstep.WorkerConfig{}, loopGraph("appends", func(s graphadapter.State, n int) ([]any, error) {
		if want := n*size + 1; n > 0 && len(s["log"]) != want {
			return nil, fmt.Errorf("in superstep %d the node reads %d bytes, want %d", n+1, len(s["log"]), want)
		}
		return []any{"log", []string{piece}}, nil
	}))
	run := r.looped("appends", steps, nil)
	if result := r.finished(run); result.Step != steps || len(result.State) < steps*size {
		t.Fatalf("the run ended at step %d with %d bytes", result.Step, len(result.State))
	}
	got := r.historySize(run)
	t.Logf("%d supersteps that append %d bytes to what they read: %d bytes of history, by value it would be %d more",
		steps, size, got, steps*(steps-1)/2*size)
	if most := 2*steps*size + steps*4<<10; got > most {
		t.Errorf("the history has %d bytes, want at most %d", got, most)
	}
}

// TestAWorkerThatSentNothingFindsEverything: the worker that decides and the worker that runs the nodes are two, so
// every value is found by a replay; with a cache that keeps nothing, in every superstep.
func TestAWorkerThatSentNothingFindsEverything(t *testing.T) {
	t.Parallel()
	for name, inputBytes := range map[string]int{"with a cache": 0, "with a cache that is too small": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			big := large(1 << 20)
			g := loopGraph("cold", readsBig(big))
			cold := runs
			cold.InputBytes = inputBytes
			r.serve(decides, g)
			r.serve(cold, g)
			if result := r.finished(r.looped("cold", 10, big)); result.Step != 10 {
				t.Errorf("the run ended at step %d", result.Step)
			}
		})
	}
}

// TestAReplayReadsWhatACodecWrote: payloads may be compressed or encrypted by the Temporal client's data converter.
func TestAReplayReadsWhatACodecWrote(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	coded := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
	c, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: silent{}, DataConverter: coded})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r.client = c
	big := large(1 << 20)
	g := loopGraph("coded", readsBig(big))
	cold := runs
	cold.DataConverter = coded
	r.serve(decides, g)
	r.serve(cold, g)
	run := r.looped("coded", 3, big)
	if result := r.finished(run); result.Step != 3 {
		t.Errorf("the run ended at step %d", result.Step)
	}
	if size := r.historySize(run); size > 200<<10 {
		t.Errorf("the history has %d bytes: it was not compressed", size)
	}
}

// partsGraph has every part of a request that can be large: many small channels, a large one, a Send's argument, a
// subgraph's result that branches are to see, and the run's context.
func partsGraph(big pregel.Value) *graphadapter.Graph {
	checks := func(what string, got pregel.Value) error {
		if !bytes.Equal(got, big) {
			return fmt.Errorf("%s has %d bytes, want %d", what, len(got), len(big))
		}
		return nil
	}
	plan := graphadapter.Node{
		Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			task, _ := graphadapter.TaskFrom(ctx)
			if err := errors.Join(checks("the context", task.RunContext()), checks("the channel", in.State["big"])); err != nil {
				return pregel.Command{}, err
			}
			for i := range 30 {
				if v := in.State[fmt.Sprintf("small-%02d", i)]; !bytes.Equal(v, large(1<<10)) {
					return pregel.Command{}, fmt.Errorf("small channel %d has %d bytes", i, len(v))
				}
			}
			return pregel.Command{Goto: []pregel.Target{{Node: "work", Send: true, Arg: big}}}, nil
		},
	}
	work := graphadapter.Node{Run: func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
		return writes("log", []string{"work"}), checks("the argument", in.Arg)
	}}
	inner := graph("inner", map[string]graphadapter.Node{"fill": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return pregel.Command{Update: []pregel.Write{{Channel: "log", Value: append(append(pregel.Value("["), big...), ']')}}}, nil
	}}}, []string{"fill"}, to(pregel.Start, "fill"))
	inner.Spec.Input = []string{}
	routes := graphadapter.Node{Branches: []graphadapter.BranchFunc{func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		var log []pregel.Value
		if err := json.Unmarshal(s["log"], &log); err != nil || len(log) == 0 {
			return nil, fmt.Errorf("the log has %d bytes: %v", len(s["log"]), err)
		}
		return []pregel.Target{{Node: "end"}}, checks("the subgraph's result", log[len(log)-1])
	}}}
	g := graph("parts", map[string]graphadapter.Node{"plan": plan, "work": work, "sub": routes, "end": says("end")},
		[]string{"plan", "work", "sub", "end"}, to(pregel.Start, "plan"), to("plan", "sub"))
	g.Spec.Nodes[2].Subgraph, g.Subgraphs = "inner", map[string]*graphadapter.Graph{"inner": inner}
	g.Spec.Subgraphs = map[string]*pregel.Spec{"inner": inner.Spec}
	g.Spec.Branches = []pregel.Branch{{From: "sub", Targets: []string{"end"}}}
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "big", Kind: pregel.KindLast})
	for i := range 30 {
		g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: fmt.Sprintf("small-%02d", i), Kind: pregel.KindLast})
	}
	return g
}

// TestEveryPartArrives: each part of a request that can be large goes by reference, and is what it was where it arrives.
func TestEveryPartArrives(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	big := large(50 << 10)
	g := partsGraph(big)
	r.serve(decides, g)
	r.serve(runs, g)
	in := map[string]any{"big": big}
	for i := range 30 {
		in[fmt.Sprintf("small-%02d", i)] = large(1 << 10)
	}
	run := r.start(testserver.Queue(t), workflows.GraphInput{Graph: "parts", Context: big,
		Input: pregel.Input{Value: pregel.Value(asJSON(t, in))}})
	if result := r.finished(run); result.Step != 3 {
		t.Errorf("the run ended at step %d", result.Step)
	}
	sent := map[graphadapter.Part]int{}
	for _, e := range r.history(run.GetID()).Events {
		a := e.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		var req graphadapter.NodeRequest
		if err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &req); err != nil {
			t.Fatal(err)
		}
		for _, ref := range req.References {
			sent[ref.Part]++
		}
		if size := a.GetInput().Size(); size > 4<<10 {
			t.Errorf("the task of %s carries %d bytes", req.Task.Node, size)
		}
	}
	for _, part := range []graphadapter.Part{graphadapter.PartChannel, graphadapter.PartRest, graphadapter.PartArg,
		graphadapter.PartDone, graphadapter.PartContext} {
		if sent[part] == 0 {
			t.Errorf("%s never went by reference: %v", part, sent)
		}
	}
}

// TestWorkersTakeTurns: a list that grows in every superstep is read by whichever of two workers is given the task.
func TestWorkersTakeTurns(t *testing.T) {
	t.Parallel()
	const steps = 40
	r := newRig(t)
	piece := strings.Repeat("x", 8<<10)
	var ran [2]atomic.Int32
	of := func(worker int) *graphadapter.Graph {
		return loopGraph("turns", func(s graphadapter.State, n int) ([]any, error) {
			ran[worker].Add(1)
			var log []string
			if err := json.Unmarshal(append([]byte(nil), s["log"]...), &log); n > 0 && (err != nil || len(log) != n || log[n-1] != piece) {
				return nil, fmt.Errorf("in superstep %d the node reads %d pieces: %v", n+1, len(log), err)
			}
			return []any{"log", []string{piece}}, nil
		})
	}
	r.serve(decides, of(0))
	r.serve(runs, of(0))
	r.serve(runs, of(1))
	if result := r.finished(r.looped("turns", steps, nil)); result.Step != steps {
		t.Errorf("the run ended at step %d", result.Step)
	}
	t.Logf("the workers ran %d and %d tasks", ran[0].Load(), ran[1].Load())
	if ran[0].Load() == 0 || ran[1].Load() == 0 {
		t.Error("one worker ran all tasks")
	}
}

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
		graphs := workflows.NewGraphs(of, nil).Telling(told(pass))
		return tail.Replay(ctx, run.WorkflowID, run.RunID, code{graphs})
	}
}

type told func(pregel.Value)

func (f told) Sent(_ string, v pregel.Value) { f(v) }
func (f told) Passed(v pregel.Value)         { f(v) }

type code struct{ *workflows.Graphs }

func (code) Err() error { return nil }

// TestOneReplayForAWholeSuperstep: 500 tasks of one superstep read the same 1 MiB, on a worker that never saw it.
func TestOneReplayForAWholeSuperstep(t *testing.T) {
	t.Parallel()
	const wide, size = 500, 1 << 20
	r := newRig(t)
	big := large(size)
	nodes, names := map[string]graphadapter.Node{}, []string{}
	var edges []pregel.Edge
	for i := range wide {
		name := fmt.Sprintf("n%03d", i)
		names, edges = append(names, name), append(edges, to(pregel.Start, name))
		nodes[name] = graphadapter.Node{Run: func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
			if !bytes.Equal(in.State["big"], big) {
				return pregel.Command{}, fmt.Errorf("%s reads %d bytes", name, len(in.State["big"]))
			}
			return writes("log", []string{name}), nil
		}}
	}
	g := graph("wide", nodes, names, edges...)
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "big", Kind: pregel.KindLast})
	var replays atomic.Int32
	rebuild := r.replaying(g)
	r.serve(decides, g)
	r.counted(g, func(ctx context.Context, run activities.Run, pass func(pregel.Value)) error {
		replays.Add(1)
		return rebuild(ctx, run, pass)
	})
	run := r.start(testserver.Queue(t), workflows.GraphInput{Graph: "wide",
		Input: pregel.Input{Value: pregel.Value(`{"big":` + string(big) + `}`)}})
	r.finished(run)
	state, err := r.state(run.GetID())
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	if err := json.Unmarshal(state.Snapshot.Values["log"], &log); err != nil || len(log) != wide {
		t.Errorf("%d tasks wrote: %v", len(log), err)
	}
	if n := replays.Load(); n != 1 {
		t.Errorf("the run was replayed %d times for %d tasks", n, wide)
	}
}

// TestAWorkerThatCannotFindGivesBack: the task waits for a worker that can, the reason is there to be read, and the
// node never runs with anything else.
func TestAWorkerThatCannotFindGivesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	big := large(64 << 10)
	g := loopGraph("lost", readsBig(big))
	r.serve(decides, g)
	r.counted(g, func(_ context.Context, _ activities.Run, pass func(pregel.Value)) error {
		pass(large(64<<10 - 1))
		return nil
	})
	run := r.looped("lost", 2, big)
	await(t, "the reason", func() bool {
		d, err := r.client.DescribeWorkflowExecution(r.ctx, run.GetID(), run.GetRunID())
		if err != nil || len(d.GetPendingActivities()) == 0 {
			return false
		}
		failure := d.GetPendingActivities()[0].GetLastFailure()
		return failure.GetApplicationFailureInfo().GetType() == graphadapter.NodeInputType &&
			strings.Contains(failure.GetMessage(), `node "step" of graph "lost" reads (thread `+run.GetID())
	}, func() any { return nil })
	r.serve(runs, g)
	if result := r.finished(run); result.Step != 2 {
		t.Errorf("the run ended at step %d", result.Step)
	}
}
