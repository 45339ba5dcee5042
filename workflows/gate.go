package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
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
