package superstep

import (
	"context"
	"errors"
	"fmt"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
)

// RejectedError says that an action was rejected, or approved by nobody in time, so nothing was done: [Effect.Call]
// returns it, and a node with [WithApproval] fails with it.
type RejectedError = taskrun.RejectedError

// DriftError says that what was approved is not what would be done now, so nothing was done; see [approval.Drift].
type DriftError = taskrun.DriftError

// NotAllowedError says that an approval was given, but that the gate does not allow it to be acted upon now, so nothing
// was done. Its Code says why; approval.CodeUnavailable, that the gate could not be asked, is the only one that a retry
// may mend.
type NotAllowedError = taskrun.NotAllowedError

// Approve asks people to approve an action, and returns what they decided. While they have not it returns
// [ErrInterrupted]: the node returns that error, the run waits, and the node runs again from its start when they have.
//
//	decision, err := superstep.Approve(ctx, approval.Action{
//		Tool: "refund", Summary: "Refund 250.00 to order o-7", Params: params, Permissions: []string{"refund.write"},
//	})
//	if err != nil || decision.Verdict != approval.VerdictApprove {
//		return s, err
//	}
//
// An approval is one of exactly this action, with these parameters. Others that an approver proposes are another
// question; when they are approved, Decision.Params has them, and the node has to go on with those. An action that
// has changed since is asked about anew, or a [*DriftError], as its Drift says: so compute it from the state or in a
// [Task]. Right before Approve returns an approval the worker's gate is asked whether it still counts; if not, that is a
// [*NotAllowedError]. A rejection, and a silence that denies, are decisions and no errors.
//
// Tool is the node's name unless the action says so, and Requester who started the run. For a write prefer
// [Effect].Approval: it is checked right before the call, and the ledger says by which decision it was made. An approval
// is known by its order among those of the node, or by [WithKey].
func Approve(ctx context.Context, action approval.Action, opts ...QuestionOption) (approval.Decision, error) {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return approval.Decision{}, fmt.Errorf("approve: %w", ErrOutsideNode)
	}
	var o questionOptions
	for _, opt := range opts {
		opt.applyQuestion(&o)
	}
	key, err := o.key.value()
	if err == nil && o.schema != nil {
		err = errors.New("an approval's answer has a schema of its own: leave out WithAnswerSchema")
	}
	if err != nil {
		return approval.Decision{}, graphadapter.Permanent(fmt.Errorf("%sapprove: %w", place(t.Info().Graph, t.Info().Node), err))
	}
	decision, err := t.Approve(ctx, taskrun.ApprovalRequest{Action: action, Key: key})
	if err != nil {
		return approval.Decision{}, answerError(err)
	}
	return decision, nil
}
