package workflows

import (
	"fmt"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/listing"
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
	// find says what a run finds around it; nil says nothing.
	find func(namespace string) (protocol.Found, error)
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

// Finding makes the runs ask find, in the namespace that they are in, what a run finds around it. It must not take longer than a
// second; an error makes the workflow task fail, which the server repeats. Without it they find nothing. It returns g.
func (g *Graphs) Finding(find func(namespace string) (protocol.Found, error)) *Graphs {
	g.find = find
	return g
}

// program compiles the run's Spec with this worker's reducers. A graph or reducer that this worker does not have makes
// the workflow task fail, which the server repeats on any worker: the run waits for a deploy, it does not fail.
func (g *Graphs) program(ctx workflow.Context, in *protocol.GraphInput) (*pregel.Program, beginning) {
	if g.reader != nil {
		return g.reader.program(ctx, in)
	}
	graph, ok := g.byName[in.Graph]
	if !ok {
		panic(fmt.Sprintf("this worker does not serve the graph %q, it serves %v: start a worker that does", in.Graph, g.names()))
	}
	begun := begin(ctx, in, func(namespace string) beginning { return g.around(namespace, graph, in) })
	program, err := pregel.Compile(in.Spec, g.reducers[in.Graph])
	if err != nil {
		panic(fmt.Sprintf("this worker cannot run the graph %q as the run began with it: %v", in.Graph, err))
	}
	return program, begun
}

// beginning is what a run learns from its first worker. It is part of the run's history, so that a later deploy does not change
// the run.
type beginning struct {
	Spec  *pregel.Spec    `json:"spec,omitempty"`
	Found *protocol.Found `json:"found,omitempty"`
	// Problem says why the graph does not take the run's input, "" when it does.
	Problem string `json:"problem,omitempty"`
}

// around is what this worker knows, as far as the run does not.
func (g *Graphs) around(namespace string, graph *graphadapter.Graph, in *protocol.GraphInput) (b beginning) {
	if in.Spec == nil {
		b.Spec = graph.Spec
	}
	if in.Found == nil {
		b.Found = &protocol.Found{}
		if g.find != nil {
			found, err := g.find(namespace)
			if err != nil {
				panic(fmt.Sprintf("this worker does not know which search attributes the namespace %q has: %v", namespace, err))
			}
			b.Found = &found
		}
	}
	if in.Value != nil && graph.CheckInput != nil {
		if err := graph.CheckInput(in.Value); err != nil {
			b.Problem = err.Error()
		}
	}
	return b
}

// begin completes the input of a run with what around says. What is known already is not asked for, and leaves no event.
func begin(ctx workflow.Context, in *protocol.GraphInput, around func(namespace string) beginning) (b beginning) {
	if in.Spec != nil && in.Found != nil && (in.Carried != nil || in.Value == nil) {
		return b
	}
	recorded := workflow.SideEffect(ctx, func(ctx workflow.Context) any { return around(workflow.GetInfo(ctx).Namespace) })
	if err := recorded.Get(&b); err != nil {
		panic(fmt.Sprintf("what the run of graph %q began with cannot be read: %v", in.Graph, err))
	}
	if in.Spec == nil {
		in.Spec = b.Spec
	}
	if in.Found == nil {
		in.Found = b.Found
	}
	return b
}

// list shows a run in lists from its beginning on.
func list(ctx workflow.Context, in *protocol.GraphInput, begun beginning) listing.Listing {
	if in.Carried != nil {
		return listing.Open(ctx, *in.Found)
	}
	noted := ""
	if begun.Spec != nil {
		if print, err := graphadapter.Fingerprint(begun.Spec); err == nil && print != in.Noted {
			noted = print
		}
	}
	return listing.Begin(ctx, *in.Found, in.Graph, noted)
}
