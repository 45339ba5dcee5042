package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
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

// Register registers the nodes on a worker, and what undoes their effects. It takes the worker's one dynamic activity:
// activities registered by name beside it go on working.
func (n *Nodes) Register(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(n.Standing, activity.RegisterOptions{Name: taskrun.StandingActivity})
	r.RegisterActivityWithOptions(n.Compensate, activity.RegisterOptions{Name: taskrun.CompensateActivity})
	r.RegisterActivityWithOptions(n.Rewind, activity.RegisterOptions{Name: taskrun.RewindActivity})
	r.RegisterDynamicActivity(n.Run, activity.DynamicRegisterOptions{})
	r.RegisterActivityWithOptions(n.Segment, activity.RegisterOptions{Name: segment.SegmentActivity})
	r.RegisterActivityWithOptions(n.Verify, activity.RegisterOptions{Name: graphadapter.VerifyActivity})
	r.RegisterActivityWithOptions(n.Control, activity.RegisterOptions{Name: graphadapter.ControlActivity})
	r.RegisterActivityWithOptions(n.Notify, activity.RegisterOptions{Name: graphadapter.NotifyActivity})
	r.RegisterActivityWithOptions(n.Stored, activity.RegisterOptions{Name: segment.StoredActivity})
	r.RegisterActivityWithOptions(n.Plan, activity.RegisterOptions{Name: job.PlanActivity})
	r.RegisterActivityWithOptions(n.End, activity.RegisterOptions{Name: job.EndActivity})
	r.RegisterActivityWithOptions(n.StoredTasks, activity.RegisterOptions{Name: segment.StoredTasksActivity})
}

// Run is the dynamic activity: one execution of one task.
//
// It fails with an application error whose type is one of graphadapter's Node…Type constants. Only
// graphadapter.NodeFailedType is final; every other ending makes the server run the task again, here or elsewhere.
func (n *Nodes) Run(ctx context.Context, args converter.EncodedValues) (pregel.Outcome, error) {
	var req graphadapter.NodeRequest
	if err := args.Get(&req); err != nil {
		return pregel.Outcome{}, temporal.NewNonRetryableApplicationError(
			"the request of a node's activity cannot be read: "+err.Error(), graphadapter.NodeFailedType, err)
	}
	e, err := n.newExecution(ctx, req)
	if err != nil {
		return pregel.Outcome{}, err
	}
	outcome, err := e.run(ctx)
	if over(outcome, err) {
		e.emits.ended(e.repeated)
	}
	return outcome, err
}

// execution is one execution of one task by this worker.
type execution struct {
	req   graphadapter.NodeRequest
	info  activity.Info
	graph *graphadapter.Graph // the root graph; nil when this worker does not have it
	owner *owner
	// converter reads what the heartbeats of other tasks carry.
	converter converter.DataConverter
	inputs    *Inputs
	emits     *publisher
	use       graphadapter.UseGate
	outputs   *Outputs
	specs     *specs
	began     *pregel.Spec // the run's graph, when this worker has another version of it
	// repeated says that it is not the task's first. An activity that was reset counts from 1 again, but has the progress
	// of those before.
	repeated bool
}

func (n *Nodes) newExecution(ctx context.Context, req graphadapter.NodeRequest) (*execution, error) {
	info := activity.GetInfo(ctx)
	var kept graphadapter.NodeProgress
	repeated := info.Attempt > 1
	if activity.HasHeartbeatDetails(ctx) {
		repeated = true
		if err := activity.GetHeartbeatDetails(ctx, &kept); err != nil {
			return nil, fmt.Errorf("the progress of an earlier execution cannot be read: %w", err)
		}
	}
	o, err := newOwner(n.client, info, req, kept)
	if err != nil {
		return nil, err
	}
	return &execution{req: req, info: info, graph: n.byName[req.Graph], owner: o, converter: n.converter, inputs: n.inputs, use: n.use(), specs: &n.specs,
		emits:   n.publisher(ctx, info, req.Thread, &req.Task),
		outputs: n.outputsOf(info.Namespace), repeated: repeated}, nil
}

// run keeps the task's lease while the node runs, and sorts out how it ended.
func (e *execution) run(ctx context.Context) (pregel.Outcome, error) {
	if e.graph == nil {
		return pregel.Outcome{}, e.unserved(ctx, fmt.Errorf("this worker does not serve the graph %q", e.req.Graph))
	}
	if err := e.tooEarly(ctx); err != nil {
		return pregel.Outcome{}, err
	}
	if err := e.fields(ctx); err != nil {
		return pregel.Outcome{}, e.unserved(ctx, err)
	}
	if e.req.Task.Retry != nil {
		return e.retrySubgraph(ctx)
	}
	if question, answer := e.lostWorkers(); question != nil {
		return pregel.Outcome{Questions: []pregel.Question{*question}, Emitted: e.owner.emitted(), Ledger: e.owner.ledger(),
			Kept: taskrun.KeptOf(&e.req.Task, e.owner.Entries())}, nil
	} else if answer == givenUp {
		return pregel.Outcome{}, e.failed(lostFor(e.req.Graph, e.req.Task.Node), e.owner.emitted()...)
	}
	free, err := e.owner.onTrial(ctx)
	if err != nil {
		return pregel.Outcome{}, err
	}
	defer free()
	// The lease is renewed as long as the node runs, and its context ends with it.
	held, release := e.owner.hold(ctx)
	if err := e.fill(held); err != nil {
		release()
		return e.ended(ctx, held, nil, err)
	}
	outcome, err := taskrun.RunAttempt(context.WithValue(held, outputsKey{}, e.outputs), e.graph, &e.req.Task, taskrun.Env{
		Thread: e.req.Thread, Context: e.req.Context, Requester: e.req.Requester, Attempt: e.owner.attempt(), Suspect: e.suspect(), Lost: e.mayGoOn(),
		Journal: e.owner, Lease: e.owner,
		Behind: time.Duration(e.req.Behind) * time.Millisecond, Use: e.use,
		Emit: e.emits.emit(),
		Warn: func(err error) { activity.GetLogger(ctx).Warn("the task goes on without", "error", err) },
	})
	var full *pregel.NodeError
	if err == nil && !outcome.Yielded {
		full = e.makeRoom(held, &outcome)
	}
	release()
	if err == nil {
		err = e.strays(outcome)
	}
	if err != nil {
		return e.ended(ctx, held, outcome.Emitted, err)
	}
	if full != nil {
		return pregel.Outcome{}, e.failed(full, e.owner.emitted()...)
	}
	if outcome.Yielded {
		return e.yielded(outcome.Claim, e.interrupted())
	}
	return e.sized(outcome, e.owner.emitted())
}

// suspect reports whether an earlier execution of this task may have acted outside without a trace: it was repeated
// after a lost worker, the activity or the run was reset, or the thread continues a run that ended badly.
func (e *execution) suspect() bool {
	return e.req.Suspect || e.repeated || e.req.OriginalRunID != e.info.WorkflowExecution.RunID
}

// mayGoOn reports whether an execution of this task was lost, and may have called without a trace. In sync mode a call
// begins when its intent is stored: the ledger knows of it.
func (e *execution) mayGoOn() bool {
	return e.req.Lost || e.req.OriginalRunID != e.info.WorkflowExecution.RunID || e.owner.relaxed() && e.owner.hasLost()
}

// ended turns an attempt's error into the activity's end.
func (e *execution) ended(ctx, held context.Context, emitted []pregel.Emission, err error) (pregel.Outcome, error) {
	var unserved *graphadapter.UnservedError
	var input *InputError
	switch {
	case errors.As(err, &unserved):
		return pregel.Outcome{}, e.unserved(ctx, err)
	case errors.As(err, &input):
		return pregel.Outcome{}, e.givenBack(ctx, graphadapter.NodeInputType, err)
	case errors.Is(err, graphadapter.ErrFenced):
		return pregel.Outcome{}, temporal.NewApplicationError("another execution took this task over",
			graphadapter.NodeStoppedType)
	case held.Err() != nil && isCancelled(context.Cause(held)):
		return pregel.Outcome{}, e.cancelled(ctx, emitted)
	case held.Err() != nil && isSuspended(context.Cause(held)):
		_ = e.owner.countGivenBack(context.WithoutCancel(ctx)) // as below
		return pregel.Outcome{}, temporal.NewApplicationError("an operator paused or reset the activity; the task runs again",
			graphadapter.NodeStoppedType)
	case ctx.Err() != nil:
		return e.stopped(ctx)
	}
	// A policy that is not here has no say; the node was, for it ran.
	policies, _ := e.graph.RetryPolicies(&e.req.Task)
	wait, again := graphadapter.RetryAfter(policies, e.owner.attempt(), err)
	if !again {
		return pregel.Outcome{}, e.failed(graphadapter.FailureOf(e.graphName(), e.req.Task.Node, err),
			append(e.owner.emitted(), emitted...)...)
	}
	return e.again(ctx, wait, emitted, err)
}

// stopped gives the task to another worker, because this one stops.
func (e *execution) stopped(ctx context.Context) (pregel.Outcome, error) {
	if e.owner.hasNews() {
		return e.yielded("", e.interrupted())
	}
	// Not a lost worker; if this cannot be recorded any more it counts as one.
	_ = e.owner.countGivenBack(context.WithoutCancel(ctx))
	return pregel.Outcome{}, temporal.NewApplicationError("this worker stops; another one takes the task over",
		graphadapter.NodeStoppedType)
}

// yielded gives the task back with what it has recorded, for another activity to go on. The server would keep that only
// as long as nobody cancels the run: of an activity that waits for its next attempt it then forgets everything.
func (e *execution) yielded(claim string, b graphadapter.CarryOver) (pregel.Outcome, error) {
	entries := e.owner.Entries()
	b.Suspect, b.Lost = e.suspect(), e.mayGoOn()
	b.Emitted = taskrun.KeepEmitted(b.Emitted, e.owner.most)
	stored, err := graphadapter.EncodeCarryOver(entries, b)
	if err != nil {
		return pregel.Outcome{}, err
	}
	return pregel.Outcome{Yielded: true, Claim: claim, Ledger: stored, Kept: taskrun.KeptOf(&e.req.Task, entries)}, nil
}

// interrupted is what an execution leaves that is no attempt.
func (e *execution) interrupted() graphadapter.CarryOver {
	return graphadapter.CarryOver{Failures: e.owner.attempt() - 1, Begun: true, Emitted: e.owner.emitted()}
}

// cancelled ends the task as cancelled. The SDK does not know of the request, which came as the reply to a heartbeat of
// our own, so it would report a failure: the end is reported without it.
func (e *execution) cancelled(ctx context.Context, emitted []pregel.Emission) error {
	stored := e.owner.ledger()
	emitted = taskrun.KeepEmitted(append(e.owner.emitted(), emitted...), maxFailureBytes-len(stored))
	stopped := temporal.NewCanceledError(graphadapter.NodeCancelled{Emitted: emitted, Ledger: stored,
		Lost: e.owner.hasLost() || e.req.OriginalRunID != e.info.WorkflowExecution.RunID})
	if err := e.owner.client.CompleteActivity(ctx, e.info.TaskToken, nil, stopped); err != nil {
		return stopped
	}
	return activity.ErrResultPending
}

// failed ends the task for good; its ledger goes along, and what it emitted.
func (e *execution) failed(failure *pregel.NodeError, emitted ...pregel.Emission) error {
	stored := encoded(taskrun.Reported(e.owner.Entries()))
	emitted = taskrun.KeepEmitted(emitted, maxFailureBytes-len(stored))
	return temporal.NewApplicationErrorWithOptions(failure.Error(), graphadapter.NodeFailedType,
		temporal.ApplicationErrorOptions{
			NonRetryable: true, Details: []any{graphadapter.NodeFailure{Error: *failure, Emitted: emitted, Ledger: stored}},
		})
}

// unserved gives the task back, for a worker that has its function.
func (e *execution) unserved(ctx context.Context, err error) error {
	return e.givenBack(ctx, graphadapter.NodeUnservedType, err)
}

// givenBack ends this execution without a word about the task: another worker takes it.
func (e *execution) givenBack(ctx context.Context, kind string, err error) error {
	if recorded := e.owner.countGivenBack(ctx); recorded != nil {
		err = errors.Join(err, recorded)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), kind, err)
}

func (e *execution) graphName() string {
	if sub, ok := e.graph.Subgraph(e.req.Task.Graph); ok {
		return sub.Spec.Name
	}
	return e.req.Graph
}

// isSuspended reports whether an operator paused or reset the activity: it is still this execution's until its end.
func isSuspended(err error) bool {
	return errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

func isCancelled(err error) bool {
	var cancelled *temporal.CanceledError
	return errors.As(err, &cancelled)
}
