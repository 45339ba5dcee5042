package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
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

// unproven refuses in a validator what takes a token and has none.
func (r *run) unproven(op approval.Op, token string) error {
	switch {
	case len(token) > protocol.MaxTokenBytes:
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "a token has at most %d bytes", protocol.MaxTokenBytes)
	case token == "" && r.governs != nil && r.governs():
		return deniedError(op, unsigned(op))
	}
	return nil
}

// unsigned is the ruling on a request that takes a token and has none.
func unsigned(op approval.Op) approval.Ruling {
	return approval.Ruling{Code: approval.CodeUnsigned,
		Reason: fmt.Sprintf("the rules say who may %s a run, and this request has no token to prove who asks", op)}
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

// request is something that is to be done to the run.
type request struct {
	approval.Control
	by, token string
	// still says why it cannot be done any more once its token is verified; nil where nothing can be in the way.
	still func() error
}

// proven returns who asks for something, as far as that is known: by a token that the gate allows, or as they say where it
// takes none. An error is why it is not done, and is in the audit.
func (r *run) proven(ctx workflow.Context, req request) (trail.Actor, error) {
	actor := trail.Actor{Claimed: req.by}
	if req.token == "" {
		return actor, nil // its validator, or provenSignal, has let it through
	}
	r.approvals.proving++
	defer func() { r.approvals.proving-- }()
	ruling := r.askControl(ctx, req)
	if ruling.Allowed && ruling.Token != "" && slices.Contains(r.approvals.Used, ruling.Token) {
		ruling.Allowed, ruling.Code, ruling.Reason = false, approval.CodeUsed, "the token was used before: a token counts once"
	}
	if !ruling.Allowed {
		return actor, r.deny(ctx, req, ruling)
	}
	if req.still != nil {
		if err := req.still(); err != nil {
			return actor, err
		}
	}
	r.approvals.useToken(ruling.Token)
	actor.Ruling = ruling
	return actor, nil
}

// provenSignal is proven for what came by signal.
func (r *run) provenSignal(ctx workflow.Context, req request) (trail.Actor, error) {
	if len(req.token) > protocol.MaxTokenBytes {
		return trail.Actor{}, protocol.Refuse(protocol.ErrTypeBadUpdate, "a token has at most %d bytes", protocol.MaxTokenBytes)
	}
	if req.token == "" && r.governedNow(ctx) {
		return trail.Actor{}, r.deny(ctx, req, unsigned(req.Op))
	}
	return r.proven(ctx, req)
}

// deny notes what was refused: a flood of it is a few entries with counts.
func (r *run) deny(ctx workflow.Context, req request, ruling approval.Ruling) error {
	r.approvals.trail.Refuse(trail.Denied(req.Op, trail.Actor{Claimed: named(req.by), Ruling: ruling}), 1)
	r.auditRefusals(ctx, false)
	return deniedError(req.Op, ruling)
}

// deniedError is what who asked is told.
func deniedError(op approval.Op, ruling approval.Ruling) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("%s is not allowed: %s", op, ruling.Reason), protocol.ErrTypeNotAllowed, nil,
		protocol.AnswerRefusal{Ruling: ruling})
}

// askControl asks the gate of the worker that has the run; when it is slow or the worker is lost, as an activity of its own. It
// asks also when the run is being cancelled: who asked is told.
func (r *run) askControl(ctx workflow.Context, req request) (ruling approval.Ruling) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	check := approval.ControlCheck{Thread: workflow.GetInfo(ctx).WorkflowExecution.ID, Graph: r.in.Graph, Control: req.Control,
		By: req.by, Token: req.token}
	summary := "verify " + string(req.Op)
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
		workflow.GetLogger(ctx).Error("who asks could not be verified", "op", req.Op, "error", err)
		return unavailable
	}
	return ruling
}

// pausedOn is what an unpause is about: this pause.
func (r *run) pausedOn() string {
	if r.paused == nil {
		return ""
	}
	return approval.PausedAt(r.paused.At)
}

// onCancel ends the run, as SignalCancel does, for those who are to be told whether they may.
func (r *run) onCancel(cancel func()) func(ctx workflow.Context, req protocol.CancelRequest) (protocol.CancelReply, error) {
	return func(ctx workflow.Context, req protocol.CancelRequest) (protocol.CancelReply, error) {
		by, err := r.proven(ctx, cancelling(req))
		if err != nil {
			return protocol.CancelReply{}, err
		}
		if why := r.takeCancel(ctx, req, by); why != "" {
			return protocol.CancelReply{}, protocol.Refuse(protocol.ErrTypeBusy, "%s", why)
		}
		cancel()
		return protocol.CancelReply{At: workflow.Now(ctx)}, nil
	}
}

// cancelling is a cancellation as the gate is asked about it.
func cancelling(req protocol.CancelRequest) request {
	return request{Control: approval.Control{Op: approval.OpCancel, On: string(req.Mode)}, by: req.By, token: req.Token}
}

// provenBegin refuses to begin what the rules do not allow who asks for it: the thread stays as it was. A run that just
// begins, with new input or none, takes no proof, and has no event for this.
func (r *run) provenBegin(ctx workflow.Context) error {
	asked := r.in.Asked
	if err := boundedAsked(asked); err != nil {
		return err
	}
	control, err := r.oneControl(r.beginOps(), tokenOf(asked))
	if err == nil && control.Op != "" {
		var by trail.Actor
		by, err = r.provenSignal(ctx, request{Control: control, by: nameOf(asked), token: tokenOf(asked)})
		r.in.Asked = provenBy(asked, by)
		return err
	}
	r.in.Asked = provenBy(asked, trail.Actor{})
	return err
}

// beginOps is what the run's beginning does to its thread.
func (r *run) beginOps() []approval.Control {
	if len(r.in.Edits) > 0 {
		return []approval.Control{{Op: approval.OpUpdate}}
	}
	b := trail.Beginning{Failed: r.in.Suspect, Input: pregel.Input(r.in.Input)}
	if r.in.Replay {
		b.Checkpoint = headID(r.thread)
	}
	for _, a := range r.answersTo(r.thread, r.in.Input.Resume) {
		b.Answered = append(b.Answered, a.QuestionID)
	}
	return b.Ops(false)
}

// provenCancel is who asked for the run to clean up behind the one before it, and why that is not done.
func (r *run) provenCancel(ctx workflow.Context) error {
	req := r.in.Cancel.CancelRequest
	by, err := r.provenSignal(ctx, cancelling(req))
	if err == nil {
		r.takeCancel(ctx, req, by)
	}
	return err
}
