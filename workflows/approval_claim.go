package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// claim keeps questions for those who are answering them while their answers are verified.
type claim struct {
	questions []string
	by        string
}

// gated reports whether a request answers a question that asks for an approval.
func (r *run) gated(req protocol.ResumeRequest) bool { return len(r.gatedAnswers(req)) > 0 }

// gatedAnswers are the request's answers to approvals that are open.
func (r *run) gatedAnswers(req protocol.ResumeRequest) []pregel.Answer {
	var out []pregel.Answer
	open := r.unanswered()
	for _, a := range req.All() {
		if slices.ContainsFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == a.QuestionID && q.Approval != nil }) {
			out = append(out, a)
		}
	}
	return out
}

// resumeGated takes in an answer by update to approvals. Nobody else answers them while it is verified; who comes
// meanwhile waits, and is told then who has answered.
func (r *run) resumeGated(ctx workflow.Context, req protocol.ResumeRequest) (protocol.ResumeReply, error) {
	r.approvals.answering++
	defer func() { r.approvals.answering-- }()
	ctx, _ = workflow.NewDisconnectedContext(ctx) // the outcome is told also when the run is cancelled meanwhile
	free := func() bool { return r.free(req) && !r.inbox.changing() && !r.approvals.closing }
	if err := workflow.Await(ctx, free); err != nil {
		return protocol.ResumeReply{}, err
	}
	if before, ok := r.resumed(req); ok {
		return before, nil
	}
	if err := r.refusal(req); err != nil {
		r.refuseReply(refusalOf(req.Question, err), 1)
		r.auditRefusals(ctx, false)
		return protocol.ResumeReply{}, err
	}
	v := []*verified{r.verifies(req)}
	c := r.claim(v, req.By)
	unsure := r.verify(ctx, v)
	_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
	reply, err := r.count(ctx, v[0], &r.inbox.updates)
	r.unclaim(ctx, c)
	r.auditRefusals(ctx, false)
	if err == nil && !reply.Repeated {
		reply.Call = req.Call
		r.inbox.taken.Took(protocol.UpdateResume, req.ID, reply)
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
func (r *run) free(req protocol.ResumeRequest) bool {
	return !slices.ContainsFunc(req.All(), func(a pregel.Answer) bool { return r.claimOf(a.QuestionID) != nil })
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
		return reply, fmt.Errorf("%q is no verdict: approve, reject or edit", named(string(reply.Verdict)))
	}
	if len(reply.Reason) > protocol.MaxReasonBytes {
		return reply, fmt.Errorf("a reason has at most %d bytes", protocol.MaxReasonBytes)
	}
	return reply, nil
}
