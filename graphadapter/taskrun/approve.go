package taskrun

import (
	"context"
	"fmt"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// MaxApprovalRounds bounds how often one action is asked about: the first time, and anew after each edit or drift.
const MaxApprovalRounds = 20

// ApprovalRequest asks for the approval of an action.
type ApprovalRequest struct {
	Action approval.Action
	// Key names the request within the task: requests with one key are the same request. Without a key it is known by its action, and within
	// that by its order in the scope. A request of the same tool with another action, in the place of one that is not made now, is that
	// request, which has changed.
	Key string
	// NoEdit says that nobody can propose other parameters: whoever asks could not go on with them.
	NoEdit bool
}

// Approve returns what was decided about an action, of which it sets ParamsHash, Before and, when they are empty, Tool (the
// node's name) and Requester. While nobody has decided it records the question and returns [ErrInterrupted], as [TaskRun.AskFor] does.
//
// Other parameters that somebody proposes are a new question, and so is an action that is not what was approved any
// more, when its Drift says so; otherwise that is a [*DriftError]. Right before Approve returns an approval the
// environment's gate is asked whether it may be acted upon: if not, the error is a [*NotAllowedError]. A rejection is a
// decision, and so is a silence that denies. An approval that does not count any more, since it has lapsed, say, is asked for
// anew. Decision.Params are set when they are not the action's own.
//
// The action has to be the same each time that the node runs: one that changes is asked about anew, at most
// [MaxApprovalRounds] times.
func (t *TaskRun) Approve(ctx context.Context, r ApprovalRequest) (approval.Decision, error) {
	asks := approving{t: t, key: "approve/key/" + r.Key, noEdit: r.NoEdit, with: func(params pregel.Value) (approval.Action, error) {
		a := r.Action
		if params != nil {
			a.Params = params
		}
		return a, nil
	}}
	if r.Key == "" {
		if err := asks.findPlace(); err != nil {
			return approval.Decision{}, err
		}
	}
	decision, err := asks.decide(ctx)
	if err != nil || decision.Verdict != approval.VerdictApprove {
		return decision, err
	}
	return decision, asks.recordUse(ctx, decision)
}

// decide goes through the rounds until one is decided, or has no answer yet. With VerdictApprove the decision may be
// acted upon now.
func (a *approving) decide(ctx context.Context) (approval.Decision, error) {
	for a.round = 0; a.round < MaxApprovalRounds; a.round++ {
		action, err := a.action()
		if err != nil {
			return approval.Decision{}, a.failed(err)
		}
		decision, open, err := a.ask(ctx, action)
		if err != nil {
			return approval.Decision{}, err
		}
		if !open {
			continue // it is another action by now, which nobody had decided on
		}
		decided := false
		switch decision.Verdict {
		case approval.VerdictEdit:
			a.edited(action, decision)
		case approval.VerdictApprove:
			decided, err = a.approved(ctx, action, decision)
		default:
			decided = true
		}
		if decided || err != nil {
			decision.Params = a.params
			return decision, err
		}
	}
	return approval.Decision{}, a.failed(fmt.Errorf("it was asked about %d times, each time anew since the "+
		"action had changed or its approval did not count any more: compute the action from the state, or in a Task, so that it is "+
		"the same each time the node runs", MaxApprovalRounds))
}
