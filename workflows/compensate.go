package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

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

// compensate undoes the effects of the thread since it last finished, the newest receipt first, one after the other. Then
// it waits for people to decide about those that no program can undo. The thread goes on before the oldest superstep of
// which a write was undone, and its next tasks have new keys: what they call is another write than the one that was undone.
func (r *run) compensate(ctx workflow.Context) {
	// The run is cancelled; its end outlasts that.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	undo := r.life.BeginUndo(undoHost{r, ctx})
	r.rests(ctx, protocol.StatusRunning)
	for seen, more := 0, true; more; {
		page, err := r.standingEffects(ctx, seen)
		if err != nil {
			r.life.Report().Problem = err.Error()
			break
		}
		undo.Add(page)
		r.undoAll(ctx, undo)
		seen, more = seen+len(page.Effects), page.More
	}
	for undo.Waits() {
		r.rests(ctx, protocol.StatusWaiting)
		r.attend(ctx)
		_ = workflow.Await(ctx, func() bool { return len(r.life.Given) > 0 || r.life.Enough() })
		undo.Rule(workflow.Now(ctx))
		r.undoAll(ctx, undo)
		r.show(ctx)
	}
	undo.Leave(workflow.Now(ctx))
	r.act(ctx, r.life.Actions())
	r.goBack(ctx)
	if report := r.life.Report(); r.segments.suspect.Lost && report.Problem == "" {
		report.Problem = problemUnstored
	}
	undo.End()
}

// undoHost tells the thread, and who reads its effects, what became of those that were to be undone.
type undoHost struct {
	*run
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

// rests shows where the run stands, when that is news.
func (r *run) rests(ctx workflow.Context, status string) {
	if r.status != status {
		r.status = status
		r.show(ctx)
	}
}

// standingEffects finds the next effects to undo, behind those seen.
func (r *run) standingEffects(ctx workflow.Context, seen int) (page taskrun.StandingReply, err error) {
	if err := r.historyFull(ctx); err != nil {
		return page, err
	}
	info := workflow.GetInfo(ctx)
	err = r.apart(ctx, taskrun.StandingActivity, "", fmt.Sprintf("effects behind %d", seen), &page,
		taskrun.StandingRequest{Graph: r.in.Graph, Thread: info.WorkflowExecution.ID, Skip: seen})
	if err != nil {
		err = fmt.Errorf("what the thread did outside could not be read: %w", err)
	}
	return page, err
}

// goBack lets the thread go on before the oldest superstep of which a write was undone: its state says that the write is
// there. Which that is, and how the thread stood then, an activity reads from the thread's runs. Until it has, the run
// does not end, also when somebody wants it to: the thread would go on behind a write that is not there.
func (r *run) goBack(ctx workflow.Context) {
	var reply past.RewindReply
	report := r.life.Report()
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, apartOptions("", "where the thread goes on")),
		taskrun.RewindActivity, past.RewindRequest{Graph: r.in.Graph, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID}).Get(ctx, &reply)
	var to past.Rewound
	if err == nil {
		to, err = reply.Read(r.program)
	}
	if err != nil {
		report.Halted = err.Error()
		return
	}
	if report.Renewed = to.Undone; to.Undone && !r.segments.suspect.Lost {
		r.segments.suspect = segment.Suspicion{} // what may have run had other keys
	}
	made := past.GoBack(r.program, r.thread, to)
	if made == nil {
		return
	}
	report.Checkpoint = made.Checkpoint.ID
	r.lines.add(r.program, made, workflow.Now(ctx))
	if r.sink != nil {
		r.sink.Edited(position(ctx), "", made)
	}
}

// apartOptions are those of an activity that is no task.
func apartOptions(queue, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue: queue, StartToCloseTimeout: attemptBound, HeartbeatTimeout: heartbeatTimeout, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval,
		},
		Summary: summary,
	}
}

// apart runs an activity that is no task, and gives up waiting when somebody wants the run to end.
func (r *run) apart(ctx workflow.Context, name, queue, summary string, reply, req any) error {
	bounded, stop := workflow.WithCancel(workflow.WithActivityOptions(ctx, apartOptions(queue, summary)))
	future := workflow.ExecuteActivity(bounded, name, req)
	_ = workflow.Await(ctx, func() bool { return future.IsReady() || r.life.Enough() })
	if !future.IsReady() {
		stop()
	}
	return future.Get(ctx, reply)
}

// undoAll undoes the effects that wait for it, one after the other.
func (r *run) undoAll(ctx workflow.Context, undo *life.Undo) {
	info := workflow.GetInfo(ctx)
	r.act(ctx, r.life.Actions())
	for of, ok := undo.Next(r.historyFull(ctx) != nil, workflow.Now(ctx)); ok; of, ok = undo.Next(r.historyFull(ctx) != nil, workflow.Now(ctx)) {
		r.rests(ctx, protocol.StatusRunning)
		var undone taskrun.Undone
		queue := r.program.TaskQueue(&pregel.Task{Graph: of.Graph, Node: of.Node})
		err := r.apart(ctx, taskrun.CompensateActivity, queue, "undo "+of.Effect.Name, &undone, taskrun.CompensateRequest{
			Graph: r.in.Graph, Thread: info.WorkflowExecution.ID, Context: r.in.Context, OriginalRunID: info.OriginalRunID,
			Compensation: of, Suspect: r.in.Cancel != nil && r.in.Cancel.Suspect,
		})
		undo.Ended(undone, err, workflow.Now(ctx))
		r.act(ctx, r.life.Actions())
	}
	r.act(ctx, r.life.Actions())
}
