package superstep

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"

	"superstep.dev/internal/clip"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// errStartedBefore says that a run was not started, as there is another one.
var errStartedBefore = errors.New("it was started before")

// memoJobGoal is the memo field with the beginning of a job's goal, for lists.
const memoJobGoal = "superstep_goal"

// goalShown bounds what a list shows of a goal, in bytes.
const goalShown = 200

// launchJob starts a run of a leader: of a new job, or of one that goes on behind its last run. It fails with
// errStartedBefore when another run is there first. Its request id follows from that of the run before, as a thread's does,
// so that of several recoveries only one begins.
func (c *Client) launchJob(ctx context.Context, call string, in protocol.LeaderInput, last *lastRun) (*lastRun, error) {
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return nil, err
	}
	id := job.WorkflowID(in.Job.ID)
	memo, err := c.memoOf(in.Leader, map[string]string{protocol.MemoGraph: in.Leader, protocol.MemoStart: call,
		memoJobGoal: clip.Text(in.Job.Goal, goalShown)})
	if err != nil {
		return nil, err
	}
	start, err := c.executionRequest(id, protocol.LeaderWorkflow, in, memo, last)
	if err != nil {
		return nil, &Error{Kind: ErrBadInput, Graph: in.Leader, Thread: id, Message: "the job cannot be encoded", Cause: err}
	}
	if has.Lists {
		start.SearchAttributes = runAttributes(in.Leader)
	}
	if err := c.stillLast(ctx, last); err != nil {
		return nil, err
	}
	run, err := c.execute(ctx, start, call, last != nil)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		return nil, fmt.Errorf("job %s: %w", in.Job.ID, errStartedBefore)
	}
	if err != nil {
		return nil, c.explain(err, in.Leader, id)
	}
	return &lastRun{kind: protocol.LeaderWorkflow, thread: id, graph: in.Leader, runID: run, first: run, open: true}, nil
}
