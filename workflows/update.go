package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// edit is an accepted update of the state until its outcome is known.
type edit struct {
	req   UpdateStateRequest
	done  bool
	reply UpdateStateReply
	err   error
}

// made is a record that an update made, of the root graph ("") or of the subgraph with that namespace.
type made struct {
	namespace string
	record    *pregel.Record
}

// router evaluates the branches of a node in whose name the state is updated.
type router func(*pregel.Task) ([]pregel.Target, error)

// onUpdateState applies an update that the validator let through and returns what came of it: all of it, or nothing.
func (r *run) onUpdateState(ctx workflow.Context, req UpdateStateRequest) (UpdateStateReply, error) {
	e := &edit{req: req}
	r.inbox.edits = append(r.inbox.edits, e)
	// The outcome is known to whoever asked also when the run is cancelled meanwhile.
	wait, _ := workflow.NewDisconnectedContext(ctx)
	if err := workflow.Await(wait, func() bool { return e.done }); err != nil {
		return UpdateStateReply{}, err
	}
	return e.reply, e.err
}

// applyEdits applies the updates that were accepted, in that order.
func (r *run) applyEdits(ctx workflow.Context) {
	for len(r.inbox.edits) > 0 {
		e := r.inbox.edits[0]
		if ctx.Err() != nil {
			e.err = refuse(ErrTypeBusy, "the run was cancelled before the update: continue the thread, then update it again")
		} else {
			e.reply, e.err = r.update(ctx, e.req)
		}
		e.done = true
		r.inbox.edits = r.inbox.edits[1:]
	}
}

// update applies an update to a copy of the thread, which takes the thread's place when all of it could be applied.
func (r *run) update(ctx workflow.Context, req UpdateStateRequest) (UpdateStateReply, error) {
	thread, err := r.earlier(req.State)
	if err != nil {
		return UpdateStateReply{}, refuse(ErrTypeBadUpdate, "%v", err)
	}
	r.updates++
	records, err := r.edit(thread, req, r.routes(ctx))
	if err != nil {
		return UpdateStateReply{}, refuse(ErrTypeBadUpdate, "the state is as it was: %v", err)
	}
	r.thread, r.loop, r.drained, r.suspectStep = thread, nil, "", -1
	r.inbox.reopen(r.program.OpenQuestions(thread))
	r.began(ctx)
	for _, m := range records {
		if m.namespace == "" {
			r.lines.add(r.program, m.record)
		}
		if r.sink != nil {
			r.sink.Edited(position(ctx), m.namespace, m.record)
		}
	}
	r.ended(ctx)
	return UpdateStateReply{Checkpoint: headID(thread), Next: r.program.Next(thread.Head)}, nil
}

// edit applies the updates to a thread, one checkpoint for each list.
func (r *run) edit(thread *pregel.Thread, req UpdateStateRequest, route router) ([]made, error) {
	var records []made
	for _, updates := range req.Edits {
		m, err := r.editOnce(thread, req.Within, updates, route)
		if err != nil {
			return nil, err
		}
		records = append(records, m)
	}
	return records, nil
}

func (r *run) editOnce(thread *pregel.Thread, within []string, updates []graphadapter.StateUpdate, route router) (made, error) {
	if len(updates) != 1 {
		return made{}, errors.New("several updates of one checkpoint are not supported yet")
	}
	var e *pregel.Edit
	var err error
	m := made{}
	if len(within) == 0 {
		e, err = r.program.Edit(thread, updates[0].Values, updates[0].AsNode)
	} else if _, m.namespace, err = r.program.Within(thread, within); err == nil {
		e, err = r.program.EditWithin(thread, within, updates[0].Values, updates[0].AsNode)
	}
	if err != nil {
		return made{}, err
	}
	var targets []pregel.Target
	if task := e.Task(); task != nil {
		if targets, err = route(task); err != nil {
			return made{}, err
		}
	}
	m.record, err = e.Apply(targets)
	return m, err
}

// routes evaluates branches where the graph's functions are: by the node's activity.
func (r *run) routes(ctx workflow.Context) router {
	return func(task *pregel.Task) ([]pregel.Target, error) {
		req := r.request(ctx, task)
		if size := requestSize(req); size > maxRequestBytes {
			return nil, r.tooLarge(task, size).Error
		}
		options := r.activityOptions(task)
		options.ActivityID = fmt.Sprintf("update %d/%s", r.updates, activityID(task))
		options.Summary = fmt.Sprintf("update %d %s", r.updates, task.Path)
		var outcome pregel.Outcome
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), r.in.Graph+"."+activityNode(task), req).
			Get(ctx, &outcome)
		if err != nil {
			outcome = failedOutcome(r.program.Spec.Name, task, err)
		}
		switch {
		case outcome.Error != nil:
			return nil, outcome.Error
		case len(outcome.Questions) > 0:
			return nil, fmt.Errorf("a branch of node %q asks a question, which an update cannot wait for", task.Node)
		}
		return outcome.Routes, nil
	}
}

// errNotEvaluated ends the trial of an update at its first branch.
var errNotEvaluated = errors.New("branches are not evaluated")

// updateRefusal says why an update of the state cannot be taken; nil means it can, as far as can be known without
// evaluating branches. It changes nothing.
func (r *run) updateRefusal(req UpdateStateRequest) error {
	if err := boundedUpdate(req); err != nil {
		return err
	}
	if !r.standing() || r.inbox.waiting() {
		return refuse(ErrTypeBusy, "the run is under way: wait until it waits or stands still, or drain it, then update its state")
	}
	if len(r.inbox.edits) >= maxQueuedUpdates {
		return refuse(ErrTypeBusy, "%d updates of the state wait already: send this one again", len(r.inbox.edits))
	}
	thread, err := r.earlier(req.State)
	if err == nil && len(r.inbox.edits) == 0 {
		_, err = r.edit(thread, req, func(*pregel.Task) ([]pregel.Target, error) { return nil, errNotEvaluated })
	}
	if err != nil && !errors.Is(err, errNotEvaluated) {
		return refuse(ErrTypeBadUpdate, "%v", err)
	}
	return nil
}

// standing reports whether the run stands still, so that it takes something new to do.
func (r *run) standing() bool { return r.status == StatusWaiting || r.status == StatusStopped }
