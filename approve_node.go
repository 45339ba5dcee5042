package superstep

import (
	"context"
	"reflect"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

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
		return "WithApproval takes " + typeName(a.input) + ", but the node's input is " + typeName(n.input)
	}
	return ""
}
