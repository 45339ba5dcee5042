package workflows

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/workflows/protocol"
)

// How one notice is told: an attempt bounds all targets, and the waits between attempts grow.
const (
	noticeAttempt  = 30 * time.Second
	noticeRetry    = 500 * time.Millisecond
	maxNoticeRetry = 30 * time.Minute
)

// notices carry to people outside what the run's life tells them, each by an activity in a coroutine of its own. Nothing
// waits for them. A run that is to tell nobody has none of it, and no event for it.
type notices struct {
	// alive is the context of the activities, end its end; nil while the run tells nobody.
	alive workflow.Context
	end   workflow.CancelFunc
	under map[int]workflow.CancelFunc // by their numbers
}

// openNotices begins to tell people outside, with what an earlier execution had to tell. What a run tells goes on while the run
// is being cancelled.
func (p *people) openNotices(ctx workflow.Context) {
	n := &p.notices
	if !p.in.Found.Notices || n.alive != nil {
		return
	}
	n.alive, _ = workflow.NewDisconnectedContext(ctx)
	n.alive, n.end = workflow.WithCancel(n.alive)
	n.under = map[int]workflow.CancelFunc{}
	p.act(ctx, p.life.TellPeople())
}

// tell begins to tell a notice.
func (n *notices) tell(t life.Tell, told func(workflow.Context)) {
	ctx, stop := workflow.WithCancel(n.alive)
	n.under[t.Number] = stop
	workflow.Go(ctx, func(ctx workflow.Context) {
		if err := tell(ctx, t.Untold); err != nil && !temporal.IsCanceledError(err) {
			workflow.GetLogger(ctx).Warn("nobody could be told", "notice", t.ID, "kind", t.Kind, "error", err)
		}
		delete(n.under, t.Number)
		if n.alive.Err() == nil { // otherwise the notice is handed on
			told(ctx)
		}
	})
}

// hush ends the telling of a notice that is no news any more.
func (n *notices) hush(number int) {
	if stop, ok := n.under[number]; ok {
		stop()
	}
}

// stop ends what is under way: somebody else goes on with it.
func (n *notices) stop() {
	if n.end != nil {
		n.end()
	}
}

// leaveNotices hands what is not told yet to a workflow of its own, because the run ends.
func (p *people) leaveNotices(ctx workflow.Context) {
	left := p.life.LeaveNotices(workflow.Now(ctx))
	p.notices.stop()
	p.life.Actions() // nothing is begun any more
	if len(left) == 0 {
		return
	}
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:        "superstep.notices/" + p.checkpoints.run,
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON, WorkflowTaskTimeout: noticesTaskTimeout,
	})
	if err := workflow.ExecuteChildWorkflow(ctx, protocol.NoticesWorkflow, left).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("what was not told is not told any more", "notices", len(left), "error", err)
	}
}

// noticesTaskTimeout is how long a lost worker keeps a workflow task.
const noticesTaskTimeout = 3 * time.Second

// Notices tells what a run that has ended has not told.
func (*Graphs) Notices(ctx workflow.Context, left []life.Untold) error {
	all := workflow.NewWaitGroup(ctx)
	for _, u := range left {
		all.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer all.Done()
			if err := tell(ctx, u); err != nil {
				workflow.GetLogger(ctx).Warn("nobody could be told", "notice", u.ID, "kind", u.Kind, "error", err)
			}
		})
	}
	all.Wait(ctx)
	return nil
}

// tell tells people outside, again and again until they have it or its time is over.
func tell(ctx workflow.Context, u life.Untold) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    noticeAttempt,
		ScheduleToCloseTimeout: max(u.Until.Sub(workflow.Now(ctx)), noticeAttempt),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: noticeRetry, BackoffCoefficient: 2, MaximumInterval: maxNoticeRetry,
		},
		Summary: fmt.Sprintf("%s %s", u.Kind, u.Question),
	})
	return workflow.ExecuteActivity(ctx, graphadapter.NotifyActivity, u.Notice).Get(ctx, nil)
}
