package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
)

// WithGate makes the worker verify answers to approvals; without a gate it refuses all of them. It returns n.
func (n *Nodes) WithGate(g *approval.Gate) *Nodes {
	n.gate = g
	return n
}

// use is how nodes ask the gate right before they do what was approved; nil without one.
func (n *Nodes) use() graphadapter.UseGate {
	if n.gate == nil {
		return nil
	}
	return func(ctx context.Context, check approval.UseCheck) (approval.Ruling, error) {
		ruling, err := n.gate.Use(ctx, check)
		if ruling.Cause != nil {
			activity.GetLogger(ctx).Error("the gate cannot be asked", "thread", check.Thread, "node", check.Node, "error", ruling.Cause)
		}
		return ruling, err
	}
}

// noGate says what to do about a worker that cannot verify anything.
const noGate = "the worker that serves the graph has no gate to verify answers with: start it with the keys of those who " +
	"sign them (WorkerConfig.Gate)"

// Verify is the activity that says which replies to approvals count, as things are now. What cannot be verified does not:
// it fails only to be repeated on another worker.
func (n *Nodes) Verify(ctx context.Context, req graphadapter.VerifyRequest) (graphadapter.VerifyReply, error) {
	g := n.byName[req.Graph]
	if g == nil {
		err := fmt.Errorf("this worker does not serve the graph %q", req.Graph)
		return graphadapter.VerifyReply{}, temporal.NewApplicationErrorWithCause(err.Error(), graphadapter.NodeUnservedType, err)
	}
	v := verification{gate: n.gate, graph: g, req: req}
	for _, q := range req.Questions {
		v.votes = append(v.votes, slices.Clone(q.Votes))
	}
	var reply graphadapter.VerifyReply
	for _, one := range req.Requests {
		rulings, err := v.request(ctx, one)
		if err != nil {
			activity.GetLogger(ctx).Error("answers to approvals cannot be verified", "thread", req.Thread, "error", err)
			return graphadapter.VerifyReply{}, err
		}
		reply.Rulings = append(reply.Rulings, rulings)
	}
	return reply, nil
}

// Control is the activity that says whether something may be done to a run, as things are now. A worker without a gate has no
// rules that it could be against.
func (n *Nodes) Control(ctx context.Context, check approval.ControlCheck) (approval.Ruling, error) {
	ruling, err := n.gate.Control(ctx, check)
	if ruling.Cause != nil {
		activity.GetLogger(ctx).Error("the gate cannot be asked", "thread", check.Thread, "op", check.Control.Op, "error", ruling.Cause)
	}
	return ruling, err
}

// verification is one execution of the activity.
type verification struct {
	gate  *approval.Gate
	graph *graphadapter.Graph
	req   graphadapter.VerifyRequest
	votes [][]approval.Vote // of each question, with those that were allowed here
}

// request verifies the replies of one request. Its approvals count for what is verified next if all of them do.
func (v *verification) request(ctx context.Context, replies []graphadapter.VerifyOne) ([]approval.Ruling, error) {
	rulings := make([]approval.Ruling, len(replies))
	all := true
	for i, one := range replies {
		var err error
		if rulings[i], err = v.one(ctx, one); err != nil {
			return nil, err
		}
		all = all && rulings[i].Allowed
	}
	for i, one := range replies {
		if all && one.Reply.Verdict == approval.VerdictApprove {
			v.votes[one.Question] = append(v.votes[one.Question], rulings[i].Vote(one.Reply))
		}
	}
	return rulings, nil
}

func (v *verification) one(ctx context.Context, one graphadapter.VerifyOne) (approval.Ruling, error) {
	if v.gate == nil {
		return approval.Ruling{Code: approval.CodeUnavailable, Reason: noGate}, nil
	}
	if one.Question < 0 || one.Question >= len(v.req.Questions) {
		return approval.Ruling{}, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("a reply is for question %d of %d", one.Question, len(v.req.Questions)), "BadRequest", nil)
	}
	q := v.req.Questions[one.Question]
	var action approval.Action
	if err := json.Unmarshal(q.Action, &action); err != nil {
		return approval.Ruling{Code: approval.CodeMalformed, Reason: "the action that the question is about cannot be read"}, nil
	}
	ruling, err := v.gate.Reply(ctx, v.graph.Knowing(approval.ReplyCheck{
		Thread: v.req.Thread, Graph: v.req.Graph, Node: q.Node, Question: q.ID, Action: action, Asked: q.Asked,
		Token: one.Token, By: one.By, Reply: one.Reply, Votes: v.votes[one.Question],
	}))
	if ruling.Cause != nil {
		activity.GetLogger(ctx).Error("the gate cannot be asked", "thread", v.req.Thread, "question", q.ID, "error", ruling.Cause)
	}
	return ruling, err
}
