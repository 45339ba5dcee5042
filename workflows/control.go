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

// Governing says by governs whether what is done to runs is under rules now. may is asked by the desk whether something would
// be allowed, so that no run begins for what its gate refuses; it must not take longer than a query may. It returns g.
func (g *Graphs) Governing(governs func() bool, may func(approval.ControlCheck) approval.Ruling) *Graphs {
	g.governs, g.may = governs, may
	return g
}

// changeGoverned names the note of whether the run is under rules for control.
const changeGoverned = "superstep.governed"

// governedNow reports whether what is done to runs is under rules, where no validator could ask. It is one event for a run,
// and one more each time that it changes.
func (r *run) governedNow(ctx workflow.Context) bool {
	noted := workflow.MutableSideEffect(ctx, changeGoverned, func(workflow.Context) any {
		return r.governs != nil && r.governs()
	}, func(a, b any) bool { return a == b })
	var governed bool
	if err := noted.Get(&governed); err != nil {
		panic("superstep: whether the run is under rules for control cannot be read: " + err.Error())
	}
	return governed
}

// askControl asks the gate of the worker that has the run; when it is slow or the worker is lost, as an activity of its own. It
// asks also when the run is being cancelled: who asked is told.
func (r *run) askControl(ctx workflow.Context, p life.Proof) (ruling approval.Ruling) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	check := approval.ControlCheck{Thread: workflow.GetInfo(ctx).WorkflowExecution.ID, Graph: r.in.Graph, Control: p.Control,
		By: p.By, Token: p.Token}
	summary := "verify " + string(p.Op)
	here := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: verifyHereWithin, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, Summary: summary,
	})
	if workflow.ExecuteLocalActivity(here, graphadapter.ControlActivity, check).Get(here, &ruling) == nil {
		return ruling
	}
	there := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: graphadapter.VerifyWithin - verifyHereWithin,
		StartToCloseTimeout:    graphadapter.VerifyWithin * 2 / 5,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval},
		Summary:                summary,
	})
	if err := workflow.ExecuteActivity(there, graphadapter.ControlActivity, check).Get(there, &ruling); err != nil {
		workflow.GetLogger(ctx).Error("who asks could not be verified", "op", p.Op, "error", err)
		return life.Unavailable
	}
	return ruling
}

// provenBegin refuses to begin what the rules do not allow who asks for it: the thread stays as it was. A run that just
// begins, with new input or none, takes no proof, and has no event for this.
func (r *run) provenBegin(ctx workflow.Context) error {
	asked := r.in.Asked
	if err := boundedAsked(asked); err != nil {
		return err
	}
	control, err := r.oneControl(r.beginOps(), tokenOf(asked))
	r.in.Asked = provenBy(asked, life.Actor{})
	if err != nil || control.Op == "" {
		return err
	}
	return r.take(ctx, request{unseen: true, Command: life.Act{Name: string(control.Op), By: nameOf(asked), Token: tokenOf(asked), What: control,
		Do: func(by life.Actor) any { r.in.Asked = provenBy(asked, by); return nil }}}).Err
}

// beginOps is what the run's beginning does to its thread.
func (r *run) beginOps() []approval.Control {
	if len(r.in.Edits) > 0 {
		return []approval.Control{{Op: approval.OpUpdate}}
	}
	b := life.Beginning{Failed: r.in.Suspect, Input: pregel.Input(r.in.Input)}
	if r.in.Replay {
		b.Checkpoint = headID(r.thread)
	}
	for _, a := range life.AnswersTo(r.program.OpenQuestions(r.thread), r.in.Input.Resume) {
		b.Answered = append(b.Answered, a.QuestionID)
	}
	return b.Ops(false)
}

// verifyHereWithin bounds a verification in the workflow task. It is well below the workflow task's own time, since the run
// takes in nothing else meanwhile.
const verifyHereWithin = time.Second

// askGate asks the gate of the worker that has the run, which costs no way to the server and back; a gate that is slow, or
// at fault, is asked again as an activity, as is that of another queue.
func (r *run) askGate(ctx workflow.Context, req graphadapter.VerifyRequest) (reply graphadapter.VerifyReply, err error) {
	count, within, queue := 0, graphadapter.VerifyWithin, r.verifyQueue(req.Questions)
	for _, ones := range req.Requests {
		count += len(ones)
	}
	summary := fmt.Sprintf("verify %d answers", count)
	if queue == "" {
		here := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			ScheduleToCloseTimeout: verifyHereWithin, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1}, Summary: summary,
		})
		err = workflow.ExecuteLocalActivity(here, graphadapter.VerifyActivity, req).Get(here, &reply)
		if err == nil {
			return reply, nil
		}
		within -= verifyHereWithin
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		ScheduleToCloseTimeout: within,
		StartToCloseTimeout:    graphadapter.VerifyWithin * 2 / 5, // a lost worker leaves time for another
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval,
		},
		Summary: summary,
	})
	err = workflow.ExecuteActivity(ctx, graphadapter.VerifyActivity, req).Get(ctx, &reply)
	return reply, err
}

// verifyQueue is where the nodes run that ask: the worker there has their effects.
func (r *run) verifyQueue(asked []graphadapter.VerifyQuestion) string {
	queue := r.program.TaskQueue(&pregel.Task{Node: asked[0].Node})
	for _, q := range asked {
		if r.program.TaskQueue(&pregel.Task{Node: q.Node}) != queue {
			return ""
		}
	}
	return queue
}
