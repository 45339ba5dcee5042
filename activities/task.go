package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/job"
	"superstep.dev/thread/secret"
	"superstep.dev/thread/storage"
)

// Register registers the nodes on a worker, and what undoes their effects. It takes the worker's one dynamic activity:
// activities registered by name beside it go on working.
func (n *Nodes) Register(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(n.Standing, activity.RegisterOptions{Name: taskrun.StandingActivity})
	r.RegisterActivityWithOptions(n.Compensate, activity.RegisterOptions{Name: taskrun.CompensateActivity})
	r.RegisterActivityWithOptions(n.Rewind, activity.RegisterOptions{Name: taskrun.RewindActivity})
	r.RegisterDynamicActivity(n.Run, activity.DynamicRegisterOptions{})
	r.RegisterActivityWithOptions(n.Open, activity.RegisterOptions{Name: segment.OpeningActivity})
	r.RegisterActivityWithOptions(n.Segment, activity.RegisterOptions{Name: segment.SegmentActivity})
	r.RegisterActivityWithOptions(n.Verify, activity.RegisterOptions{Name: graphadapter.VerifyActivity})
	r.RegisterActivityWithOptions(n.Control, activity.RegisterOptions{Name: graphadapter.ControlActivity})
	r.RegisterActivityWithOptions(n.Notify, activity.RegisterOptions{Name: graphadapter.NotifyActivity})
	r.RegisterActivityWithOptions(n.Stored, activity.RegisterOptions{Name: segment.StoredActivity})
	r.RegisterActivityWithOptions(n.Plan, activity.RegisterOptions{Name: job.PlanActivity})
	r.RegisterActivityWithOptions(n.End, activity.RegisterOptions{Name: job.EndActivity})
}

// unreadableFor is how long a task waits that a worker could not read for want of a key: for a worker that has the key.
const unreadableFor = time.Second

// Run is the dynamic activity: one execution of one task.
//
// It fails with an application error whose type is one of graphadapter's Node…Type constants. Only
// graphadapter.NodeFailedType is final; every other ending makes the server run the task again, here or elsewhere.
func (n *Nodes) Run(ctx context.Context, args converter.EncodedValues) (pregel.Outcome, error) {
	defer n.openings.during()()
	var req graphadapter.NodeRequest
	if err := args.Get(&req); secret.Concerns(err) {
		return pregel.Outcome{}, temporal.NewApplicationErrorWithOptions(err.Error(), graphadapter.NodeUnservedType,
			temporal.ApplicationErrorOptions{NextRetryDelay: unreadableFor})
	} else if err != nil {
		return pregel.Outcome{}, temporal.NewNonRetryableApplicationError(
			"the request of a node's activity cannot be read: "+err.Error(), graphadapter.NodeFailedType, err)
	}
	e, err := n.newExecution(ctx, req)
	if err != nil {
		return pregel.Outcome{}, err
	}
	outcome, err := e.run(ctx)
	e.recovery.ended(err)
	outcome.Took = e.took().Milliseconds()
	if over(outcome, err) {
		e.emits.ended(context.WithoutCancel(ctx), e.repeated)
	}
	return outcome, err
}

// run keeps the task's lease while the node runs, and sorts out how it ended.
func (e *execution) run(ctx context.Context) (pregel.Outcome, error) {
	if e.graph == nil {
		return pregel.Outcome{}, e.unserved(ctx, fmt.Errorf("this worker does not serve the graph %q", e.req.Graph))
	}
	if early := e.task.Early(); early != nil {
		_ = e.countGivenBack(ctx, e.task.Tally) // not recorded, it counts as a lost worker, of which a person hears only after many
		return pregel.Outcome{}, retryIn(early.After, early.Why)
	}
	if err := cmp.Or(e.fields(ctx), e.graph.CheckCalls(&e.req.Task, e.task.Entries())); err != nil {
		return pregel.Outcome{}, e.unserved(ctx, err)
	}
	if question, answer := e.lostWorkers(); question != nil {
		return pregel.Outcome{Questions: []pregel.Question{*question}, Emitted: e.task.CarryOver().Emitted, Ledger: e.task.Ledger(),
			Kept: taskrun.KeptOf(&e.req.Task, e.task.Entries()), Spent: taskrun.SpentOf(&e.req.Task, e.task.Entries())}, nil
	} else if answer == givenUp {
		return pregel.Outcome{}, e.failed(lostFor(e.req.Graph, e.req.Task.Node), e.task.CarryOver().Emitted)
	}
	free, err := e.onTrial(ctx, e.task.Tally)
	if err != nil {
		return pregel.Outcome{}, err
	}
	defer free()
	e.recovery = e.recovers(ctx, e.task.Tally, e.req.Graph) // before the server hears of this execution
	// The lease is renewed as long as the node runs, and its context ends with it.
	held, release := e.hold(ctx, e.task.Tally)
	defer release()
	if e.traced = e.nodes.tracerOf(e.req.Trace, &e.req.Task, e.req.Graph, e.req.Thread); e.traced != nil {
		e.traced.of, e.traced.under = ofTask(e.info), true
		if e.recovery != nil {
			e.traced.tellLost(e.lease, e.task.Attempt())
		}
	}
	outcome, full, err := e.perform(ctx, held)
	if err == nil && full == nil && !outcome.Yielded && outcome.Error == nil {
		if outcome, err = e.sized(outcome, len(e.task.CarryOver().Emitted)); err != nil {
			return outcome, err
		}
		if err = e.hand(held, e.nodes.converter, outcome, outcomeBytes(&outcome)); err == nil || errors.Is(err, activity.ErrResultPending) {
			return outcome, err
		}
	}
	release()
	switch {
	case err != nil:
		return e.ended(ctx, held, outcome.Emitted, err)
	case full != nil:
		return pregel.Outcome{}, e.failed(full, e.task.CarryOver().Emitted)
	case outcome.Error != nil:
		return pregel.Outcome{}, e.failed(outcome.Error, outcome.Emitted)
	}
	return outcome, nil // yielded
}

// perform runs the task under its lease. full says why its result cannot be returned.
func (e *execution) perform(ctx, held context.Context) (outcome pregel.Outcome, full *pregel.NodeError, err error) {
	if err := e.fill(held); err != nil {
		return outcome, nil, err
	}
	outcome, err = e.task.Run(context.WithValue(held, outputsKey{}, e.nodes.outputsOf(e.info.Namespace)), e.graph, taskrun.Env{
		Use: e.nodes.use(), Emit: e.emits.emit(), Duplicate: duplicates(ctx, e.req.Graph),
		Tracer: e.traced.env(),
		Warn:   func(err error) { activity.GetLogger(ctx).Warn("the task goes on without", "error", err) },
	})
	if err == nil && !outcome.Yielded && outcome.Error == nil {
		full, err = e.makeRoom(held, &outcome), e.strays(&outcome)
	}
	return outcome, full, err
}

// ended turns the reason for which the task did not end into the activity's end.
func (e *execution) ended(ctx, held context.Context, emitted []pregel.Emission, err error) (pregel.Outcome, error) {
	var unserved *graphadapter.UnservedError
	var input *InputError
	var again *host.RetryError
	switch {
	case errors.As(err, &unserved):
		return pregel.Outcome{}, e.unserved(ctx, err)
	case errors.As(err, &input):
		return pregel.Outcome{}, e.givenBack(ctx, e.task.Tally, graphadapter.NodeInputType, err)
	case errors.Is(err, graphadapter.ErrFenced):
		return pregel.Outcome{}, temporal.NewApplicationError("another execution took this task over",
			graphadapter.NodeStoppedType)
	case held.Err() != nil && isCancelled(context.Cause(held)):
		return pregel.Outcome{}, e.cancelled(ctx, emitted)
	case held.Err() != nil && isSuspended(context.Cause(held)):
		_ = e.countGivenBack(context.WithoutCancel(ctx), e.task.Tally) // as below
		return pregel.Outcome{}, temporal.NewApplicationError("an operator paused or reset the activity; the task runs again",
			graphadapter.NodeStoppedType)
	case ctx.Err() != nil && e.task.HasNews():
		return e.task.Yield(true)
	case ctx.Err() != nil:
		// Not a lost worker; if this cannot be recorded any more it counts as one.
		_ = e.countGivenBack(context.WithoutCancel(ctx), e.task.Tally)
		return pregel.Outcome{}, temporal.NewApplicationError("this worker stops; another one takes the task over",
			graphadapter.NodeStoppedType)
	case errors.As(err, &again):
		return pregel.Outcome{}, retryIn(again.After, again.Why)
	}
	return pregel.Outcome{}, temporal.NewApplicationErrorWithCause(err.Error(), graphadapter.NodeStoppedType, err)
}

// cancelled ends the task as cancelled.
func (e *execution) cancelled(ctx context.Context, emitted []pregel.Emission) error {
	stored := e.task.Ledger()
	return e.cancelledWith(ctx, graphadapter.NodeCancelled{Emitted: taskrun.KeepEmitted(emitted, maxFailureBytes-len(stored)),
		Ledger: stored, Lost: e.task.HasLost() || e.req.OriginalRunID != e.info.WorkflowExecution.RunID})
}

// cancelledWith ends the activity as cancelled. The SDK does not know of the request, which came as the reply to a heartbeat
// of our own, so it would report a failure: the end is reported without it.
func (l *lease) cancelledWith(ctx context.Context, details ...any) error {
	stopped := temporal.NewCanceledError(details...)
	if err := l.client.CompleteActivity(storage.Within(ctx, l.info.Namespace, l.info.WorkflowExecution.ID), l.info.TaskToken, nil, stopped); err != nil {
		return stopped
	}
	return activity.ErrResultPending
}

// execution is one execution of one task by this worker.
type execution struct {
	*lease
	task  *host.Task
	req   graphadapter.NodeRequest
	graph *graphadapter.Graph // the root graph; nil when this worker does not have it
	nodes *Nodes
	emits *publisher
	began *pregel.Spec // the run's graph, when this worker has another version of it
	// repeated says that it is not the task's first.
	repeated bool
	recovery *recovery // nil until it is counted
	traced   *traced   // nil: nobody traces the task
}

func (n *Nodes) newExecution(ctx context.Context, req graphadapter.NodeRequest) (e *execution, err error) {
	e = &execution{req: req, graph: n.byName[req.Graph], nodes: n}
	if e.lease, e.task, e.repeated, err = n.open(ctx, &e.req); err != nil {
		return nil, err
	}
	e.emits = n.publisher(ctx, e.info, req.Thread, &e.req.Task)
	return e, nil
}

// failed ends the task for good; its ledger goes along, and what it emitted.
func (e *execution) failed(failure *pregel.NodeError, emitted []pregel.Emission) error {
	stored, _ := graphadapter.EncodeLedger(taskrun.Reported(e.task.Entries())) // all of them are JSON
	emitted = taskrun.KeepEmitted(emitted, maxFailureBytes-len(stored))
	return temporal.NewApplicationErrorWithOptions(failure.Error(), graphadapter.NodeFailedType,
		temporal.ApplicationErrorOptions{
			NonRetryable: true, Details: []any{graphadapter.NodeFailure{Error: *failure, Emitted: emitted, Ledger: stored}},
		})
}

// unserved gives the task back, for a worker that has its function.
func (e *execution) unserved(ctx context.Context, err error) error {
	return e.givenBack(ctx, e.task.Tally, graphadapter.NodeUnservedType, err)
}

// fill gives the task what it reads. The lease is kept meanwhile: a replay may take seconds.
func (e *execution) fill(held context.Context) error {
	if len(e.req.References) == 0 {
		return nil
	}
	err := errors.New("its nodes are registered without inputs (Nodes.WithInputs)")
	if e.nodes.inputs != nil {
		err = e.nodes.inputs.fill(held, e.lease.run(), &e.req)
	}
	switch {
	case err == nil:
		return nil
	case held.Err() != nil:
		return context.Cause(held)
	}
	return &InputError{Graph: e.graph.NameOf(&e.req.Task), Node: e.req.Task.Node, Thread: e.req.Thread,
		Run: e.info.WorkflowExecution.RunID, Err: err}
}

// fields finds out whether this worker's version of the graph fits the run's.
func (e *execution) fields(ctx context.Context) (err error) {
	if e.began, err = e.nodes.specs.began(ctx, e.graph, e.lease.run(), e.req.Print); err != nil || e.began == nil {
		return err
	}
	return e.graph.CheckFields(e.began)
}

// strays refuses an outcome for which the run has no field or no node.
func (e *execution) strays(o *pregel.Outcome) error {
	if e.began == nil {
		return nil
	}
	return e.graph.CheckOutcome(e.began, &e.req.Task, o)
}

// lostWorkers returns the question to ask when too many workers were lost in a row on this task, and what was last said
// about it. A "no" ends the task; it stands until the failed run is retried, which is a person's word too.
func (e *execution) lostWorkers() (*pregel.Question, verdict) {
	if e.req.Task.Retry != nil { // it runs no node, and asks nobody
		return nil, goOn
	}
	return lostTask{&e.req.Task, e.req.Thread, e.task.Counted(), e.req.Suspect}.ask()
}

// took is how long the task had this worker; with executions before, how long it had all of them, and what lay between.
func (e *execution) took() time.Duration {
	if e.info.Attempt > 1 {
		return time.Since(e.info.ScheduledTime)
	}
	return time.Since(e.lease.began)
}
