package superstep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/workflows/protocol"
)

// Show returns what is known of a thread: where it stands, its open questions, what it did outside, and why it makes
// no progress if it does not. For an open run it asks a worker; when none answers it replays the run's history, for which
// all the graph's reducers must be Superstep's own.
//
// Errors: ErrNotFound, ErrNoServer.
func (c *Client) Show(ctx context.Context, thread string) (ThreadView, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return ThreadView{}, err
	}
	v := c.viewOf(last)
	if !last.open {
		return v, c.addClosed(ctx, last, &v)
	}
	v.Problem, err = c.problem(ctx, last)
	if err != nil {
		return ThreadView{}, err
	}
	err = c.addOpen(ctx, last, &v)
	if v.Cancel != nil {
		v.Cancel.Waits = c.settling(last)
	}
	return v, err
}

// settling is what a compensation under way waits for, nil when none waits.
func (c *Client) settling(last *lastRun) *SettleView {
	for _, a := range last.described.GetPendingActivities() {
		var kept graphadapter.NodeProgress
		if a.GetActivityType().GetName() != taskrun.CompensateActivity ||
			c.cfg.DataConverter.FromPayloads(a.GetHeartbeatDetails(), &kept) != nil || kept.Settling == nil {
			continue
		}
		return &SettleView{Effect: kept.Settling.Effect, Key: kept.Settling.Key, Until: kept.Settling.Until}
	}
	return nil
}

func (c *Client) viewOf(last *lastRun) ThreadView {
	info := last.described.GetWorkflowExecutionInfo()
	v := ThreadView{
		Thread: last.thread, Graph: last.graph, RunID: last.runID, Status: statusOf(last.status),
		Started: c.began(info), Events: info.GetHistoryLength(), HistoryBytes: info.GetHistorySizeBytes(),
	}
	if info.GetCloseTime() != nil {
		v.Closed = info.GetCloseTime().AsTime()
	}
	return v
}

// began is when a run began, or the first of those that it continues as new ones.
func (c *Client) began(info *workflowpb.WorkflowExecutionInfo) time.Time {
	var at time.Time
	field, ok := info.GetMemo().GetFields()[protocol.MemoBegan]
	if !ok || c.cfg.DataConverter.FromPayload(field, &at) != nil || at.IsZero() {
		return info.GetStartTime().AsTime()
	}
	return at
}

func statusOf(s enumspb.WorkflowExecutionStatus) Status {
	switch s {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return StatusFinished
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return StatusCancelled
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return StatusTerminated
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return StatusTimedOut
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return StatusFailed
	default:
		return StatusRunning
	}
}

// addClosed adds what a closed run's last event says, and when it will be gone.
func (c *Client) addClosed(ctx context.Context, last *lastRun, v *ThreadView) error {
	if retention, err := c.retention(ctx); err == nil {
		v.Expires = v.Closed.Add(retention)
	}
	left, message, err := c.left(ctx, last)
	silent := last.status == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED ||
		last.status == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED && errors.Is(err, ErrNoWorker) // nobody else can tell more
	if err != nil && !silent {
		return err
	}
	v.Step, v.Output, v.Error, v.Failure, v.Cancel = left.Step, left.Output, message, left.Failure, cancelView(left.Cancel)
	v.Refused = refusedViews(left.Life.Refused)
	if v.Status == StatusFailed {
		v.Status = failureStatus(left.Failure)
	}
	if left.Spec != nil && left.Settings != nil {
		d, fused := graphadapter.ModeOf(left.Spec, left.Settings.Durability, left.Settings.Fused)
		v.Durability, v.Fused = modeShown(d), fused
	}
	if left.Spec == nil || left.State == nil {
		return nil
	}
	return addLeft(left, v)
}

// addLeft adds what the state that a closed run left tells.
func addLeft(left protocol.GraphResult, v *ThreadView) error {
	unread := func(err error) error {
		return &Error{Kind: ErrBadInput, Graph: v.Graph, Thread: v.Thread, Message: "the thread's stored state cannot be read", Cause: err}
	}
	program, err := pregel.Compile(left.Spec, unreadable(left.Spec))
	if err != nil {
		return unread(err)
	}
	thread, err := program.DecodeThread(left.State)
	if err != nil {
		return unread(err)
	}
	v.Effects = effectsOf(program.Ledgers(thread))
	if v.Output == nil && v.Status == StatusFinished {
		v.Output = program.Output(thread)
	}
	return nil
}

// effectsUnderWay reads the ledgers that the tasks under way have stored with their heartbeats.
func (c *Client) effectsUnderWay(last *lastRun) []EffectView {
	var out []EffectView
	for _, a := range last.described.GetPendingActivities() {
		var kept graphadapter.NodeProgress
		if c.cfg.DataConverter.FromPayloads(a.GetHeartbeatDetails(), &kept) != nil {
			continue
		}
		_, node, _ := strings.Cut(a.GetActivityType().GetName(), ".")
		out = append(out, effectsOf([]pregel.TaskLedger{{Node: node, Ledger: kept.Ledger}})...)
	}
	return out
}

func effectsOf(ledgers []pregel.TaskLedger) []EffectView {
	var out []EffectView
	for _, l := range ledgers {
		entries, err := graphadapter.DecodeLedger(l.Ledger)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.Kind == ledger.KindEffect {
				out = append(out, effectView(l.Node, e))
			}
		}
	}
	return out
}

// newestEffects are the effects that the run knows of, and in their place those that tasks under way know more of.
func newestEffects(known, underWay []EffectView) []EffectView {
	for _, e := range underWay {
		at := slices.IndexFunc(known, func(k EffectView) bool { return k.Key == e.Key })
		if at < 0 {
			known = append(known, e)
			continue
		}
		known[at] = e
	}
	return known
}

func (c *Client) retention(ctx context.Context) (time.Duration, error) {
	ns, err := c.describeNamespace(ctx)
	if err != nil {
		return 0, err
	}
	return ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), nil
}

func addState(v *ThreadView, s protocol.State) {
	v.Status, v.Drained, v.Paused = Status(s.Status), s.Drained, pauseView(s.Paused)
	v.Durability, v.Fused = modeShown(s.Durability), s.Fused
	v.Step = s.Snapshot.Step + 1 // the superstep after the checkpoint
	v.Questions, v.Waits, v.Kept = questionsOf(s.Questions), waitViews(s.Waits, dueIn(s.Due)), keptViews(s.Kept)
	v.Refused = refusedViews(s.Refused)
	for i := range v.Questions {
		addPending(v.Questions[i], s.Approvals)
	}
	v.Cancel = cancelView(s.Cancel)
	v.Effects = effectsOf(s.Ledgers)
	v.Nodes = s.Running
	if s.Failure != nil {
		v.Held, v.Failure, v.Error = true, s.Failure, fmt.Sprintf("thread %s: %v", v.Thread, s.Failure)
	}
	if v.Status == StatusStopped || v.Status == StatusPaused || v.Held {
		v.Nodes = s.Snapshot.Next
	}
	if v.Status != StatusRunning {
		v.Output = outputs(s.Output, s.Snapshot.Values)
	}
	for _, q := range append(s.Questions[:len(s.Questions):len(s.Questions)], s.Waits...) {
		if !slices.Contains(v.Nodes, q.Node) {
			v.Nodes = append(v.Nodes, q.Node)
		}
	}
}

func questionsOf(open []pregel.OpenQuestion) []Question {
	var out []Question
	for _, q := range open {
		out = append(out, questionView(q.Question, q.Node, q.Step))
	}
	return out
}
