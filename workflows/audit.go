package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// maxEntries bounds what a run keeps of its audit. All of it can be read by replaying the thread's runs.
const maxEntries = 500

// openAudit goes on with the thread's audit.
func (r *run) openAudit(ctx workflow.Context) {
	a := &r.approvals
	a.trail = trail.Trail{State: &a.State, Thread: workflow.GetInfo(ctx).WorkflowExecution.ID, Noted: func(e approval.Entry) {
		a.entries = latest(append(a.entries, e), maxEntries)
		if sink, ok := r.sink.(graphadapter.Auditor); ok {
			sink.Audited(e)
		}
	}}
}

// audit adds an entry to the thread's chain.
func (r *run) audit(ctx workflow.Context, e approval.Entry) {
	e = r.approvals.trail.Note(workflow.Now(ctx), e)
	if e.ParamsHash != "" { // it is about an approval
		r.approvals.news++
	}
	r.tellAudited(ctx, e)
}

// refuseReply counts replies that were refused for the same reason. Questions that are not asked are all one.
func (r *run) refuseReply(a protocol.AnswerRefusal, count int) {
	question := ""
	if r.pending(a.Question) != nil || slices.ContainsFunc(r.inbox.answered, func(g protocol.Answered) bool { return g.Question == a.Question }) {
		question = a.Question
	}
	r.approvals.trail.Refuse(trail.Refused(question, a.Ruling), count)
}

// auditRefusals makes entries of the refusals that are in none yet: of all, where the run ends or is continued as a new one, or
// of the kinds that are due.
func (r *run) auditRefusals(ctx workflow.Context, all bool) {
	r.approvals.trail.Flush(workflow.Now(ctx), all)
}

// auditReply answers a query, so the signature is in no history: a worker signs what it has come to itself.
func (r *run) auditReply() (protocol.AuditReply, error) {
	reply := protocol.AuditReply{Entries: r.approvals.entries, Chain: r.approvals.Chain}
	if r.heads != nil {
		signed, err := r.heads.SignHead(approval.Head{Thread: r.approvals.trail.Thread, Chain: reply.Chain})
		if reply.Signed = signed; err != nil {
			reply.Problem = err.Error()
		}
	}
	return reply, nil
}

// receiveViews notes who says to have looked at an approval's question.
func (r *run) receiveViews(ctx workflow.Context) {
	channel := workflow.GetSignalChannelWithOptions(ctx, protocol.SignalViewed,
		workflow.SignalChannelOptions{Description: "Notes that somebody has looked at a question that asks for an approval."})
	for {
		var req protocol.ViewRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
		r.view(ctx, req)
	}
}

// readViews takes in the views that nobody has read when the run ends.
func (r *run) readViews(ctx workflow.Context) {
	channel := workflow.GetSignalChannel(ctx, protocol.SignalViewed)
	var req protocol.ViewRequest
	for channel.ReceiveAsync(&req) {
		r.view(ctx, req)
		req = protocol.ViewRequest{}
	}
}

// view notes the first time that somebody looks at a question. Anybody can say so under any name, so names are bounded in
// number too.
func (r *run) view(ctx workflow.Context, req protocol.ViewRequest) {
	p := r.pending(req.Question)
	if p == nil || req.By == "" || len(req.By) > protocol.MaxNameBytes || len(p.Viewers) >= maxViewers || slices.Contains(p.Viewers, req.By) {
		return
	}
	p.Viewers = append(slices.Clip(p.Viewers), req.By)
	r.audit(ctx, trail.Viewed(req.Question, req.By))
}
