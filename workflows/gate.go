package workflows

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// A run under rules for control: whoever does something to it proves who they are, with a token that the gate of the run's
// worker verifies, as things are now. An update without a token is refused by its validator, which leaves no event; one with
// a token is verified in its handler, and what the validator had checked is checked again after that. A signal has no
// validator, so the run notes once whether it is under such rules, and again when that changes.

// gate asks what a worker's rules say, for a run.
type gate struct {
	*engine
	// governs says whether what is done to runs is under rules on this worker; nil says no. Only validators, which are never
	// replayed, and side effects may ask.
	governs func() bool
}

// governed reports whether what is done to the run is under rules on this worker: see governs.
func (g *gate) governed() bool { return g.governs != nil && g.governs() }

// changeGoverned names the note of whether the run is under rules for control.
const changeGoverned = "superstep.governed"

// governedNow reports whether what is done to runs is under rules, where no validator could ask. It is one event for a run,
// and one more each time that it changes.
func (g *gate) governedNow(ctx workflow.Context) bool {
	noted := workflow.MutableSideEffect(ctx, changeGoverned, func(workflow.Context) any {
		return g.governed()
	}, func(a, b any) bool { return a == b })
	var governed bool
	if err := noted.Get(&governed); err != nil {
		panic("superstep: whether the run is under rules for control cannot be read: " + err.Error())
	}
	return governed
}

// askControl asks who wants something done to the run, also when the run is being cancelled: who asked is told.
func (g *gate) askControl(ctx workflow.Context, p life.Proof) (ruling approval.Ruling) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	check := approval.ControlCheck{Thread: workflow.GetInfo(ctx).WorkflowExecution.ID, Graph: g.in.Graph, Control: p.Control,
		By: p.By, Token: p.Token}
	if err := verify(ctx, graphadapter.ControlActivity, "", "verify "+string(p.Op), check, &ruling); err != nil {
		workflow.GetLogger(ctx).Error("who asks could not be verified", "op", p.Op, "error", err)
		return life.Unavailable
	}
	return ruling
}

// verifyHereWithin bounds a verification in the workflow task. It is well below the workflow task's own time, since the run
// takes in nothing else meanwhile.
const verifyHereWithin = time.Second

// askGate asks about answers to approvals.
func (g *gate) askGate(ctx workflow.Context, req graphadapter.VerifyRequest) (reply graphadapter.VerifyReply, err error) {
	count := 0
	for _, ones := range req.Requests {
		count += len(ones)
	}
	err = verify(ctx, graphadapter.VerifyActivity, g.verifyQueue(req.Questions), fmt.Sprintf("verify %d answers", count), req, &reply)
	return reply, err
}

// verify asks the gate of the worker that has the run, which costs no way to the server and back. A gate that is slow or at
// fault is asked again by an activity, as is that of another queue.
func verify(ctx workflow.Context, activity, queue, summary string, req, reply any) error {
	within := graphadapter.VerifyWithin
	if queue == "" {
		here := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			ScheduleToCloseTimeout: verifyHereWithin, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, Summary: summary,
		})
		if workflow.ExecuteLocalActivity(here, activity, req).Get(here, reply) == nil {
			return nil
		}
		within -= verifyHereWithin
	}
	there := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToCloseTimeout: within,
		StartToCloseTimeout:    graphadapter.VerifyWithin * 2 / 5, // a lost worker leaves time for another
		RetryPolicy:            retries(),
		Summary:                summary,
	})
	return workflow.ExecuteActivity(there, activity, req).Get(there, reply)
}

// verifyQueue is where the nodes run that ask: the worker there has their effects.
func (g *gate) verifyQueue(asked []graphadapter.VerifyQuestion) string {
	queue := g.program.TaskQueue(&pregel.Task{Node: asked[0].Node})
	for _, q := range asked {
		if g.program.TaskQueue(&pregel.Task{Node: q.Node}) != queue {
			return ""
		}
	}
	return queue
}

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
		ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON, WorkflowTaskTimeout: protocol.WorkflowTaskTimeout,
	})
	if err := workflow.ExecuteChildWorkflow(ctx, protocol.NoticesWorkflow, left).GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("what was not told is not told any more", "notices", len(left), "error", err)
	}
}

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
