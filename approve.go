package superstep

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
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

// WithApproval asks people before the node's function runs: ask says what would be done for this input, and false that
// nobody need be asked. In is what the function takes: the state, or the input of a node made with [AddInputNode]. The
// function runs once it is approved; a rejection, or nobody's answer in time, fails the node with a [*RejectedError], for
// an error handler to take over. See [Approve], but nobody can propose other parameters: the function would not see them.
func WithApproval[In any](ask func(In) (approval.Action, bool)) NodeOption {
	return nodeOption(func(n *nodeOptions) {
		n.approval = &nodeApproval{input: reflect.TypeFor[In](), missing: ask == nil, before: approvedFirst(ask)}
	})
}

// nodeApproval is WithApproval without its type.
type nodeApproval struct {
	input   reflect.Type
	missing bool
	// before returns the function of a node that asks first. fromState says that its input is read from the state.
	before func(r *router, fromState bool, run graphadapter.NodeFunc) graphadapter.NodeFunc
}

// nodeKey is the key of a node's own approval.
const nodeKey = "superstep.node"

func approvedFirst[In any](ask func(In) (approval.Action, bool)) func(*router, bool, graphadapter.NodeFunc) graphadapter.NodeFunc {
	return func(r *router, fromState bool, run graphadapter.NodeFunc) graphadapter.NodeFunc {
		return func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			read := in
			if !fromState && read.Arg == nil {
				read.Arg = in.State[pregel.FunctionInput] // an entrypoint's
			}
			sc := taskScope(ctx, r.graph, r.node)
			input, err := readInput[In](sc, read, fromState)
			if err != nil {
				return pregel.Command{}, graphadapter.Permanent(err)
			}
			action, needed := ask(input)
			if err := sc.with(nil); err != nil {
				return pregel.Command{}, err
			}
			if needed {
				if err := approved(ctx, action); err != nil {
					return pregel.Command{}, err
				}
			}
			return run(ctx, in)
		}
	}
}

// approved returns nil once the action is approved.
func approved(ctx context.Context, action approval.Action) error {
	t, _ := taskrun.TaskFrom(ctx)
	d, err := t.Approve(ctx, taskrun.ApprovalRequest{Action: action, Key: nodeKey, NoEdit: true})
	if err != nil {
		return answerError(err)
	}
	if action.Tool == "" {
		action.Tool = t.Info().Node
	}
	return t.Rejected(action.Tool, d)
}

// approvalProblem says what is wrong with a node's approval.
func approvalProblem(n nodeDecl) string {
	a := n.options.approval
	switch {
	case a == nil:
		return ""
	case n.subgraph:
		return "WithApproval is for functions: give it to the nodes of the subgraph"
	case a.missing:
		return "WithApproval has no function"
	case a.input != n.input:
		return "WithApproval takes " + jsonfit.TypeName(a.input) + ", but the node's input is " + jsonfit.TypeName(n.input)
	}
	return ""
}
