package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/history"
	"superstep.dev/internal/tracing"
	"superstep.dev/job"
)

// Nodes are the nodes that a worker serves.
type Nodes struct {
	client    client.Client
	byName    map[string]*graphadapter.Graph
	inputs    *Inputs // nil: requests carry all values
	live      Live    // nil: nobody listens
	effects   Effects // nil: nothing finds what threads did
	specs     specs
	converter converter.DataConverter
	gate      *approval.Gate    // nil: no answer to an approval counts
	notifier  approval.Notifier // nil: nobody is told of questions
	planners  map[string]job.Planner
	outputs   map[string]*Outputs // by namespace
	opening   sync.Mutex          // of outputs
	openings  openings
	decoded   decoded
	tracer    *tracing.Tracer // nil: nobody traces
}

// NewNodes returns the nodes of these graphs. The client stores heartbeats: it must be the worker's own.
func NewNodes(c client.Client, graphs []*graphadapter.Graph) *Nodes {
	n := &Nodes{client: c, byName: make(map[string]*graphadapter.Graph, len(graphs)),
		converter: converter.GetDefaultDataConverter(), outputs: map[string]*Outputs{}}
	for _, g := range graphs {
		n.byName[g.Spec.Name] = g
	}
	return n
}

// open begins an execution of an activity, with what the heartbeats of executions before it have stored. An activity that
// was reset counts from 1 again, but has those heartbeats: it is repeated.
func (n *Nodes) open(ctx context.Context, req *graphadapter.NodeRequest) (l *lease, t *host.Task, repeated bool, err error) {
	info := activity.GetInfo(ctx)
	var kept graphadapter.Progress
	repeated = info.Attempt > 1
	if activity.HasHeartbeatDetails(ctx) {
		repeated = true
		if err := activity.GetHeartbeatDetails(ctx, &kept); err != nil {
			return nil, nil, true, fmt.Errorf("the progress of an earlier execution cannot be read: %w", err)
		}
	}
	l = &lease{client: n.client, info: info, began: time.Now(), before: kept.Beat}
	l.details = func() []any { return []any{t.Progress()} }
	t, err = host.Open(req, host.Execution{Attempt: info.Attempt, Repeated: repeated,
		Reset: req.OriginalRunID != info.WorkflowExecution.RunID}, kept, l)
	return l, t, repeated, err
}

// WithInputs makes the nodes find what goes by reference; without it their requests must carry all values. It returns
// n.
func (n *Nodes) WithInputs(i *Inputs) *Nodes {
	n.inputs = i
	return n
}

// WithNextTask says whether the worker has a run's next workflow task follow at once, when the run wants that: then supersteps of sync
// mode need no activity. It returns n.
func (n *Nodes) WithNextTask(follows func() bool) *Nodes {
	n.openings.follows = follows
	return n
}

// WithOpenings makes the worker open segments within workflow tasks while fewer than most nodes run in it, 0 for always, -1
// for never. It returns n.
func (n *Nodes) WithOpenings(most int) *Nodes {
	n.openings.most = most
	return n
}

// Publishing makes the nodes publish what they emit, as they do.
func (n *Nodes) Publishing(live Live) *Nodes {
	n.live = live
	return n
}

// publisher returns nil when nobody wants emissions.
func (n *Nodes) publisher(ctx context.Context, info activity.Info, thread string, t *pregel.Task) *publisher {
	if n.live == nil {
		return nil
	}
	task := graphadapter.LiveTask{Thread: thread, Run: info.WorkflowExecution.RunID, Task: t.Key()}
	return &publisher{ctx: ctx, live: n.live, task: task, info: info}
}

// Effects reads what a thread did outside, from a run back to where it last finished, or as far as the server goes. gone
// counts the runs before that which the server has no more.
type Effects func(ctx context.Context, run Run, graph string) (found *past.Effects, gone int, err error)

// WithEffects makes the worker find what the threads of its graphs did; without it their runs cannot undo effects. It
// returns n.
func (n *Nodes) WithEffects(e Effects) *Nodes {
	n.effects = e
	return n
}

// WithSpecs makes the worker compare the fields of its graphs with those of the runs, when their versions are not the same.
// It returns n.
func (n *Nodes) WithSpecs(s Specs) *Nodes {
	n.specs.ask = s
	return n
}

// WithGate makes the worker verify answers to approvals; without a gate it refuses all of them. It returns n.
func (n *Nodes) WithGate(g *approval.Gate) *Nodes {
	n.gate = g
	return n
}

// use is how nodes ask the gate right before they do what was approved; nil without one.
func (n *Nodes) use() graphadapter.UseGate {
	if n.gate == nil {
		return nil
	}
	return func(ctx context.Context, check approval.UseCheck) (approval.Ruling, error) {
		ruling, err := n.gate.Use(ctx, check)
		if ruling.Cause != nil {
			activity.GetLogger(ctx).Error("the gate cannot be asked", "thread", check.Thread, "node", check.Node, "error", ruling.Cause)
		}
		return ruling, err
	}
}

// WithNotifier makes the worker tell people outside of questions; nil tells nobody. It returns n.
func (n *Nodes) WithNotifier(to approval.Notifier) *Nodes {
	n.notifier = to
	return n
}

// WithPlanners makes the worker plan for these leaders, by their names; calls for others wait for another worker. It
// returns n.
func (n *Nodes) WithPlanners(planners map[string]job.Planner) *Nodes {
	n.planners = planners
	return n
}

// WithConverter makes the worker read stored details with the converter of its client, when that is not Temporal's
// default. It returns n.
func (n *Nodes) WithConverter(c converter.DataConverter) *Nodes {
	n.converter = c
	return n
}

// WithTracer makes the worker tell of what its nodes do; nil tells nobody. It returns n.
func (n *Nodes) WithTracer(t *tracing.Tracer) *Nodes {
	n.tracer = t
	return n
}

// outputsOf returns what reads the outputs of a namespace.
func (n *Nodes) outputsOf(namespace string) *Outputs {
	n.opening.Lock()
	defer n.opening.Unlock()
	if n.outputs[namespace] == nil {
		n.outputs[namespace] = &Outputs{cache: newCache(outputBytes),
			tail: history.Tail{Service: n.client.WorkflowService(), Namespace: namespace, Converter: n.converter}}
	}
	return n.outputs[namespace]
}
