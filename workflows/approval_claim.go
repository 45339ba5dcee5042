package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// claim keeps questions for those who are answering them while their answers are verified.
type claim struct {
	questions []string
	by        string
}

// gated reports whether a request answers a question that asks for an approval.
func (r *run) gated(req ResumeRequest) bool { return len(r.gatedAnswers(req)) > 0 }

// gatedAnswers are the request's answers to approvals that are open.
func (r *run) gatedAnswers(req ResumeRequest) []pregel.Answer {
	var out []pregel.Answer
	open := r.unanswered()
	for _, a := range req.answers() {
		if slices.ContainsFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == a.QuestionID && q.Approval != nil }) {
			out = append(out, a)
		}
	}
	return out
}

// resumeGated takes in an answer by update to approvals. Nobody else answers them while it is verified; who comes
// meanwhile waits, and is told then who has answered.
func (r *run) resumeGated(ctx workflow.Context, req ResumeRequest) (ResumeReply, error) {
	r.approvals.answering++
	defer func() { r.approvals.answering-- }()
	ctx, _ = workflow.NewDisconnectedContext(ctx) // the outcome is told also when the run is cancelled meanwhile
	free := func() bool { return r.free(req) && !r.inbox.changing() && !r.approvals.closing }
	if err := workflow.Await(ctx, free); err != nil {
		return ResumeReply{}, err
	}
	var before ResumeReply
	if r.inbox.again(UpdateResume, req.ID, &before) {
		return before, nil
	}
	if err := r.refusal(req); err != nil {
		r.refuseReply(refusalOf(req.Question, err), 1)
		r.auditRefusals(ctx, false)
		return ResumeReply{}, err
	}
	v := []*verified{r.verifies(req)}
	c := r.claim(v, req.By)
	unsure := r.verify(ctx, v)
	_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
	reply, err := r.count(ctx, v[0], &r.inbox.updates)
	r.unclaim(ctx, c)
	r.auditRefusals(ctx, false)
	if err == nil {
		r.inbox.took(UpdateResume, req.ID, reply)
	}
	if unsure != nil {
		workflow.GetLogger(ctx).Error("an answer to an approval could not be verified", "question", req.Question, "error", unsure)
	}
	return reply, err
}

// ungated refuses answers to approvals that come with a run's input.
func (r *run) ungated(resume *pregel.Resume) error {
	for _, a := range r.answersTo(r.thread, resume) {
		for _, q := range r.program.OpenQuestions(r.thread) {
			if q.ID == a.QuestionID && q.Approval != nil {
				return gateOnly(q)
			}
		}
	}
	return nil
}

// free reports whether nobody is answering any of the request's questions at this moment.
func (r *run) free(req ResumeRequest) bool {
	return !slices.ContainsFunc(req.answers(), func(a pregel.Answer) bool { return r.claimOf(a.QuestionID) != nil })
}

func (r *run) claimOf(question string) *claim {
	for _, c := range r.approvals.claims {
		if slices.Contains(c.questions, question) {
			return c
		}
	}
	return nil
}

func (r *run) claim(all []*verified, by string) *claim {
	c := &claim{by: by}
	for _, v := range all {
		for _, a := range v.answers {
			c.questions = append(c.questions, a.QuestionID)
		}
	}
	r.approvals.claims = append(r.approvals.claims, c)
	return c
}

// unclaim lets others answer. Time that was over meanwhile counts now.
func (r *run) unclaim(ctx workflow.Context, c *claim) {
	r.approvals.claims = slices.DeleteFunc(slices.Clone(r.approvals.claims), func(other *claim) bool { return other == c })
	r.timeApprovals(ctx)
}

// verified is a request whose answers to approvals are verified, and what a gate said of each.
type verified struct {
	req     ResumeRequest
	answers []pregel.Answer
	asked   []openApproval
	replies []approval.Reply
	rulings []approval.Ruling
}

func (r *run) verifies(req ResumeRequest) *verified {
	v := &verified{req: req, answers: r.gatedAnswers(req)}
	for _, a := range v.answers {
		o, _ := r.asksFor(a.QuestionID)
		reply, _ := readReply(a.Value) // which the refusal of the request has read
		v.asked, v.replies = append(v.asked, o), append(v.replies, reply)
	}
	return v
}

// verify asks a worker's gate about all of them. An error says why nobody could: then none counts.
func (r *run) verify(ctx workflow.Context, all []*verified) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              r.verifyQueue(all),
		ScheduleToCloseTimeout: graphadapter.VerifyWithin,
		StartToCloseTimeout:    graphadapter.VerifyWithin * 2 / 5, // a lost worker leaves time for another
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: retryInterval, BackoffCoefficient: 2, MaximumInterval: maxRetryInterval,
		},
		Summary: fmt.Sprintf("verify %d answers", len(all)),
	})
	var reply graphadapter.VerifyReply
	err := workflow.ExecuteActivity(ctx, graphadapter.VerifyActivity, r.verifyRequest(ctx, all)).Get(ctx, &reply)
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
			ones[i] = graphadapter.VerifyOne{Question: at, Token: v.req.tokenFor(o.ID), Reply: v.replies[i]}
		}
		req.Requests = append(req.Requests, ones)
	}
	return req
}

// readReply reads an answer to an approval.
func readReply(value pregel.Value) (approval.Reply, error) {
	var reply approval.Reply
	if err := json.Unmarshal(value, &reply); err != nil {
		return reply, err
	}
	switch reply.Verdict {
	case approval.VerdictEdit:
		if len(reply.Params) == 0 {
			return reply, errors.New("an edit has the parameters that it proposes")
		}
	case approval.VerdictApprove, approval.VerdictReject:
		if len(reply.Params) > 0 {
			return reply, errors.New("parameters go with an edit only")
		}
	default:
		return reply, fmt.Errorf("%q is no verdict: approve, reject or edit", clip(string(reply.Verdict)))
	}
	if len(reply.Reason) > maxReasonBytes {
		return reply, fmt.Errorf("a reason has at most %d bytes", maxReasonBytes)
	}
	return reply, nil
}
