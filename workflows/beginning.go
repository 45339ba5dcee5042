package workflows

import (
	"fmt"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// Register registers the workflows on a worker or a replayer.
func (g *Graphs) Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(g.Graph, workflow.RegisterOptions{Name: protocol.GraphWorkflow})
	r.RegisterWorkflowWithOptions(g.Desk, workflow.RegisterOptions{Name: protocol.DeskWorkflow})
	r.RegisterWorkflowWithOptions(g.Notices, workflow.RegisterOptions{Name: protocol.NoticesWorkflow})
}

// program compiles the run's Spec with this worker's reducers. A graph or reducer that this worker does not have makes
// the workflow task fail, which the server repeats on any worker: the run waits for a deploy, it does not fail.
func (g *Graphs) program(ctx workflow.Context, in *protocol.GraphInput) (*pregel.Program, beginning) {
	if g.past != nil {
		return g.past(ctx, in)
	}
	graph, ok := g.byName[in.Graph]
	if !ok {
		panic(fmt.Sprintf("this worker does not serve the graph %q, it serves %v: start a worker that does", in.Graph, g.names()))
	}
	begun := begin(ctx, in, func(namespace string) beginning { return g.around(namespace, graph, in) })
	program, err := g.compiled(graph, in.Spec)
	if err != nil {
		panic(fmt.Sprintf("this worker cannot run the graph %q as the run began with it: %v", in.Graph, err))
	}
	return program, begun
}

// compiled is the run's Spec, compiled: mostly it is the graph's own, which was compiled when the worker began.
func (g *Graphs) compiled(graph *graphadapter.Graph, spec *pregel.Spec) (*pregel.Program, error) {
	if program := g.programs[graph.Spec.Name]; program != nil && graph.Has(spec) {
		return program, nil
	}
	return pregel.Compile(spec, g.reducers[graph.Spec.Name])
}

// around is what this worker knows, as far as the run does not.
func (g *Graphs) around(namespace string, graph *graphadapter.Graph, in *protocol.GraphInput) (b beginning) {
	if in.Spec == nil {
		b.Spec = graph.Spec
	}
	if in.Found == nil {
		b.Found = g.cfg.Find.In(namespace)
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
	known := false
	recorded := workflow.SideEffect(ctx, func(ctx workflow.Context) any {
		b, known = around(workflow.GetInfo(ctx).Namespace), true
		return b
	})
	// Whoever has just said it need not read it.
	if !known {
		if err := recorded.Get(&b); err != nil {
			panic(fmt.Sprintf("what the run of graph %q began with cannot be read: %v", in.Graph, err))
		}
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
func list(ctx workflow.Context, e *engine) listing.Listing {
	if e.in.Carried != nil {
		return listing.Open(ctx, *e.in.Found)
	}
	return listing.Begin(ctx, *e.in.Found, e.in.Graph)
}

// Reader is the Graph workflow for reading one past run: a replay of the run's history tells its sink what happened.
// The run's own Spec comes from the history, so the graph is needed for its custom reducers only. It is for one replay
// at a time.
type Reader struct {
	graphs   *Graphs
	reducers map[string]pregel.Reducer
	err      error
}

// NewReader returns a reader that tells sink what happened. graph may be nil: then only runs can be read whose reducers
// are all the engine's own, and others end with an [UnreadableError].
func NewReader(graph *graphadapter.Graph, sink graphadapter.Recorder) *Reader {
	r := &Reader{graphs: NewGraphs(nil, Config{Sink: sink})}
	r.graphs.past = r.program
	if graph != nil {
		r.reducers = graph.AllReducers()
	}
	return r
}

// Register registers the workflows on a replayer.
func (r *Reader) Register(w worker.WorkflowRegistry) { r.graphs.Register(w) }

// Err returns why the last replay could not read its run; nil when it could, or failed for another reason.
func (r *Reader) Err() error { return r.err }

// program compiles the run's own Spec.
func (r *Reader) program(ctx workflow.Context, in *protocol.GraphInput) (*pregel.Program, beginning) {
	r.err = nil
	begun := begin(ctx, in, func(string) beginning { return beginning{} }) // its history has it
	program, err := pregel.Compile(in.Spec, r.reducers)
	if err != nil {
		r.err = &UnreadableError{Graph: in.Graph, Err: err}
		panic(r.err.Error())
	}
	return program, begun
}

// UnreadableError says that a run of a graph cannot be read in this process, for a *pregel.UnknownReducerError or a
// *pregel.SpecVersionError.
type UnreadableError struct {
	Graph string
	Err   error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("a past run of graph %q cannot be read here: %v; run this from the program that has the graph",
		e.Graph, e.Err)
}

// Unwrap returns what is missing.
func (e *UnreadableError) Unwrap() error { return e.Err }
