package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// problemUnstored is why a compensation may not be whole although all that is known was looked at.
const problemUnstored = "a worker was lost with what it had not stored yet, or the run was ended from outside: effects may not be known, " +
	"and were then not undone; look in the outside for writes of this thread"

// compensation undoes what a cancelled run's thread did outside.
type compensation struct {
	*people
	room  *room
	doubt *suspicion
}

// compensate undoes the effects of the thread since the thread last finished, the newest receipt first, one after the other. Then
// the run waits for people to decide about the effects that no program can undo. The thread goes on before the oldest superstep
// of which a write was undone. Its next tasks have new keys, so that their calls make other writes than the undone ones.
func (c *compensation) compensate(ctx workflow.Context) {
	// The run is cancelled; its end outlasts that.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	undo := c.life.BeginUndo(undoHost{c.engine, ctx})
	c.listed.showOnce(ctx, protocol.StatusRunning)
	for seen, more := 0, true; more; {
		page, err := c.standingEffects(ctx, seen)
		if err != nil {
			c.life.Report().Problem = err.Error()
			break
		}
		undo.Add(page)
		c.undoAll(ctx, undo)
		seen, more = seen+len(page.Effects), page.More
	}
	for undo.Waits() {
		c.listed.showOnce(ctx, protocol.StatusWaiting)
		c.attend(ctx)
		_ = workflow.Await(ctx, func() bool { return len(c.life.Given) > 0 || c.life.Enough() })
		undo.Rule(workflow.Now(ctx))
		c.undoAll(ctx, undo)
		if undo.Waits() {
			c.listed.show(ctx)
		}
	}
	c.listed.showOnce(ctx, protocol.StatusRunning)
	undo.Leave(workflow.Now(ctx))
	c.act(ctx, c.life.Actions())
	c.goBack(ctx)
	if report := c.life.Report(); c.doubt.Lost && report.Problem == "" {
		report.Problem = problemUnstored
	}
	undo.End()
}

// undoHost tells the thread, and readers of its effects, what became of the effects that were to be undone.
type undoHost struct {
	*engine
	ctx workflow.Context
}

// KeepUndone implements [life.UndoHost].
func (h undoHost) KeepUndone(c taskrun.Compensation, state ledger.State, evidence string) error {
	return taskrun.KeepUndone(h.thread, c, state, evidence)
}

// Undid implements [life.UndoHost].
func (h undoHost) Undid(e pregel.Event) {
	if h.sink != nil {
		h.sink.Happened(position(h.ctx), e)
	}
}

// standingEffects finds the next effects to undo, behind those seen.
func (c *compensation) standingEffects(ctx workflow.Context, seen int) (page taskrun.StandingReply, err error) {
	if err := c.room.full(ctx); err != nil {
		return page, err
	}
	info := workflow.GetInfo(ctx)
	err = c.apart(ctx, taskrun.StandingActivity, "", fmt.Sprintf("effects behind %d", seen), &page,
		taskrun.StandingRequest{Graph: c.in.Graph, Thread: info.WorkflowExecution.ID, Skip: seen, Rollback: c.rollback()})
	if err != nil {
		err = fmt.Errorf("what the thread did outside could not be read: %w", err)
	}
	return page, err
}

// goBack lets the thread go on before the oldest superstep of which a write was undone: its state says that the write is
// there. Which that is, and how the thread stood then, an activity reads from the thread's runs. Until it has, the run
// does not end, also when somebody wants it to: the thread would go on behind a write that is not there.
func (c *compensation) goBack(ctx workflow.Context) {
	var reply past.RewindReply
	report := c.life.Report()
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, c.apartOptions("", "where the thread goes on")),
		taskrun.RewindActivity, c.rewindRequest(ctx)).Get(ctx, &reply)
	var to past.Rewound
	if err == nil {
		to, err = reply.Read(c.program)
	}
	if err != nil {
		report.Halted = err.Error()
		return
	}
	if report.Renewed = to.Undone; to.Undone && !c.doubt.Lost {
		c.doubt.Suspicion = segment.Suspicion{} // what may have run had other keys
	}
	made := past.GoBack(c.program, c.thread, to)
	if report.Back = to.Back; to.Back {
		c.tookBack(ctx)
	}
	if made == nil {
		return
	}
	report.Checkpoint = made.Checkpoint.ID
	c.checkpoints.add(c.program, made, c.now(ctx))
	if c.sink != nil {
		c.sink.Edited(position(ctx), "", made)
	}
}

// rollback is which invocation is taken back, "" for none.
func (c *compensation) rollback() past.Rollback {
	switch {
	case c.life.CancelMode() != protocol.CancelRollback:
		return ""
	case c.in.Cancel != nil:
		return past.RollbackBehind
	}
	return past.RollbackNewest
}

// rewindRequest asks where the thread goes on. Where not all effects of an invocation could be undone it is not taken back.
func (c *compensation) rewindRequest(ctx workflow.Context) past.RewindRequest {
	r := past.RewindRequest{Graph: c.in.Graph, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID}
	if c.life.Report().Whole() {
		r.Rollback = c.rollback()
	}
	return r
}

// tookBack opens the questions of a thread again that stands where it stood before an invocation.
func (c *compensation) tookBack(ctx workflow.Context) {
	c.life.Reopen(c.program.OpenQuestions(c.thread))
	if c.sink != nil {
		c.sink.Began(position(ctx), c.program, c.thread, graphadapter.DurabilitySync)
		c.sink.Ended(position(ctx), pregel.StatusDrained, c.thread)
	}
}

// apartOptions are those of an activity that is no task.
func (c *compensation) apartOptions(queue, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: queue, StartToCloseTimeout: attemptBound, HeartbeatTimeout: c.lostAfter, WaitForCancellation: true,
		RetryPolicy: retries(),
		Summary:     summary,
	}
}

// apart runs an activity that is no task, and gives up waiting when somebody wants the run to end.
func (c *compensation) apart(ctx workflow.Context, name, queue, summary string, reply, req any) error {
	bounded, stop := workflow.WithCancel(workflow.WithActivityOptions(ctx, c.apartOptions(queue, summary)))
	future := workflow.ExecuteActivity(bounded, name, req)
	_ = workflow.Await(ctx, func() bool { return future.IsReady() || c.life.Enough() })
	if !future.IsReady() {
		stop()
	}
	return future.Get(ctx, reply)
}

// undoAll undoes the effects that wait for it, one after the other.
func (c *compensation) undoAll(ctx workflow.Context, undo *life.Undo) {
	info := workflow.GetInfo(ctx)
	c.act(ctx, c.life.Actions())
	for of, ok := undo.Next(c.room.full(ctx) != nil, workflow.Now(ctx)); ok; of, ok = undo.Next(c.room.full(ctx) != nil, workflow.Now(ctx)) {
		c.listed.showOnce(ctx, protocol.StatusRunning)
		var undone taskrun.Undone
		queue := c.program.TaskQueue(&pregel.Task{Graph: of.Graph, Node: of.Node})
		err := c.apart(ctx, taskrun.CompensateActivity, queue, "undo "+of.Effect.Name, &undone, taskrun.CompensateRequest{
			Graph: c.in.Graph, Thread: info.WorkflowExecution.ID, Context: c.in.Context, OriginalRunID: info.OriginalRunID,
			Compensation: of, Suspect: c.in.Cancel != nil && c.in.Cancel.Suspect, Trace: c.traced.String(),
		})
		undo.Ended(undone, err, workflow.Now(ctx))
		c.act(ctx, c.life.Actions())
	}
	c.act(ctx, c.life.Actions())
}
