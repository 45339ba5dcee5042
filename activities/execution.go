package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/host"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

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

// strays refuses an outcome that writes what the run has no field for.
func (e *execution) strays(o pregel.Outcome) error {
	if e.began == nil {
		return nil
	}
	return e.graph.CheckWrites(e.began, &e.req.Task, o.Update)
}

// lostWorkers returns the question to ask when too many workers were lost in a row on this task, and what was last said
// about it. A "no" ends the task; it stands until the failed run is retried, which is a person's word too.
func (e *execution) lostWorkers() (*pregel.Question, verdict) {
	if e.req.Task.Retry != nil { // it runs no node, and asks nobody
		return nil, goOn
	}
	return lostTask{&e.req.Task, e.req.Thread, e.task.Counted(), e.req.Suspect}.ask()
}
