package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/workflows/protocol"
)

// maxOutput bounds an output that stands in a run's last event apart from its state.
const maxOutput = 64 << 10

// leaves is what the next run of the thread starts from. One that was to go on from an earlier state, and made nothing of
// it, leaves the newest. A query asks for it too, so it changes nothing of the run.
func (r *run) leaves() protocol.Closing {
	thread := r.thread
	if r.newest != nil {
		thread = pregel.Newer(r.newest.Copy(), thread)
	}
	c := protocol.Closing{Step: stepOf(thread), Spec: r.in.Spec, Lines: r.checkpoints.latest(protocol.CarriedLines), Settings: r.in.Settings(),
		Life: r.life.Left(), Suspect: r.segments.mayHaveRun()}
	c.Cancel, c.Budget, c.Trace = r.life.Report(), thread.Meter(), r.traced.String()
	if r.failure != nil {
		c.Failure = failureOf(r.in.Graph, r.failure)
	}
	state, err := r.program.EncodeThread(thread)
	most := r.in.Found.MaxState()
	r.counts.nearTo("state_bytes", len(state), most)
	if err == nil && len(state) > most {
		thread = thread.Copy()
		r.shortenLedgers(thread)
		state, err = r.program.EncodeThread(thread)
	}
	kept := c.Life.KeptBytes()
	switch {
	case err != nil:
		c.Error = err.Error()
	case len(state)+kept <= most:
		c.State = state
	case r.closeWithoutSuperstep(&c, thread, kept):
	case len(state) <= most:
		c.State = state
	case r.closeWithoutSuperstep(&c, thread, 0):
	default:
		c.Error = fmt.Sprintf("the thread's state has %d bytes, at most %d fit a run's last event: %s", len(state), most, r.in.Found.Smaller())
	}
	if len(c.State)+kept > most {
		c.Life.DropKept(most - len(c.State))
	}
	return c
}

// finished ends the run with its output.
func (r *run) finished(ctx workflow.Context) (*protocol.GraphResult, error) {
	r.listed.showFinished(ctx)
	r.replied(ctx)
	result := r.result()
	result.Behind = r.doubt.ago(ctx)
	result = r.handBack(ctx, result, r.output())
	return &result, nil
}

// failed ends the run so that it can be continued: every sibling has ended and its writes are in the state, and answers
// that were accepted meanwhile are on record.
func (r *run) failed(ctx workflow.Context) error {
	r.listed.showEnd(ctx, protocol.FailureStatus(failureOf(r.in.Graph, r.failure)))
	r.replied(ctx)
	r.keepAnswers(ctx)
	result, text := r.result(), fmt.Sprintf("thread %s: %v", workflow.GetInfo(ctx).WorkflowExecution.ID, r.failure)
	if result.Dropped {
		text += fmt.Sprintf("; what superstep %d had finished is too large to keep with the run's end, a retry runs all of it again", result.Step+1)
	}
	return temporal.NewApplicationErrorWithOptions(text, errorType(r.failure), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{r.handBack(ctx, result, nil)},
	})
}

// badInput ends a thread's first run, which was given what it cannot begin with. It leaves no state: the thread may begin
// again. A later run that cannot begin ends with the thread as it was.
func badInput(ctx workflow.Context, in *protocol.GraphInput, problem string) error {
	problem = clip.Text(problem, protocol.MaxReasonBytes)
	return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("thread %s: %s", workflow.GetInfo(ctx).WorkflowExecution.ID, problem), protocol.ErrTypeBadInput,
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{protocol.GraphResult{Graph: in.Graph,
			Closing: protocol.Closing{Step: -1, Error: "its run could not begin", Failure: &pregel.NodeError{Graph: in.Graph, Type: protocol.ErrTypeBadInput, Message: problem}}}}})
}

// result is what the run's last event holds. The output is part of the state; a small one is repeated for readers that
// know nothing of states.
func (r *run) result() protocol.GraphResult {
	result := protocol.GraphResult{Graph: r.in.Graph, Closing: r.leaves()}
	output := r.output()
	size := 0
	for _, name := range workflow.DeterministicKeys(output) {
		size += len(name) + len(output[name])
	}
	if size <= maxOutput {
		result.Output = output
	}
	return result
}

// replied waits until who answered has their outcome: a run that ended would leave them without one.
func (r *run) replied(ctx workflow.Context) {
	wait, _ := workflow.NewDisconnectedContext(ctx)
	r.ending = true
	told := func() bool {
		return r.taking == 0 && (ctx.Err() != nil || !r.life.Claiming() && len(r.life.Replies) == 0)
	}
	_ = workflow.Await(wait, told)
	r.readUnread(wait)
	r.act(wait, r.life.Flush(workflow.Now(wait)))
	r.leaveNotices(wait)
	// Those who wait for the run's end are told in the workflow task that ends it: to them it is over.
	r.waiters.ends = true
	_ = workflow.Await(wait, func() bool { return workflow.AllHandlersFinished(wait) && told() })
	r.readUnread(wait)
	r.act(wait, r.life.Flush(workflow.Now(wait)))
}

// keepAnswers puts accepted answers on record: who sent them was told that they count.
func (r *run) keepAnswers(ctx workflow.Context) {
	if in := r.takeInput(); in.Resume != nil {
		if err := r.program.Answer(r.thread, in.Resume); err != nil {
			workflow.GetLogger(ctx).Error("accepted answers could not be recorded", "error", err)
		}
	}
}

// cancelled ends a cancelled run after its tasks have ended.
func (r *run) cancelled(ctx workflow.Context) error {
	GiveWay(ctx)
	r.keepAnswers(ctx)
	r.act(ctx, r.life.Cancelled("the server was asked to cancel it", workflow.Now(ctx)))
	if r.life.CancelMode() != protocol.CancelKeep {
		r.drop(ctx)
	}
	if r.life.CancelMode().Undoes() {
		(&compensation{r.people, r.room, r.doubt}).compensate(ctx)
	}
	r.listed.showEnd(ctx, protocol.StatusCancelled)
	r.replied(ctx)
	r.keepAnswers(ctx) // of those who were just told
	var output map[string]pregel.Value
	if r.life.CancelMode() == protocol.CancelKeep && r.threadStatus() == pregel.StatusDone {
		output = r.output() // it was told to end when it had
	}
	return temporal.NewCanceledError(r.handBack(ctx, r.result(), output))
}

// cancelledBefore ends a run that only cleans up behind the one before it.
func (r *run) cancelledBefore(ctx workflow.Context) error {
	end := r.end
	r.end = nil // it ends as it is
	r.failure = r.take(ctx, request{Command: r.in.Cancel.CancelRequest, unseen: true}).Err
	if r.end = end; r.failure != nil {
		return r.failed(ctx)
	}
	r.began(ctx, r.durability())
	r.invoked = false // it has not finished, whatever is left to run
	return r.cancelled(ctx)
}

// drop forgets the superstep under way, and an earlier state that the run was to go on with.
func (r *run) drop(ctx workflow.Context) {
	if r.newest != nil {
		r.thread, r.newest = pregel.Newer(r.newest, r.thread), nil
	}
	r.program.Drop(r.thread)
	r.loop, r.failure = nil, nil
	r.life.ForgetWaits()
	if r.sink != nil {
		r.sink.Ended(position(ctx), pregel.StatusDrained, r.thread)
	}
}
