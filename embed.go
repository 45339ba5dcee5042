package superstep

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/remote"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// GraphFuture is a run of a graph that a workflow has started with [ExecuteGraph].
type GraphFuture[Out any] struct {
	graph *Graph[Out]
	run   workflow.ChildWorkflowFuture
	err   error
}

// ExecuteGraph starts a run of a graph from a Temporal workflow of one's own, as a child run of it: a thread like any other, in
// lists and in the inbox, whose questions are answered as everywhere. Input and options are as for [Thread.Start].
//
// What Temporal knows of children comes from workflow.WithChildOptions: the WorkflowID, which is the thread's id (at most 200
// bytes), the TaskQueue of the graph's workers, and what becomes of the run when its parent is cancelled or ends. Without them the
// thread has an id that Temporal makes of the parent's, the queue is the parent's, and a run whose parent ends is told to end as
// well, in the way of [thread.CancelKeep] (PARENT_CLOSE_POLICY_REQUEST_CANCEL). With WaitForCancellation the parent waits until it has.
//
// The parent's history has the run's result, with the thread's state. It is deterministic, as a workflow has to be, as long as the
// input encodes in the same way each time.
func ExecuteGraph[Out any](ctx workflow.Context, g *Graph[Out], input any, opts ...RunOption) GraphFuture[Out] {
	f := GraphFuture[Out]{graph: g}
	child := workflow.GetChildWorkflowOptions(ctx)
	if child.WorkflowID != "" {
		f.err = runtime.BadThreadID(g.Name(), child.WorkflowID)
	}
	in, err := runInput(g, child.WorkflowID, input, opts)
	if f.err = errors.Join(f.err, err); f.err != nil {
		return f
	}
	// The run begins with its parent: it has the same keys again when the parent is reset.
	in.ThreadOrigin = workflow.GetInfo(ctx).FirstRunID
	if child.WorkflowTaskTimeout == 0 {
		child.WorkflowTaskTimeout = protocol.WorkflowTaskTimeout
	}
	if child.ParentClosePolicy == enumspb.PARENT_CLOSE_POLICY_UNSPECIFIED {
		child.ParentClosePolicy = enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL
	}
	if child.StaticSummary == "" {
		child.StaticSummary = "graph " + g.Name()
	}
	memo := map[string]any{protocol.MemoGraph: g.Name()}
	for _, name := range workflow.DeterministicKeys(child.Memo) {
		memo[name] = child.Memo[name]
	}
	child.Memo = memo
	f.run = workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, child), protocol.GraphWorkflow, in)
	return f
}

// Started waits until the run has begun, and returns its thread and run. The error is as Get's, when it could not begin.
func (f GraphFuture[Out]) Started(ctx workflow.Context) (thread, run string, err error) {
	if f.err != nil {
		return "", "", f.err
	}
	var execution workflow.Execution
	if err := f.run.GetChildWorkflowExecution().Get(ctx, &execution); err != nil {
		return "", "", f.failure(err)
	}
	return execution.ID, execution.RunID, nil
}

// Future is what a workflow.Selector waits for; nil when the input was refused, which Get says.
func (f GraphFuture[Out]) Future() workflow.Future {
	if f.err != nil {
		return nil
	}
	return f.run
}

// Get waits until the run has ended and returns the graph's output. A run that waits for people has not ended.
//
// Errors: an [*thread.Error] for an input or options that cannot be taken; a [*RunError] for a run that failed, was cancelled or was
// terminated, in which errors.As finds Temporal's own errors and, as a [*NodeError], the failure of a node.
func (f GraphFuture[Out]) Get(ctx workflow.Context) (Out, error) {
	var none Out
	if f.err != nil {
		return none, f.err
	}
	var result protocol.GraphResult
	if err := f.run.Get(ctx, &result); err != nil {
		return none, f.failure(err)
	}
	output := result.Output
	if output == nil && result.State != nil { // it is large
		program, th, err := runtime.ReadThread(result.Spec, result.State, runtime.ReducersOf(f.graph.adapter))
		if err != nil {
			return none, &thread.Error{Kind: thread.ErrBadInput, Graph: f.graph.Name(), Message: "the run's state cannot be read", Cause: err}
		}
		output = program.Output(th)
	}
	return decodeOutput[Out](f.graph.Name(), pregel.HoldAll(output), nil)
}

// failure is why a run ended without finishing.
func (f GraphFuture[Out]) failure(err error) error {
	e := &RunError{Graph: f.graph.Name(), Status: thread.StatusFailed, Message: err.Error(), Cause: err}
	var child *temporal.ChildWorkflowExecutionError
	if !errors.As(err, &child) {
		return err // the parent's own: it was cancelled, or the child could not be started
	}
	e.Thread = child.WorkflowID()
	var result protocol.GraphResult
	var failed *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	switch {
	case errors.As(err, &failed):
		e.Message = failed.Message()
		if failed.HasDetails() && failed.Details(&result) == nil && result.Failure != nil {
			e.Status, e.Cause = thread.Status(protocol.FailureStatus(result.Failure)), errors.Join(err, result.Failure)
		}
	case errors.As(err, &cancelled):
		e.Status, e.Message = thread.StatusCancelled, "cancelled"
		if cancelled.HasDetails() && cancelled.Details(&result) == nil && result.Cancel != nil && result.Cancel.Reason != "" {
			e.Message = result.Cancel.Reason
		}
	case errors.As(err, &terminated):
		e.Status, e.Message = thread.StatusTerminated, "terminated"
	}
	if node, ok := nodeErrorOf(e.Cause); ok {
		e.Node = node.Node
	}
	return e
}

// ScheduleAction is what a Temporal schedule does to start runs of a graph: give it to client.ScheduleOptions. Each run is a new
// thread, whose id is that of the thread with the time behind it; it is in lists and in the inbox as any other. Input and options
// are as for [Thread.Start]. TaskQueue is [DefaultTaskQueue]: set that of the graph's workers where it is another.
//
// Where the Temporal client has a [storage.Storage], create and update the schedule with the context of [storage.Inline]: the input
// then goes with each run. Else a large one lies among the values of a thread that has the name given here: erasing that one takes
// it from the runs that are to come, and erasing theirs leaves it behind.
//
// Errors: [thread.ErrBadInput].
func ScheduleAction[Out any](g *Graph[Out], thread string, input any, opts ...RunOption) (*client.ScheduleWorkflowAction, error) {
	if err := runtime.BadThreadID(g.Name(), thread); err != nil {
		return nil, err
	}
	in, err := runInput(g, thread, input, opts)
	if err != nil {
		return nil, err
	}
	return remote.ScheduleAction(thread, DefaultTaskQueue, in), nil
}

// CreateSchedule lets a Temporal schedule start runs of a graph by the calendar, once a worker has said that it serves the graph and takes
// the input. Each run is a new thread; it is in lists and in the inbox as any other.
//
// Errors: [thread.ErrBadInput], also for a schedule that there is already or that would never come due; [thread.ErrNoWorker] when no worker
// serves the graph; [thread.ErrNoServer].
func (c *Client) CreateSchedule(ctx context.Context, r thread.ScheduleRequest) (thread.ScheduleView, error) {
	return remote.Schedules{Threads: c.threads}.Create(ctx, r)
}

// Schedules returns schedules that CreateSchedule has made, at most so many, 0 for 100. The server's index is a moment behind.
// Errors: [thread.ErrNoServer].
func (c *Client) Schedules(ctx context.Context, limit int) ([]thread.ScheduleView, error) {
	return remote.Schedules{Threads: c.threads}.List(ctx, limit)
}

// PauseSchedule keeps a schedule from starting runs until [Client.UnpauseSchedule]. What comes due meanwhile is left out.
// Errors: [thread.ErrNotFound], [thread.ErrBadInput], [thread.ErrNoServer].
func (c *Client) PauseSchedule(ctx context.Context, r thread.SchedulePause) (thread.ScheduleView, error) {
	return remote.Schedules{Threads: c.threads}.Pause(ctx, r)
}

// UnpauseSchedule lets a paused schedule go on. One that is not paused goes on as before; its Note says who asked, and why.
// Errors: [thread.ErrNotFound], [thread.ErrBadInput], [thread.ErrNoServer].
func (c *Client) UnpauseSchedule(ctx context.Context, r thread.SchedulePause) (thread.ScheduleView, error) {
	return remote.Schedules{Threads: c.threads}.Unpause(ctx, r)
}

// TriggerSchedule lets a schedule start a run now, paused or not, and beside runs of it that are open. It returns when the run has been
// started, which Last is then. Errors: [thread.ErrNotFound], [thread.ErrRunning] when nothing was started, [thread.ErrNoServer].
func (c *Client) TriggerSchedule(ctx context.Context, id string) (thread.ScheduleView, error) {
	return remote.Schedules{Threads: c.threads}.Trigger(ctx, id)
}

// DeleteSchedule ends a schedule; runs that it has started go on. Errors: [thread.ErrNotFound], [thread.ErrNoServer].
func (c *Client) DeleteSchedule(ctx context.Context, id string) error {
	return remote.Schedules{Threads: c.threads}.Delete(ctx, id)
}

// runInput is the input of a new thread's first run.
func runInput[Out any](g *Graph[Out], threadID string, input any, opts []RunOption) (protocol.GraphInput, error) {
	req, err := newStart(g.adapter, threadID, input, runOptionsOf(opts))
	if err != nil {
		return protocol.GraphInput{}, err
	}
	in := protocol.GraphInput{Graph: g.Name(), Input: protocol.Input{Value: pregel.Value(req.Input)}, Asked: runtime.AskedOf(req.By, req.Reason, req.Token)}
	in.Set(*runtime.SettingsOf(req))
	if problem := in.Problem(); problem != "" {
		return in, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Name(), Thread: threadID, Message: problem}
	}
	return in, nil
}
