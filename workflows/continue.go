package workflows

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/workflows/protocol"
)

// due reports whether the run is long enough to be continued, and in no middle of anything that would be lost: senders of
// updates have their outcome.
func (r *run) due(ctx workflow.Context) bool {
	return r.room.due(ctx) && ctx.Err() == nil && len(r.inbox.edits) == 0 && !r.life.Claiming() && !r.life.Backlogged() &&
		workflow.AllHandlersFinished(ctx)
}

// continueAsNew sets what ends the run, unless something arrived that comes first, or what is to be handed on is too
// large. Nothing may be under way.
func (r *run) continueAsNew(ctx workflow.Context) bool {
	r.closing = true
	defer func() { r.closing = r.successor != nil }()
	GiveWay(ctx) // what somebody who receives has been given is not in its channel any more
	r.readAllSignals(ctx)
	if r.mayGoOn() || ctx.Err() != nil || r.taking > 0 || r.life.Proving() || r.life.Backlogged() {
		return false
	}
	r.act(ctx, r.life.Flush(workflow.Now(ctx)))
	events := workflow.GetInfo(ctx).GetCurrentHistoryLength()
	in, state, err := r.handOn(ctx)
	if err != nil {
		r.room.heldBack, r.room.notContinued = events+retryEvents, err
		workflow.GetLogger(ctx).Warn("the run cannot be continued as a new one yet", "error", err)
		return false
	}
	noteBegan(ctx)
	r.successor = workflow.NewContinueAsNewError(ctx, protocol.GraphWorkflow, in, state)
	r.notices.stop()
	return true
}

// noteBegan notes with the first of several runs when it began: to whoever looks at the thread all are one run. The memo goes
// on to the runs that follow.
func noteBegan(ctx workflow.Context) {
	info := workflow.GetInfo(ctx)
	if _, noted := info.Memo.GetFields()[protocol.MemoBegan]; noted {
		return
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoBegan: info.WorkflowStartTime}); err != nil {
		workflow.GetLogger(ctx).Warn("when the run began is not in the memo", "error", err)
	}
}

// continueUnderWay is continueAsNew between two tasks. Long before the run is full it starts no more of them until that
// can be: hold says that nothing is to be started now.
func (r *run) continueUnderWay(ctx workflow.Context) (hold bool) {
	if r.loop == nil || r.loop.Status() != pregel.StatusRunning || !r.room.dueUnderWay(ctx) || r.clock.expired || r.segments.expired != nil {
		return false
	}
	if r.underWay() {
		return workflow.GetInfo(ctx).GetCurrentHistoryLength() >= r.in.ContinueAt.Filled().HoldEvents
	}
	if r.waiters.move(ctx); !r.due(ctx) {
		return false
	}
	r.drain(r.life.Drain)
	r.loop.PutBack(r.tasks.queue...)
	r.tasks.queue = nil
	if r.continueAsNew(ctx) {
		return true
	}
	r.answerRunning(ctx)
	r.tasks.add(r.loop.Ready())
	return false
}

// readAllSignals takes in what has come by signal: what nobody had read would be gone.
func (r *run) readAllSignals(ctx workflow.Context) {
	pauses, cancels := workflow.GetSignalChannel(ctx, protocol.SignalPause), workflow.GetSignalChannel(ctx, protocol.SignalCancel)
	_ = workflow.Await(ctx, func() bool { return pauses.Len() == 0 && cancels.Len() == 0 }) // those are read at once
	r.readUnread(ctx)
	if !r.inbox.changing() {
		r.readAnswers(ctx, workflow.GetSignalChannel(ctx, protocol.SignalResume))
		return
	}
	// They cannot be looked at yet.
	unread(ctx, r.people, protocol.SignalResume, func(req protocol.ResumeRequest) { r.inbox.unread = append(r.inbox.unread, req) })
}

// handOn is the input of the run that continues this one, and its state.
func (r *run) handOn(ctx workflow.Context) (in protocol.GraphInput, state []byte, err error) {
	in = r.in
	in.ID, in.State, in.Newest, in.Input, in.Replay, in.Failed, in.Suspect = "", nil, nil, protocol.Input{}, false, false, false
	in.Behind = r.doubt.ago(ctx)
	in.Edits, in.Within, in.Suspects, in.Asked = nil, nil, segment.Suspicion{}, protocol.Asked{}
	in.Origin, in.Copy = nil, false
	in.Life, in.Lines, in.Previous = r.life.State, r.checkpoints.latest(protocol.CarriedLines), r.checkpoints.run
	in.Carried = &protocol.Carried{Since: r.since(workflow.GetInfo(ctx)), Status: r.status, Drained: r.drained, Invoked: r.invoked, Base: r.base, Began: r.beganIn,
		SuspectStep: r.doubt.step, Suspect: r.doubt.Suspicion, Apart: r.segments.apart, IdleEnds: r.idleEnds,
		Invoke: r.inbox.invoke, Signals: r.inbox.unread, Traced: r.traced.handsOn()}
	if r.loop != nil && r.loop.Status() == pregel.StatusRunning {
		in.Life.Drain = "" // the engine has been told
	}
	if r.failure != nil {
		in.Carried.Failure = failureOf(r.in.Graph, r.failure)
	}
	if info := workflow.GetInfo(ctx); info.OriginalRunID != info.WorkflowExecution.RunID {
		in.Carried.Suspect.All = true // it was reset, which the next run cannot see
	}
	if r.clock.ctx != nil && r.clock.step == r.loop.Step() {
		in.Carried.StepEnds = r.clock.ends
	}
	in.Carried.UnderWay = r.loop != nil && r.loop.Thread() == r.thread && r.failure == nil
	var suspended pregel.Suspended
	if in.Carried.UnderWay {
		suspended, err = pregel.SuspendLoop(r.loop)
	} else {
		suspended, err = pregel.SuspendThread(r.program, r.thread)
	}
	if err == nil && r.newest != nil {
		in.Newest, err = r.program.EncodeThread(r.newest)
	}
	if err == nil {
		err = fits(&in, suspended.Size())
	}
	if err != nil {
		return in, nil, err
	}
	return in, suspended.Bytes(), nil
}

// fits returns a *TooLargeError for an input that is too large to be handed on with a state of that many bytes. With a storage the
// states alone are measured: what goes along is bounded, and has room beside them.
func fits(in *protocol.GraphInput, size int) error {
	if in.Found.Storage {
		size += len(in.Newest)
	} else {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		size += len(text)
	}
	if most := in.Found.MaxPayload(); size > most {
		return &TooLargeError{Bytes: size, Most: most, Do: in.Found.Smaller()}
	}
	return nil
}

// carryOn takes over what the run did that this one continues, and its state.
func (r *run) carryOn(ctx workflow.Context, c *protocol.Carried, state []byte) (err error) {
	r.status, r.drained, r.doubt.step = c.Status, c.Drained, c.SuspectStep
	r.idleEnds = c.IdleEnds
	r.traced.goesOnWith(c.Traced)
	r.doubt.Suspicion, r.segments.apart = c.Suspect, c.Apart
	r.invoked, r.base, r.beganIn = c.Invoked, c.Base, c.Began
	r.inbox.invoke, r.inbox.unread = c.Invoke, c.Signals
	r.full = r.life.Full() // the memo goes on with it
	if c.Failure != nil {
		r.failure = c.Failure
	}
	suspended, err := pregel.ReadSuspended(state)
	if err != nil {
		return fmt.Errorf("graph %q: the state that the run was handed: %w", r.in.Graph, err)
	}
	if !c.UnderWay {
		if r.thread, err = suspended.Thread(r.program); err != nil {
			return err
		}
	} else {
		r.observe = r.observer(ctx)
		if r.loop, err = suspended.Restore(r.program, r.observe); err != nil {
			return err
		}
		r.thread = r.loop.Thread()
		r.clock = clock{step: r.loop.Step(), ends: c.StepEnds}
	}
	if r.sink != nil {
		status := pregel.StatusRunning
		if !r.invoked {
			status = r.threadStatus()
		}
		r.sink.Continued(position(ctx), r.program, r.thread, r.durability(), status, r.base)
	}
	return nil
}
