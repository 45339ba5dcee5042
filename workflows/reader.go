package workflows

import (
	"fmt"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

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
