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

// updates change the state of a thread from outside.
type updates struct {
	*report
	doubt *suspicion
	count int // that were begun, for the ids of their activities
}

// router evaluates the branches of a node in whose name the state is updated.
type router func(*pregel.Task) ([]pregel.Target, error)

// onUpdateState applies an update that the validator let through and returns what came of it: all of it, or nothing.
func (u *updates) onUpdateState(ctx workflow.Context, req protocol.UpdateStateRequest) (protocol.UpdateStateReply, error) {
	e := &edit{req: req}
	act := u.updating(req, req.Asked.Token != "", e)
	turn := u.take(ctx, request{Command: act})
	if before, ok := turn.Reply.(protocol.UpdateStateReply); ok || turn.Err != nil {
		return before, turn.Err
	}
	// The outcome is known to whoever asked also when the run is cancelled meanwhile.
	wait, _ := workflow.NewDisconnectedContext(ctx)
	if err := workflow.Await(wait, func() bool { return e.done }); err != nil {
		return protocol.UpdateStateReply{}, err
	}
	if e.err == nil {
		u.life.Done(act, e.reply)
	}
	return e.reply, e.err
}

// updating is an update of the state as a command; e is the edit that comes of it. May is as for an invocation.
func (u *updates) updating(req protocol.UpdateStateRequest, may bool, e *edit) life.Act {
	act := life.Act{Name: protocol.UpdateState, ID: req.ID, By: req.Asked.By, Token: req.Asked.Token, Later: true,
		What: approval.Control{Op: approval.OpUpdate}, Read: func(stored []byte) any {
			var before protocol.UpdateStateReply
			_ = json.Unmarshal(stored, &before) // which Done wrote
			return before
		}}
	if may {
		act.May = func() error { return u.updateRefusal(req) }
	}
	act.Do = func(by life.Actor) any {
		e.req.Asked = req.Asked.ProvenBy(by)
		u.inbox.edits = append(u.inbox.edits, e)
		return nil
	}
	return act
}

// applyEdits applies the updates that were accepted, in that order.
func (u *updates) applyEdits(ctx workflow.Context) {
	for len(u.inbox.edits) > 0 {
		e := u.inbox.edits[0]
		if ctx.Err() != nil {
			e.err = protocol.Refuse(protocol.ErrTypeBusy, "the run was cancelled before the update: continue the thread, then update it again")
		} else {
			e.reply, e.err = u.update(ctx, e.req)
		}
		e.done = true
		u.inbox.edits = u.inbox.edits[1:]
	}
}

// update applies an update: first to a copy of the thread, with the branches evaluated by activities, and when all of it
// could be applied to the thread itself.
func (u *updates) update(ctx workflow.Context, req protocol.UpdateStateRequest) (protocol.UpdateStateReply, error) {
	u.count++
	trial, err := u.earlier(req.State)
	var routes [][]pregel.Target
	if err == nil {
		err = u.edit(trial, req, func(task *pregel.Task) ([]pregel.Target, error) {
			targets, err := u.routes(ctx, task)
			routes = append(routes, targets)
			return targets, err
		}, nil)
	}
	thread := trial
	if err == nil {
		thread, err = u.earlier(req.State)
	}
	if err != nil {
		return protocol.UpdateStateReply{}, u.refuseBad("the state is as it was: ", err)
	}
	return u.commit(ctx, thread, req, routes)
}

// stand begins a copy, which stands where the thread that it was copied from stood.
func (u *updates) stand(ctx workflow.Context) {
	u.began(ctx, graphadapter.DurabilitySync)
	u.note(ctx, life.EntryForked(u.in.Asked.Actor(), u.in.Asked.From, headID(u.thread), u.in.Asked.Reason))
}

// commit makes an update that can be applied, with the outcome of its branches.
func (u *updates) commit(ctx workflow.Context, thread *pregel.Thread, req protocol.UpdateStateRequest, routes [][]pregel.Target) (protocol.UpdateStateReply, error) {
	u.thread, u.loop, u.failure, u.drained, u.doubt.step = thread, nil, nil, "", -1
	u.began(ctx, graphadapter.DurabilitySync) // an update's checkpoints are kept in every mode
	known := func(*pregel.Task) ([]pregel.Target, error) {
		next := routes[0]
		routes = routes[1:]
		return next, nil
	}
	err := u.edit(thread, req, known, func(namespace string, record *pregel.Record) {
		if namespace == "" {
			u.checkpoints.add(u.program, record, u.now(ctx))
		}
		if u.sink != nil {
			u.sink.Edited(position(ctx), namespace, record)
		}
	})
	if err != nil { // the same could be applied to the copy
		return protocol.UpdateStateReply{}, protocol.Refuse(protocol.ErrTypeBadUpdate, "%v", err)
	}
	u.life.Reopen(u.program.OpenQuestions(thread))
	u.note(ctx, life.EntryUpdated(req.Asked.Actor(), req.Edits, headID(thread), req.Asked.Reason))
	u.ended(ctx)
	return protocol.UpdateStateReply{Checkpoint: headID(thread), Next: u.program.Next(thread.Head)}, nil
}

// edit applies the updates to a thread, one checkpoint for each list, and reports each to made unless that is nil.
func (e *engine) edit(thread *pregel.Thread, req protocol.UpdateStateRequest, route router, made func(namespace string, r *pregel.Record)) error {
	for _, updates := range req.Edits {
		e, err := e.program.Edit(thread, req.Within, updates)
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
func (u *updates) routes(ctx workflow.Context, task *pregel.Task) ([]pregel.Target, error) {
	req := u.tasks.request(ctx, task)
	if refused := u.tasks.tooLarge(req, requestSize(req)); refused != nil {
		return nil, refused
	}
	options := u.tasks.activityOptions(task)
	options.ActivityID = fmt.Sprintf("%s%d/%s", graphadapter.UpdateActivity, u.count, protocol.ActivityID(task))
	options.Summary = fmt.Sprintf("%s%d %s", graphadapter.UpdateActivity, u.count, task.Path)
	var outcome pregel.Outcome
	name := u.in.Graph + "." + activityNode(task)
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, req).Get(ctx, &outcome)
	if err != nil {
		outcome = failedOutcome(u.program.Spec.Name, task, err)
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
func (u *updates) updateRefusal(req protocol.UpdateStateRequest) error {
	if err := boundedUpdate(req, u.in.Found); err != nil {
		return err
	}
	if err := boundedAsked(req.Asked); err != nil {
		return err
	}
	if err := u.over(); err != nil {
		return err
	}
	if u.life.State.Paused != nil && u.waiting() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run has answers to go on with when it is unpaused: unpause it, then update its state")
	}
	if !u.standing() || u.waiting() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is under way: wait until it waits or stands still, or drain it, then update its state")
	}
	if len(u.inbox.edits) >= protocol.MaxQueuedUpdates {
		return protocol.Refuse(protocol.ErrTypeBusy, "%d updates of the state wait already: send this one again", len(u.inbox.edits))
	}
	if u.served != nil {
		if err := u.served.CheckUpdates(req.Within, req.Edits); err != nil {
			return protocol.Refuse(protocol.ErrTypeBadUpdate, "%v", err)
		}
	}
	thread, err := u.earlier(req.State)
	if err == nil && len(u.inbox.edits) == 0 {
		err = u.edit(thread, req, func(*pregel.Task) ([]pregel.Target, error) { return nil, errNotEvaluated }, nil)
	}
	if err != nil && !errors.Is(err, errNotEvaluated) {
		return u.refuseBad("", err)
	}
	return nil
}

// report tells those who read a run how its invocations go, and keeps the checkpoints that they make.
type report struct{ *people }

// began reports that the engine, or an update, goes on with the thread.
func (r *report) began(ctx workflow.Context, d graphadapter.Durability) {
	r.invoked, r.base, r.beganIn = true, headID(r.thread), r.checkpoints.run
	r.life.Look()
	if r.sink != nil {
		r.sink.Began(position(ctx), r.program, r.thread, d)
	}
}

// ended reports that the invocation stands still. In durability exit it leaves one checkpoint behind, whose parent is
// the one that it began at.
func (r *report) ended(ctx workflow.Context) {
	if !r.invoked {
		return
	}
	r.invoked = false
	if head := r.thread.Head; r.loop != nil && r.durability() == graphadapter.DurabilityExit && headID(r.thread) != r.base {
		head.Checkpoint = head.Checkpoint.WithParent(r.base)
		r.checkpoints.add(r.program, head, r.now(ctx))
	}
	r.settle()
	if r.sink != nil {
		r.sink.Ended(position(ctx), r.endStatus(ctx), r.thread)
	}
}

// observer notes the history's lines, and passes every event on to the sink.
func (r *report) observer(ctx workflow.Context) pregel.Observer {
	return func(e pregel.Event) {
		r.counts.happened(ctx, e)
		r.traced.happened(ctx, e)
		if e.Kind == pregel.EventCheckpoint && e.Namespace == "" && r.durability() != graphadapter.DurabilityExit {
			r.checkpoints.add(r.program, e.Checkpoint, r.now(ctx))
		}
		r.life.Happened(workflow.Now(ctx), e)
		r.act(ctx, r.life.Actions())
		if len(e.Questions) > 0 {
			r.life.Look()
		}
		for _, q := range e.Questions {
			r.listed.changed = r.listed.changed || q.Event == ""
		}
		if r.sink != nil {
			r.sink.Happened(position(ctx), e)
		}
	}
}

// endStatus is where the thread stands, as readers are told: what was cancelled has not finished, whatever is left to run.
func (r *report) endStatus(ctx workflow.Context) pregel.Status {
	if s := r.threadStatus(); s != pregel.StatusDone || ctx.Err() == nil {
		return s
	}
	return pregel.StatusDrained
}
