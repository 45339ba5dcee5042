package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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

// The bounds of what a cancelled run keeps in mind: an effect is forgotten once it is undone.
const (
	// maxLeft bounds the effects that the run's end lists by name.
	maxLeft = 200
	// maxParked bounds the effects that people are asked about. The others are listed as left.
	maxParked = 100
	// maxLeftReason bounds why an effect was left, in bytes, in the run's end.
	maxLeftReason = 500
)

// problemUnstored is why a compensation may not be whole although all that is known was looked at.
const problemUnstored = "a worker was lost with what it had not stored yet, or the run was ended from outside: effects may not be known, " +
	"and were then not undone; look in the outside for writes of this thread"

// parked is an effect that a person has to decide about.
type parked struct {
	of       taskrun.Compensation
	undone   taskrun.Undone
	question pregel.OpenQuestion
	rulings  int
}

// compensate undoes the effects of the thread since it last finished, the newest receipt first, one after the other. Then
// it waits for people to decide about those that no program can undo. The thread goes on before the oldest superstep of
// which a write was undone, and its next tasks have new keys: what they call is another write than the one that was undone.
func (r *run) compensate(ctx workflow.Context) {
	// The run is cancelled; its end outlasts that.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	r.cancel.undoing = true
	r.rests(ctx, protocol.StatusRunning)
	for seen, more := 0, true; more; {
		var page taskrun.StandingReply
		page, more = r.standingEffects(ctx, seen)
		for _, c := range page.Effects {
			seen++
			r.undo(ctx, &parked{of: c})
		}
	}
	r.decide(ctx)
	r.goBack(ctx)
	if r.segments.suspect.Lost && r.cancel.report.Problem == "" {
		r.cancel.report.Problem = problemUnstored
	}
	r.cancel.undoing = false
}

// rests shows where the run stands, when that is news.
func (r *run) rests(ctx workflow.Context, status string) {
	if r.status != status {
		r.status = status
		r.show(ctx)
	}
}

// standingEffects finds the next effects to undo, behind those seen.
func (r *run) standingEffects(ctx workflow.Context, seen int) (page taskrun.StandingReply, more bool) {
	asked := r.cancel.report
	if full := r.historyFull(ctx); full != nil {
		asked.Problem = full.Error()
		return page, false
	}
	info := workflow.GetInfo(ctx)
	err := r.apart(ctx, taskrun.StandingActivity, "", fmt.Sprintf("effects behind %d", seen), &page,
		taskrun.StandingRequest{Graph: r.in.Graph, Thread: info.WorkflowExecution.ID, Skip: seen})
	if err != nil {
		asked.Problem = "what the thread did outside could not be read: " + err.Error()
		return page, false
	}
	asked.Gone = page.Gone
	return page, page.More
}

// goBack lets the thread go on before the oldest superstep of which a write was undone: its state says that the write is
// there. Which that is, and how the thread stood then, an activity reads from the thread's runs. Until it has, the run
// does not end, also when somebody wants it to: the thread would go on behind a write that is not there.
func (r *run) goBack(ctx workflow.Context) {
	var reply past.RewindReply
	asked := r.cancel.report
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, apartOptions("", "where the thread goes on")),
		taskrun.RewindActivity, past.RewindRequest{Graph: r.in.Graph, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID}).Get(ctx, &reply)
	var to past.Rewound
	if err == nil {
		to, err = reply.Read(r.program)
	}
	if err != nil {
		asked.Halted = err.Error()
		return
	}
	if asked.Renewed = to.Undone; to.Undone && !r.segments.suspect.Lost {
		r.segments.suspect = segment.Suspicion{} // what may have run had other keys
	}
	made := past.GoBack(r.program, r.thread, to)
	if made == nil {
		return
	}
	asked.Checkpoint = made.Checkpoint.ID
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

// undo undoes one effect, or parks it for a person.
func (r *run) undo(ctx workflow.Context, p *parked) {
	switch {
	case r.life.Enough():
		r.leave(ctx, p, "the run was ended before it was undone")
		return
	case r.historyFull(ctx) != nil:
		r.leave(ctx, p, "the run's history is full: cancel the thread again in the same way")
		return
	}
	info := workflow.GetInfo(ctx)
	queue := r.program.TaskQueue(&pregel.Task{Graph: p.of.Graph, Node: p.of.Node})
	p.undone = taskrun.Undone{}
	err := r.apart(ctx, taskrun.CompensateActivity, queue, "undo "+p.of.Effect.Name, &p.undone, taskrun.CompensateRequest{
		Graph: r.in.Graph, Thread: info.WorkflowExecution.ID, Context: r.in.Context, OriginalRunID: info.OriginalRunID,
		Compensation: p.of, Suspect: r.cancel.suspect,
	})
	if err != nil {
		p.undone.Calls = max(p.undone.Calls, 1) // nobody knows
		r.leave(ctx, p, "the run was ended while it was being undone: "+err.Error())
		return
	}
	switch p.undone.State {
	case taskrun.UndoDone:
		r.done(ctx, p, ledger.StateCompensated, p.undone.Evidence)
	case taskrun.UndoAbsent:
		r.done(ctx, p, ledger.StateFailed, p.undone.Evidence)
	default:
		r.park(ctx, p)
	}
}

// park asks a person about an effect.
func (r *run) park(ctx workflow.Context, p *parked) {
	if len(r.cancel.parked) >= maxParked {
		r.leave(ctx, p, p.undone.Reason)
		return
	}
	r.tell(ctx, p, p.of.Effect.State, "not undone: "+p.undone.Reason)
	p.question = taskrun.UndoQuestion(workflow.GetInfo(ctx).WorkflowExecution.ID, p.of, p.undone, p.rulings)
	r.cancel.parked = append(r.cancel.parked, p)
	r.note(ctx, life.EntryUnclear(p.of, p.question.ID, p.undone.Reason))
}

// done notes that an effect is not there any more.
func (r *run) done(ctx workflow.Context, p *parked, state ledger.State, evidence string) {
	r.cancel.report.Undone++
	if err := taskrun.KeepUndone(r.thread, p.of, state, evidence); err != nil {
		workflow.GetLogger(ctx).Error("the thread does not know that an effect was undone", "key", p.of.Effect.Key, "error", err)
	}
	r.tell(ctx, p, state, evidence)
	r.note(ctx, life.EntryUndone(p.of, state, evidence))
}

// leave notes that an effect is left as it is.
func (r *run) leave(ctx workflow.Context, p *parked, reason string) {
	if len(reason) > maxLeftReason {
		reason = strings.ToValidUTF8(reason[:maxLeftReason], "") + "…"
	}
	r.tell(ctx, p, p.of.Effect.State, "not undone: "+reason)
	r.note(ctx, life.EntryLeft(p.of, reason))
	asked := r.cancel.report
	if err := taskrun.KeepUndone(r.thread, p.of, p.of.Effect.State, p.of.Effect.Evidence); err != nil {
		workflow.GetLogger(ctx).Error("the thread does not know that an effect stands", "key", p.of.Effect.Key, "error", err)
	}
	if len(asked.Left) >= maxLeft {
		asked.More++
		return
	}
	asked.Left = append(asked.Left, protocol.LeftEffect{Key: p.of.Effect.Key, Effect: p.of.Effect.Name, Node: p.of.Node, Reason: reason})
}

// tell passes on what became of the compensation of an effect.
func (r *run) tell(ctx workflow.Context, p *parked, state ledger.State, evidence string) {
	if r.sink != nil {
		r.sink.Happened(position(ctx), taskrun.UndoEvent(p.of, state, evidence, p.undone.Calls))
	}
}

// decide waits until people have decided about all effects that are parked, or somebody wants the run to end.
func (r *run) decide(ctx workflow.Context) {
	for len(r.cancel.parked) > 0 && !r.life.Enough() {
		r.rests(ctx, protocol.StatusWaiting)
		r.notices.look = true
		r.attendNotices(ctx)
		_ = workflow.Await(ctx, func() bool { return len(r.life.Given) > 0 || r.life.Enough() })
		for _, a := range r.life.GiveAnswers() {
			r.ruled(ctx, a)
		}
		r.show(ctx)
	}
	for _, p := range r.cancel.parked {
		r.leave(ctx, p, p.undone.Reason)
	}
	r.cancel.parked = nil
}

// ruled does what a person decided about a parked effect.
func (r *run) ruled(ctx workflow.Context, a pregel.Answer) {
	at := slices.IndexFunc(r.cancel.parked, func(p *parked) bool { return p.question.ID == a.QuestionID })
	if at < 0 {
		return
	}
	p := r.cancel.parked[at]
	r.cancel.parked = slices.Delete(r.cancel.parked, at, at+1)
	by := cmp.Or(a.By, "a person")
	switch p.rulings++; taskrun.ReadUndoRuling(a.Value) {
	case taskrun.UndoRuledDone:
		r.done(ctx, p, ledger.StateCompensated, "undone, says "+by)
	case taskrun.UndoRuledRepeat:
		r.rests(ctx, protocol.StatusRunning)
		r.undo(ctx, p)
	default:
		r.leave(ctx, p, "left, says "+by)
	}
}
