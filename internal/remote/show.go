package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/codec"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Show returns what is known of a thread.
func (c *reader) Show(ctx context.Context, threadID string) (thread.View, error) {
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return thread.View{}, err
	}
	return c.show(ctx, last)
}

func (c *reader) show(ctx context.Context, last *lastRun) (v thread.View, err error) {
	v = c.viewOf(last)
	if !last.open {
		return v, c.addClosed(ctx, last, &v)
	}
	v.Problem, err = c.problem(ctx, last)
	if err != nil {
		return thread.View{}, err
	}
	return v, c.addOpen(ctx, last, &v)
}

// settling is what a compensation under way waits for, nil when none waits.
func (c *reader) settling(last *lastRun) *thread.SettleView {
	for _, a := range last.described.GetPendingActivities() {
		if a.GetActivityType().GetName() != taskrun.CompensateActivity {
			continue
		}
		if kept := c.progressOf(a); kept.Settling != nil {
			return kept.Settling
		}
	}
	return nil
}

// progressOf is what the newest heartbeat of an activity says, as far as it can be read here.
func (c *reader) progressOf(a *workflowpb.PendingActivityInfo) graphadapter.Progress {
	var kept graphadapter.Progress
	if a.GetHeartbeatDetails() == nil || c.cfg.DataConverter.FromPayloads(a.GetHeartbeatDetails(), &kept) != nil {
		return graphadapter.Progress{}
	}
	return kept
}

func (c *reader) viewOf(last *lastRun) thread.View {
	info := last.described.GetWorkflowExecutionInfo()
	v := thread.View{
		Thread: last.thread, Graph: last.graph, RunID: last.runID, Status: statusOf(last.status),
		Started: c.began(info), Events: info.GetHistoryLength(), HistoryBytes: info.GetHistorySizeBytes(),
	}
	if info.GetCloseTime() != nil {
		v.Closed = info.GetCloseTime().AsTime()
	}
	return v
}

// began is when a run began, or the first of those that it continues as new ones.
func (c *reader) began(info *workflowpb.WorkflowExecutionInfo) time.Time {
	var at time.Time
	field, ok := info.GetMemo().GetFields()[protocol.MemoBegan]
	if !ok || c.cfg.DataConverter.FromPayload(field, &at) != nil || at.IsZero() {
		return info.GetStartTime().AsTime()
	}
	return at
}

// addClosed adds what a closed run's last event says, and when it will be gone.
func (c *reader) addClosed(ctx context.Context, last *lastRun, v *thread.View) error {
	if retention, err := c.retention(ctx); err == nil {
		v.Expires = v.Closed.Add(retention)
	}
	left, message, err := c.left(ctx, last)
	silent := last.status == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED ||
		last.status == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED && errors.Is(err, thread.ErrNoWorker) // nobody else can tell more
	if err != nil && !silent {
		return err
	}
	v.Step, v.Output, v.Error, v.Failure, v.Cancel = left.Step, left.Output, message, left.Failure, runtime.CancelView(left.Cancel)
	v.Refused, v.Budget = left.Life.Refused, thread.ViewOfBudget(left.Budget)
	if v.Status == thread.StatusFailed {
		v.Status = runtime.FailureStatus(left.Failure)
	}
	if left.Spec != nil && left.Settings != nil {
		d, fused := graphadapter.ModeOf(left.Spec, left.Settings.Durability, left.Settings.Fused)
		v.Durability, v.Fused = runtime.ModeShown(d), fused
	}
	if left.Spec == nil || left.State == nil {
		return nil
	}
	return addLeft(left, v)
}

// addLeft adds what the state that a closed run left tells.
func addLeft(left protocol.GraphResult, v *thread.View) error {
	unread := func(err error) error {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: v.Graph, Thread: v.Thread, Message: "the thread's stored state cannot be read", Cause: err}
	}
	program, err := pregel.Compile(left.Spec, runtime.Unreadable(left.Spec))
	if err != nil {
		return unread(err)
	}
	th, err := program.DecodeThread(left.State)
	if err != nil {
		return unread(err)
	}
	v.Effects = effectsOf(program.Ledgers(th))
	if v.Output == nil && v.Status == thread.StatusFinished {
		v.Output = program.Output(th)
	}
	return nil
}

// retention is how long the server keeps a run that is over. It is asked once: it hardly ever changes.
func (c *reader) retention(ctx context.Context) (time.Duration, error) {
	c.retentionOnce.Lock()
	defer c.retentionOnce.Unlock()
	if c.keeps != 0 {
		return c.keeps, nil
	}
	ns, err := c.temporal.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: c.cfg.Namespace})
	if err != nil {
		return 0, err
	}
	c.keeps = ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	return c.keeps, nil
}

// whenNext is when the next attempt of a task begins, where that is more than a moment after the last one ended; else empty.
func whenNext(a *workflowpb.PendingActivityInfo) string {
	at := a.GetNextAttemptScheduleTime()
	if at == nil || at.AsTime().Sub(a.GetLastAttemptCompleteTime().AsTime()) < 5*time.Second {
		return ""
	}
	return " at " + at.AsTime().UTC().Format(time.RFC3339)
}

// problem says why an open run makes no progress although nothing failed; "" when there is no sign of that.
func (c *reader) problem(ctx context.Context, last *lastRun) (string, error) {
	if task := last.described.GetPendingWorkflowTask(); task.GetAttempt() > 1 {
		cause, err := c.lastTaskFailure(ctx, last)
		if err != nil {
			return "", c.explain(err, last.graph, last.thread)
		}
		return cause, nil
	}
	for _, a := range last.described.GetPendingActivities() {
		failure := a.GetLastFailure()
		kind := failure.GetApplicationFailureInfo().GetType()
		switch {
		case a.GetActivityType().GetName() == graphadapter.NotifyActivity:
			continue // nothing waits for whoever is to be told
		case kind == graphadapter.NodeUnservedType, kind == graphadapter.NodeInputType:
			return codec.Message(c.cfg.DataConverter, failure), nil
		case kind == graphadapter.NodeRetryType:
			return fmt.Sprintf("%s failed and will be tried again%s: %s", a.GetActivityType().GetName(), whenNext(a),
				codec.Message(c.cfg.DataConverter, failure)), nil
		case a.GetAttempt() > 3:
			return fmt.Sprintf("%s was started %d times: its workers get lost", a.GetActivityType().GetName(), a.GetAttempt()), nil
		}
		if held := c.progressOf(a).Unstored; held != "" {
			return fmt.Sprintf("%s has ended, and its worker holds the result until it can be stored: %s", a.GetActivityType().GetName(), held), nil
		}
	}
	return "", nil
}
