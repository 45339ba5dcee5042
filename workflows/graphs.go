package workflows

import (
	"fmt"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// Graphs are the graphs that a worker serves, and the workflows over them.
type Graphs struct {
	byName map[string]*graphadapter.Graph
	// reducers are each graph's custom reducers, its subgraphs' included.
	reducers map[string]map[string]pregel.Reducer
	// sink is told of everything that happens to a run's thread; nil in workers.
	sink graphadapter.Recorder
	// reader is set while a past run is read.
	reader *Reader
	// values is told of what goes by reference; it may be nil.
	values Values
	// notices says that the worker tells people outside of questions.
	notices bool
	// governs says whether what is done to runs is under rules; nil says no.
	governs func() bool
	// may says whether the gate of this worker would allow something; nil says nothing.
	may func(approval.ControlCheck) approval.Ruling
	// heads signs the ends of audits; nil in workers without a key for that.
	heads approval.HeadSigner
	// leaders are those that the worker serves, by their names.
	leaders map[string]Leader
}

// Notifying makes the desk say that the worker tells people outside of questions, so that runs which begin from now on do.
// It returns g.
func (g *Graphs) Notifying(notices bool) *Graphs {
	g.notices = notices
	return g
}

// Signing makes the runs sign the ends of their audits when they are asked for them. It returns g.
func (g *Graphs) Signing(s approval.HeadSigner) *Graphs {
	g.heads = s
	return g
}

// NewGraphs returns the workflows over these graphs. sink is told of everything that happens to every run's thread, at
// the id of the event with which the workflow task started; it is nil in workers. To read one past run see [NewReader].
func NewGraphs(graphs []*graphadapter.Graph, sink graphadapter.Recorder) *Graphs {
	g := &Graphs{byName: map[string]*graphadapter.Graph{}, reducers: map[string]map[string]pregel.Reducer{}, sink: sink}
	for _, graph := range graphs {
		g.byName[graph.Spec.Name] = graph
		g.reducers[graph.Spec.Name] = graph.AllReducers()
	}
	return g
}

// Register registers the workflows on a worker or a replayer.
func (g *Graphs) Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(g.Graph, workflow.RegisterOptions{Name: protocol.GraphWorkflow})
	r.RegisterWorkflowWithOptions(g.Desk, workflow.RegisterOptions{Name: protocol.DeskWorkflow})
	r.RegisterWorkflowWithOptions(g.Notices, workflow.RegisterOptions{Name: protocol.NoticesWorkflow})
}

// program compiles the run's Spec with this worker's reducers. A graph or reducer that this worker does not have makes
// the workflow task fail, which the server repeats on any worker: the run waits for a deploy, it does not fail.
func (g *Graphs) program(ctx workflow.Context, in *protocol.GraphInput) *pregel.Program {
	if g.reader != nil {
		return g.reader.program(ctx, in)
	}
	graph, ok := g.byName[in.Graph]
	if !ok {
		panic(fmt.Sprintf("this worker does not serve the graph %q, it serves %v: start a worker that does", in.Graph, g.names()))
	}
	if in.Spec == nil {
		in.Spec = recordSpec(ctx, in, graph.Spec)
	}
	program, err := pregel.Compile(in.Spec, g.reducers[in.Graph])
	if err != nil {
		panic(fmt.Sprintf("this worker cannot run the graph %q as the run began with it: %v", in.Graph, err))
	}
	return program
}

// recordSpec makes the worker's Spec part of the run's history, so that a later deploy does not change the run.
func recordSpec(ctx workflow.Context, in *protocol.GraphInput, served *pregel.Spec) *pregel.Spec {
	var spec pregel.Spec
	recorded := workflow.SideEffect(ctx, func(workflow.Context) any { return served })
	if err := recorded.Get(&spec); err != nil {
		panic(fmt.Sprintf("the recorded spec of graph %q cannot be read: %v", in.Graph, err))
	}
	if print, err := graphadapter.Fingerprint(&spec); err == nil && print != in.Noted {
		if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoSpec: print}); err != nil {
			workflow.GetLogger(ctx).Warn("the spec's fingerprint is not in the memo", "error", err)
		}
	}
	return &spec
}
