package serving

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"superstep.dev/activities"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/attributes"
	"superstep.dev/internal/codec"
	"superstep.dev/internal/history"
	"superstep.dev/internal/lateness"
	"superstep.dev/internal/nexttask"
	"superstep.dev/internal/remote"
	"superstep.dev/internal/tracing"
	"superstep.dev/job"
	"superstep.dev/thread/live"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows"
	"superstep.dev/workflows/leading"
	"superstep.dev/workflows/protocol"
)

// Config is what a worker serves, and how.
type Config struct {
	Graphs        []*graphadapter.Graph
	Leaders       []workflows.Leader
	Planners      map[string]job.Planner  // by the leaders' names
	DataConverter converter.DataConverter // nil for Temporal's default
	Storage       *storage.Storage        // nil for none
	InputBytes    int                     // of large values that are kept in memory; 0 for the default
	NodesOnly     bool                    // no workflows
	LostAfter     time.Duration           // as [workflows.Config.LostAfter]
	Openings      int                     // as [activities.Nodes.WithOpenings]
	NextTask      func() bool             // as [activities.Nodes.WithNextTask]
	Gate          *approval.Gate
	AuditSigner   approval.HeadSigner
	Notify        approval.Notifier
	Transport     live.Transport
	Tracer        *tracing.Tracer // nil for none
}

// Register registers workflows and activities: the workflow keeps what it sends by reference where the nodes look first, and
// a replay of the workflow finds what is not there.
func Register(r worker.Registry, c client.Client, cfg Config) {
	if cfg.DataConverter == nil {
		cfg.DataConverter = codec.Open()
	}
	cfg.DataConverter = cfg.Storage.Converter(cfg.DataConverter)
	past := replays{c, cfg.DataConverter, cfg.Graphs}
	inputs := activities.NewInputs(cfg.InputBytes, past.values)
	if !cfg.NodesOnly {
		watch := attributes.NewWatch(c.WorkflowService(), c.OperatorService())
		find := func(namespace string) (protocol.Found, error) {
			found, err := watch.Found(namespace)
			found.Notices, found.Storage = cfg.Notify != nil, cfg.Storage != nil
			return found, err
		}
		runs := workflows.Config{Values: inputs, Notices: cfg.Notify != nil, Heads: cfg.AuditSigner,
			Governs: cfg.Gate.Governs, May: mayOf(cfg.Gate), Leaders: cfg.Leaders, LostAfter: cfg.LostAfter, Late: lateness.Now, Find: find, NextTask: nexttask.Want}
		if cfg.Tracer != nil {
			runs.Spans = cfg.Tracer
		}
		workflows.NewGraphs(cfg.Graphs, runs).Register(r)
		leading.New(find, cfg.Leaders...).WithSpans(runs.Spans).Register(r)
	}
	nodes := activities.NewNodes(c, cfg.Graphs).WithInputs(inputs).WithEffects(past.effects).WithSpecs(past.spec).
		WithConverter(cfg.DataConverter).WithOpenings(cfg.Openings).WithNextTask(cfg.NextTask).WithGate(cfg.Gate).WithNotifier(cfg.Notify).WithPlanners(cfg.Planners).
		WithTracer(cfg.Tracer)
	if cfg.Transport != nil {
		nodes.Publishing(cfg.Transport)
	}
	nodes.Register(r)
}

// mayWithin bounds a question to the gate within a query.
const mayWithin = time.Second

// mayOf asks a gate in passing: what counts is what it says when the run asks.
func mayOf(g *approval.Gate) func(approval.ControlCheck) approval.Ruling {
	return func(c approval.ControlCheck) approval.Ruling {
		ctx, cancel := context.WithTimeout(context.Background(), mayWithin)
		defer cancel()
		ruling, err := g.Control(ctx, c)
		if err != nil {
			return approval.Ruling{Code: approval.CodeUnavailable, Reason: "the gate does not answer now: see the worker's log"}
		}
		return ruling
	}
}

// replays go through the runs of a worker's graphs.
type replays struct {
	client    client.Client
	converter converter.DataConverter
	graphs    []*graphadapter.Graph
}

// values calls pass with every value that a run has sent by reference.
func (r replays) values(ctx context.Context, run activities.Run, pass func(pregel.Value)) error {
	tail := history.Tail{Service: r.client.WorkflowService(), Namespace: run.Namespace, Converter: r.converter}
	graphs := workflows.NewGraphs(r.graphs, workflows.Config{Values: told(pass)})
	return tail.Replay(ctx, run.WorkflowID, run.RunID, sender{graphs})
}

// effects reads what a thread did outside since it last finished, from one of its runs back.
func (r replays) effects(ctx context.Context, run activities.Run, graph string) (*past.Effects, int, error) {
	tail := history.Tail{Service: r.client.WorkflowService(), Namespace: run.Namespace, Converter: r.converter}
	walk := remote.EffectsWalk{Tail: &tail, Thread: run.WorkflowID}
	for _, g := range r.graphs {
		if g.Spec.Name == graph {
			walk.Graph = g
		}
	}
	found, err := walk.Back(ctx, run.RunID, (*past.Effects).Finished)
	return found, walk.Gone, err
}

// spec asks a run which graph it goes on with.
func (r replays) spec(ctx context.Context, run activities.Run) (*pregel.Spec, error) {
	value, err := r.client.QueryWorkflow(ctx, run.WorkflowID, run.RunID, protocol.QueryGraph)
	if err != nil {
		return nil, err
	}
	var spec *pregel.Spec
	err = value.Get(&spec)
	return spec, err
}

// told is told of all values alike: to a replay all of them are past.
type told func(pregel.Value)

func (p told) Sent(_ string, v pregel.Value) { p(v) }

func (p told) Passed(v pregel.Value) { p(v) }

// sender is the workflow code that a replay runs for what it sends.
type sender struct{ *workflows.Graphs }

// Err says nothing: what goes wrong is in the replay's own error.
func (sender) Err() error { return nil }
