package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/history"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// served makes a graph without types one that a worker serves.
type served struct{ graph *graphadapter.Graph }

func (s served) Name() string                 { return s.graph.Spec.Name }
func (s served) Adapter() *graphadapter.Graph { return s.graph }

// silent keeps the SDK's log lines out of the tests' output.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

// rig is a worker that serves one graph, a client of it, and a reader of histories.
type rig struct {
	*superstep.Client
	t        *testing.T
	ctx      context.Context
	graph    *graphadapter.Graph
	temporal client.Client
	tail     history.Tail
	thread   string
}

func newRig(t *testing.T, g *graphadapter.Graph) *rig {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	queue := testserver.Queue(t)
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	ready, ended := make(chan struct{}), make(chan error, 1)
	w, err := superstep.NewWorker(c, superstep.WorkerConfig{Graphs: []superstep.Runnable{served{g}}, TaskQueue: queue,
		Options: worker.Options{WorkerStopTimeout: time.Minute}, OnReady: func() { close(ready) }})
	if err != nil {
		t.Fatal(err)
	}
	running, end := context.WithCancel(context.Background())
	go func() { ended <- w.Run(running) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		stop()
	})
	<-ready
	reader, err := superstep.NewClient(c, superstep.ClientConfig{TaskQueue: queue})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Client: reader, t: t, ctx: ctx, graph: g, temporal: c, thread: queue,
		tail: newTail(c)}
}

func newTail(c client.Client) history.Tail {
	return history.Tail{Service: c.WorkflowService(), Namespace: "default", Converter: converter.GetDefaultDataConverter()}
}

// begin starts a run of the thread and returns its id.
func (r *rig) begin(input string) (runID string) {
	r.t.Helper()
	v, err := r.Start(r.ctx, thread.StartRequest{Graph: r.graph.Spec.Name, Thread: r.thread, Input: json.RawMessage(input)})
	if err != nil {
		r.t.Fatal(err)
	}
	return v.RunID
}

// rest follows the run until it waits or has ended.
func (r *rig) rest() thread.View {
	r.t.Helper()
	v, err := r.Wait(r.ctx, r.thread)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// says is a node that writes its name to the log.
func says(name string) graphadapter.Node {
	return graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return logs(name), nil
	}}
}

func logs(words ...string) pregel.Command {
	text, err := json.Marshal(words)
	if err != nil {
		panic(err)
	}
	return pregel.Command{Update: []pregel.Write{{Channel: "log", Value: text}}}
}

// asks is a node that writes the answer to its question.
func asks(name string) graphadapter.Node {
	return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		answer, err := task.Ask(ctx, pregel.Value(fmt.Sprintf("%q", name+"?")), nil, "")
		return logs(name, string(answer)), err
	}}
}

// graph makes a graph of these nodes; every edge is a pair of names.
func graph(nodes map[string]graphadapter.Node, order []string, edges ...[2]string) *graphadapter.Graph {
	g := &graphadapter.Graph{Nodes: nodes, Spec: &pregel.Spec{
		Version: pregel.SpecVersion, Name: "followed",
		Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}},
	}}
	for _, n := range order {
		g.Spec.Nodes = append(g.Spec.Nodes, pregel.NodeSpec{Name: n})
	}
	for _, e := range edges {
		g.Spec.Edges = append(g.Spec.Edges, pregel.Edge{From: e[0], To: e[1]})
	}
	return g
}
