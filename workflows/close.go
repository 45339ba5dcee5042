package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/workflows/protocol"
)

// maxOutput bounds an output that stands in a run's last event apart from its state.
const maxOutput = 64 << 10

// closing is what the next run of the thread starts from. One that was to go on from an earlier state, and made nothing of
// it, leaves the newest.
func (r *run) closing() protocol.Closing {
	thread := r.thread
	if r.newest != nil {
		thread = pregel.Newer(r.newest, thread)
	}
	c := protocol.Closing{Step: stepOf(thread), Spec: r.in.Spec, Lines: r.lines.latest(protocol.CarriedLines), Settings: r.in.Settings(),
		Life: r.life.Left(), Suspect: r.mayHaveRun()}
	c.Cancel = r.life.Report()
	if r.failure != nil {
		c.Failure = failureOf(r.in.Graph, r.failure)
	}
	state, err := r.program.EncodeThread(thread)
	if err == nil && len(state) > protocol.MaxStateBytes {
		r.shortenLedgers(thread)
		state, err = r.program.EncodeThread(thread)
	}
	switch {
	case err != nil:
		c.Error = err.Error()
	case len(state)+r.life.KeptBytes() > protocol.MaxStateBytes && r.closeWithoutSuperstep(&c, thread):
	case len(state)+r.life.KeptBytes() > protocol.MaxStateBytes:
		c.Error = fmt.Sprintf("the thread's state has %d bytes and the events that it keeps %d, at most %d fit a run's last event: "+
			"keep large values outside and references in the state", len(state), r.life.KeptBytes(), protocol.MaxStateBytes)
	default:
		c.State = state
	}
	return c
}

// closeWithoutSuperstep leaves the thread as it stood before the superstep under way, when that fits: what its tasks had
// finished is more than a run's last event takes, and would take all of the state along. The next run looks up what they did
// outside, as it does behind any run that ended badly.
func (r *run) closeWithoutSuperstep(c *protocol.Closing, thread *pregel.Thread) bool {
	before := thread.Copy()
	r.program.Drop(before)
	state, err := r.program.EncodeThread(before)
	if err != nil || len(state)+r.life.KeptBytes() > protocol.MaxStateBytes {
		return false
	}
	c.State, c.Dropped = state, true
	c.Life.Due = nil // who waits again begins anew
	return true
}

// shortenLedgers leaves of what the tasks under way did outside that it was done: what a thread of many such tasks could
// not store. Receipts are looked up when they are needed again, results that were only remembered are made again.
func (r *run) shortenLedgers(thread *pregel.Thread) {
	r.program.ShortenLedgers(thread, func(stored pregel.Value) pregel.Value {
		if short, err := graphadapter.SlimLedger(stored); err == nil {
			return short
		}
		return stored
	})
}

// failureOf is why a run failed, as data.
func failureOf(graph string, err error) *pregel.NodeError {
	failure := pregel.AsNodeError(graph, "", err)
	var named interface{ ErrorType() string }
	if errors.As(err, &named) {
		failure.Type = named.ErrorType()
	}
	return failure
}

func stepOf(t *pregel.Thread) int {
	if t.Head == nil {
		return 0
	}
	return t.Head.Checkpoint.Step
}

// finished ends the run with its output.
func (r *run) finished(ctx workflow.Context) (*protocol.GraphResult, error) {
	r.status = protocol.StatusFinished
	r.show(ctx)
	r.replied(ctx)
	result := r.result()
	result.Behind = r.behind(ctx)
	result = r.handBack(ctx, result, r.output())
	return &result, nil
}

// failed ends the run so that it can be continued: every sibling has ended and its writes are in the state, and answers
// that were accepted meanwhile are on record.
func (r *run) failed(ctx workflow.Context) error {
	r.showEnd(ctx, protocol.FailureStatus(failureOf(r.in.Graph, r.failure)))
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
	result := protocol.GraphResult{Graph: r.in.Graph, Closing: r.closing()}
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

func (r *run) output() map[string]pregel.Value {
	switch {
	case r.loop != nil:
		return r.loop.Output()
	case r.failure != nil:
		return nil // the engine refused the input
	}
	return r.program.Output(r.thread)
}

// replied waits until who answered has their outcome: a run that ended would leave them without one.
func (r *run) replied(ctx workflow.Context) {
	wait, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(wait, func() bool {
		return workflow.AllHandlersFinished(wait) && r.host.taking == 0 && (ctx.Err() != nil || !r.life.Claiming() && len(r.life.Replies) == 0)
	})
	r.readEvents(wait)
	r.readViews(wait)
	r.act(wait, r.life.Flush(workflow.Now(wait)))
	r.leaveNotices(wait)
}

// keepAnswers puts accepted answers on record: who sent them was told that they count.
func (r *run) keepAnswers(ctx workflow.Context) {
	if in := r.takeInput(); in.Resume != nil {
		if err := r.program.Answer(r.thread, in.Resume); err != nil {
			workflow.GetLogger(ctx).Error("accepted answers could not be recorded", "error", err)
		}
	}
}
