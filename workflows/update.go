package workflows

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// edit is an accepted update of the state until its outcome is known.
type edit struct {
	req   protocol.UpdateStateRequest
	done  bool
	reply protocol.UpdateStateReply
	err   error
}

// router evaluates the branches of a node in whose name the state is updated.
type router func(*pregel.Task) ([]pregel.Target, error)

// onUpdateState applies an update that the validator let through and returns what came of it: all of it, or nothing.
func (r *run) onUpdateState(ctx workflow.Context, req protocol.UpdateStateRequest) (protocol.UpdateStateReply, error) {
	e := &edit{req: req}
	act := r.updating(req, req.Asked != nil && req.Asked.Token != "", e)
	turn := r.take(ctx, request{Command: act})
	if before, ok := turn.Reply.(protocol.UpdateStateReply); ok || turn.Err != nil {
		return before, turn.Err
	}
	// The outcome is known to whoever asked also when the run is cancelled meanwhile.
	wait, _ := workflow.NewDisconnectedContext(ctx)
	if err := workflow.Await(wait, func() bool { return e.done }); err != nil {
		return protocol.UpdateStateReply{}, err
	}
	if e.err == nil {
		r.life.Done(act, e.reply)
	}
	return e.reply, e.err
}

// updating is an update of the state as a command; e is the edit that comes of it. May is as for an invocation.
func (r *run) updating(req protocol.UpdateStateRequest, may bool, e *edit) life.Act {
	act := life.Act{Name: protocol.UpdateState, ID: req.ID, By: nameOf(req.Asked), Token: tokenOf(req.Asked), Later: true,
		What: approval.Control{Op: approval.OpUpdate}, Read: func(stored []byte) any {
			var before protocol.UpdateStateReply
			_ = json.Unmarshal(stored, &before) // which Done wrote
			return before
		}}
	if may {
		act.May = func() error { return r.updateRefusal(req) }
	}
	act.Do = func(by life.Actor) any {
		e.req.Asked = provenBy(req.Asked, by)
		r.inbox.edits = append(r.inbox.edits, e)
		return nil
	}
	return act
}

// applyEdits applies the updates that were accepted, in that order.
func (r *run) applyEdits(ctx workflow.Context) {
	for len(r.inbox.edits) > 0 {
		e := r.inbox.edits[0]
		if ctx.Err() != nil {
			e.err = protocol.Refuse(protocol.ErrTypeBusy, "the run was cancelled before the update: continue the thread, then update it again")
		} else {
			e.reply, e.err = r.update(ctx, e.req)
		}
		e.done = true
		r.inbox.edits = r.inbox.edits[1:]
	}
}

// update applies an update: first to a copy of the thread, with the branches evaluated by activities, and when all of it
// could be applied to the thread itself.
func (r *run) update(ctx workflow.Context, req protocol.UpdateStateRequest) (protocol.UpdateStateReply, error) {
	r.updates++
	trial, err := r.earlier(req.State)
	var routes [][]pregel.Target
	if err == nil {
		err = r.edit(trial, req, func(task *pregel.Task) ([]pregel.Target, error) {
			targets, err := r.routes(ctx, task)
			routes = append(routes, targets)
			return targets, err
		}, nil)
	}
	thread := trial
	if err == nil {
		thread, err = r.earlier(req.State)
	}
	if err != nil {
		return protocol.UpdateStateReply{}, r.refuseBad("the state is as it was: ", err)
	}
	return r.commit(ctx, thread, req, routes)
}

// commit makes an update that can be applied, with the outcome of its branches.
func (r *run) commit(ctx workflow.Context, thread *pregel.Thread, req protocol.UpdateStateRequest, routes [][]pregel.Target) (protocol.UpdateStateReply, error) {
	r.thread, r.loop, r.failure, r.drained, r.suspectStep = thread, nil, nil, "", -1
	r.began(ctx, graphadapter.DurabilitySync) // an update's checkpoints are kept in every mode
	known := func(*pregel.Task) ([]pregel.Target, error) {
		next := routes[0]
		routes = routes[1:]
		return next, nil
	}
	err := r.edit(thread, req, known, func(namespace string, record *pregel.Record) {
		if namespace == "" {
			r.lines.add(r.program, record, workflow.Now(ctx))
		}
		if r.sink != nil {
			r.sink.Edited(position(ctx), namespace, record)
		}
	})
	if err != nil { // the same could be applied to the copy
		return protocol.UpdateStateReply{}, protocol.Refuse(protocol.ErrTypeBadUpdate, "%v", err)
	}
	r.life.Reopen(r.program.OpenQuestions(thread))
	r.note(ctx, life.EntryUpdated(actorOf(req.Asked), req.Edits, headID(thread), reasonOf(req.Asked)))
	r.ended(ctx)
	return protocol.UpdateStateReply{Checkpoint: headID(thread), Next: r.program.Next(thread.Head)}, nil
}

// edit applies the updates to a thread, one checkpoint for each list, and reports each to made unless that is nil.
func (r *run) edit(thread *pregel.Thread, req protocol.UpdateStateRequest, route router, made func(namespace string, r *pregel.Record)) error {
	for _, updates := range req.Edits {
		e, err := r.program.Edit(thread, req.Within, updates)
		if err != nil {
			return err
		}
		var routes [][]pregel.Target
		for _, task := range e.Tasks() {
			targets, err := route(task)
			if err != nil {
				return err
			}
			routes = append(routes, targets)
		}
		records, err := e.Apply(routes)
		if err != nil {
			return err
		}
		for _, record := range records {
			if made != nil {
				made(e.Namespace(), record)
			}
		}
	}
	return nil
}

// routes evaluates a node's branches where the graph's functions are: by the node's activity.
func (r *run) routes(ctx workflow.Context, task *pregel.Task) ([]pregel.Target, error) {
	req := r.request(ctx, task)
	if refused := r.tooLarge(req, requestSize(req)); refused != nil {
		return nil, refused
	}
	options := r.activityOptions(task)
	options.ActivityID = fmt.Sprintf("%s%d/%s", graphadapter.UpdateActivity, r.updates, protocol.ActivityID(task))
	options.Summary = fmt.Sprintf("%s%d %s", graphadapter.UpdateActivity, r.updates, task.Path)
	var outcome pregel.Outcome
	name := r.in.Graph + "." + activityNode(task)
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, req).Get(ctx, &outcome)
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

// errNotEvaluated ends the trial of an update at its first branch.
var errNotEvaluated = errors.New("branches are not evaluated")

// updateRefusal says why an update of the state cannot be taken; nil means it can, as far as can be known without
// evaluating branches. It changes nothing.
func (r *run) updateRefusal(req protocol.UpdateStateRequest) error {
	if err := boundedUpdate(req); err != nil {
		return err
	}
	if err := boundedAsked(req.Asked); err != nil {
		return err
	}
	if r.life.State.Paused != nil && r.waiting() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run has answers to go on with when it is unpaused: unpause it, then update its state")
	}
	if !r.standing() || r.waiting() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is under way: wait until it waits or stands still, or drain it, then update its state")
	}
	if len(r.inbox.edits) >= protocol.MaxQueuedUpdates {
		return protocol.Refuse(protocol.ErrTypeBusy, "%d updates of the state wait already: send this one again", len(r.inbox.edits))
	}
	if r.served != nil {
		if err := r.served.CheckUpdates(req.Within, req.Edits); err != nil {
			return protocol.Refuse(protocol.ErrTypeBadUpdate, "%v", err)
		}
	}
	thread, err := r.earlier(req.State)
	if err == nil && len(r.inbox.edits) == 0 {
		err = r.edit(thread, req, func(*pregel.Task) ([]pregel.Target, error) { return nil, errNotEvaluated }, nil)
	}
	if err != nil && !errors.Is(err, errNotEvaluated) {
		return r.refuseBad("", err)
	}
	return nil
}
