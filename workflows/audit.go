package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
)

// The bounds of what a run keeps of its audit. All of it can be read by replaying the thread's runs.
const (
	maxEntries = 500
	// maxRefusalKinds bounds the kinds of refusals that are counted apart.
	maxRefusalKinds = 50
)

// refusals count the refused replies of one kind. The first of them is an entry of its own; those that follow are
// entries of ten, a hundred, a thousand, so that a flood is a handful of entries.
type refusals struct {
	entry   approval.Entry
	written int // in entries
	more    int // not yet
}

// audit adds an entry to the thread's chain.
func (r *run) audit(ctx workflow.Context, e approval.Entry) {
	e.At, e.Thread = workflow.Now(ctx), workflow.GetInfo(ctx).WorkflowExecution.ID
	e = r.approvals.Chain.Append(e)
	r.approvals.entries = latest(append(r.approvals.entries, e), maxEntries)
	if sink, ok := r.sink.(graphadapter.Auditor); ok {
		sink.Audited(e)
	}
	r.tellAudited(ctx, e)
}

// refuseReply counts replies that were refused for the same reason. A thread that asks for no approvals has no audit.
func (r *run) refuseReply(a AnswerRefusal, count int) {
	if r.approvals.Chain.Count == 0 {
		return
	}
	kind := r.refusalsOf(a)
	kind.entry.Reason, kind.entry.Token, kind.entry.KeyID, kind.entry.Policy = a.Reason, a.Token, a.KeyID, a.Policy
	kind.more += count
}

// refusalsOf finds the count of refusals of that kind. Questions that are not asked are all one.
func (r *run) refusalsOf(a AnswerRefusal) *refusals {
	e := approval.Entry{Kind: approval.KindRefused, Who: a.By, Code: a.Code}
	if r.pending(a.Question) != nil || slices.ContainsFunc(r.inbox.answered, func(g Answered) bool { return g.Question == a.Question }) {
		e.Question = a.Question
	}
	all := r.approvals.refusals
	if len(all) >= maxRefusalKinds {
		e.Question, e.Who = "", ""
	}
	at := slices.IndexFunc(all, func(k *refusals) bool {
		return k.entry.Question == e.Question && k.entry.Who == e.Who && k.entry.Code == e.Code
	})
	if at < 0 {
		at = len(all)
		r.approvals.refusals = append(all, &refusals{entry: e})
	}
	return r.approvals.refusals[at]
}

// writeRefusals makes an entry of the refusals that are in none yet.
func (r *run) writeRefusals(ctx workflow.Context, k *refusals) {
	e := k.entry
	if e.Count = k.more; k.more == 1 {
		e.Count = 0
	}
	k.written, k.more = k.written+k.more, 0
	r.audit(ctx, e)
}

// auditRefusals makes entries of the refusals that are in none yet: of all, where the run ends or is continued as a new one, or
// of the kinds that are due.
func (r *run) auditRefusals(ctx workflow.Context, all bool) {
	for _, k := range r.approvals.refusals {
		if k.more > 0 && (all || k.more >= 9*k.written) {
			r.writeRefusals(ctx, k)
		}
	}
}

func (r *run) auditReply() (AuditReply, error) {
	return AuditReply{Entries: r.approvals.entries, Chain: r.approvals.Chain}, nil
}

// receiveViews notes who says to have looked at an approval's question.
func (r *run) receiveViews(ctx workflow.Context) {
	channel := workflow.GetSignalChannelWithOptions(ctx, SignalViewed,
		workflow.SignalChannelOptions{Description: "Notes that somebody has looked at a question that asks for an approval."})
	for {
		var req ViewRequest
		if more := channel.Receive(ctx, &req); !more {
			return
		}
		_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
		r.view(ctx, req)
	}
}

// readViews takes in the views that nobody has read when the run ends.
func (r *run) readViews(ctx workflow.Context) {
	channel := workflow.GetSignalChannel(ctx, SignalViewed)
	var req ViewRequest
	for channel.ReceiveAsync(&req) {
		r.view(ctx, req)
		req = ViewRequest{}
	}
}

// view notes the first time that somebody looks at a question. Anybody can say so under any name, so names are bounded in
// number too.
func (r *run) view(ctx workflow.Context, req ViewRequest) {
	p := r.pending(req.Question)
	if p == nil || req.By == "" || len(req.By) > maxNameBytes || len(p.Viewers) >= maxViewers || slices.Contains(p.Viewers, req.By) {
		return
	}
	p.Viewers = append(slices.Clip(p.Viewers), req.By)
	r.audit(ctx, approval.Entry{Kind: approval.KindViewed, Question: req.Question, Reason: "says to be " + req.By})
}
