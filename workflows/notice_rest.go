package workflows

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/workflows/protocol"
)

// How one notice is told: an attempt bounds all targets, and the waits between attempts grow.
const (
	noticeAttempt  = 30 * time.Second
	noticeRetry    = 500 * time.Millisecond
	maxNoticeRetry = 30 * time.Minute
)

// noticeState is what the run that continues this one has to know; nil when the run tells nobody.
func (r *run) noticeState() *protocol.NoticeState {
	if r.notices.life == nil {
		return nil
	}
	return &protocol.NoticeState{Known: r.notices.known, Untold: r.notices.left()}
}

// left is all that is not told yet.
func (n *notices) left() (left []protocol.Untold) {
	for _, t := range n.untold {
		left = append(left, t.Untold)
	}
	return left
}

// stopTelling ends what is under way: somebody else goes on with it.
func (n *notices) stopTelling() {
	if n.stop != nil {
		n.stop()
	}
}

// leaveNotices hands what is not told yet to a workflow of its own, because the run ends. That somebody should answer is no
// news any more.
func (r *run) leaveNotices(ctx workflow.Context) {
	if r.notices.life == nil {
		return
	}
	r.notices.look = true
	r.attendNotices(ctx)
	var left []protocol.Untold
	for _, u := range r.notices.left() {
		if u.Kind == approval.KindExpired || u.Kind == approval.KindAnswered {
			left = append(left, u)
		}
	}
	r.notices.stopTelling()
	if len(left) == 0 {
		return
	}
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:        "superstep.notices/" + r.lines.run,
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON, WorkflowTaskTimeout: noticesTaskTimeout,
	})
	if err := workflow.ExecuteChildWorkflow(ctx, protocol.NoticesWorkflow, left).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("what was not told is not told any more", "notices", len(left), "error", err)
	}
}

// noticesTaskTimeout is how long a lost worker keeps a workflow task.
const noticesTaskTimeout = 3 * time.Second

// Notices tells what a run that has ended has not told.
func (*Graphs) Notices(ctx workflow.Context, left []protocol.Untold) error {
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
