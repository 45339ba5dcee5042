package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// verified is a request whose answers to approvals are verified, and what a gate said of each.
type verified struct {
	req     protocol.ResumeRequest
	answers []pregel.Answer
	asked   []openApproval
	replies []approval.Reply
	rulings []approval.Ruling
}

func (r *run) verifies(req protocol.ResumeRequest) *verified {
	v := &verified{req: req, answers: r.gatedAnswers(req)}
	for _, a := range v.answers {
		o, _ := r.asksFor(a.QuestionID)
		reply, _ := readReply(a.Value) // which the refusal of the request has read
		v.asked, v.replies = append(v.asked, o), append(v.replies, reply)
	}
	return v
}

// verifyHereWithin bounds a verification in the workflow task. It is well below the workflow task's own time, since the run
// takes in nothing else meanwhile.
const verifyHereWithin = time.Second

// verify asks a worker's gate about all of them. An error says why nobody could: then none counts.
func (r *run) verify(ctx workflow.Context, all []*verified) error {
	reply, err := r.askGate(ctx, r.verifyQueue(all), r.verifyRequest(ctx, all))
	if err == nil {
		err = ruledOn(reply, all)
	}
	for i, v := range all {
		if err != nil {
			v.rulings = slices.Repeat([]approval.Ruling{unavailable}, len(v.answers))
		} else {
			v.rulings = reply.Rulings[i]
		}
	}
	return err
}

// askGate asks the gate of the worker that has the run, which costs no way to the server and back; a gate that is slow, or
// at fault, is asked again as an activity, as is that of another queue.
func (r *run) askGate(ctx workflow.Context, queue string, req graphadapter.VerifyRequest) (reply graphadapter.VerifyReply, err error) {
	summary, within := fmt.Sprintf("verify %d answers", len(req.Requests)), graphadapter.VerifyWithin
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

// ruledOn says what is missing when not each answer got a ruling: then none of them counts.
func ruledOn(reply graphadapter.VerifyReply, all []*verified) error {
	if len(reply.Rulings) != len(all) {
		return fmt.Errorf("the gate ruled on %d of %d requests", len(reply.Rulings), len(all))
	}
	for i, v := range all {
		if len(reply.Rulings[i]) != len(v.answers) {
			return fmt.Errorf("the gate ruled on %d of %d answers", len(reply.Rulings[i]), len(v.answers))
		}
	}
	return nil
}

// unavailable is the ruling when nobody ruled.
var unavailable = approval.Ruling{Code: approval.CodeUnavailable,
	Reason: fmt.Sprintf("no worker verified it within %d seconds: nothing was taken, answer again", graphadapter.VerifyWithin/time.Second)}

// verifyQueue is where the nodes run that ask: the worker there has their effects.
func (r *run) verifyQueue(all []*verified) string {
	queue := r.program.TaskQueue(&pregel.Task{Node: all[0].asked[0].Node})
	for _, v := range all {
		for _, o := range v.asked {
			if r.program.TaskQueue(&pregel.Task{Node: o.Node}) != queue {
				return ""
			}
		}
	}
	return queue
}

func (r *run) verifyRequest(ctx workflow.Context, all []*verified) graphadapter.VerifyRequest {
	req := graphadapter.VerifyRequest{Graph: r.in.Graph, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID}
	places := map[string]int{}
	for _, v := range all {
		ones := make([]graphadapter.VerifyOne, len(v.answers))
		for i, o := range v.asked {
			at, known := places[o.ID]
			if !known {
				at = len(req.Questions)
				places[o.ID] = at
				q := graphadapter.VerifyQuestion{ID: o.ID, Node: o.Node, Action: o.Approval}
				if p := r.pending(o.ID); p != nil {
					q.Asked, q.Votes = p.Asked, p.Votes
				}
				req.Questions = append(req.Questions, q)
			}
			ones[i] = graphadapter.VerifyOne{Question: at, Token: v.req.TokenFor(o.ID), By: v.req.By, Reply: v.replies[i]}
		}
		req.Requests = append(req.Requests, ones)
	}
	return req
}
