package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// The bounds of what a run tells.
const (
	// noticeLife is how long a notice is told: what nobody hears for a day is no news.
	noticeLife = 24 * time.Hour
	// maxUntold bounds what waits to be told; what is older is dropped, as more than anybody can read.
	maxUntold = 200
	// noticesAtOnce bounds the activities under way that tell something.
	noticesAtOnce = 20
)

// notices are what the run tells people outside, each by an activity in a coroutine of its own. Nothing waits for them. A run
// that is to tell nobody has none of it, and no event for it.
type notices struct {
	known    []string
	untold   []*telling // oldest first
	underWay int
	// look says that questions may have been asked or answered since the run last looked.
	look bool
	// life is the context of the activities, stop its end.
	life workflow.Context
	stop workflow.CancelFunc
}

// telling is a notice that is being told, or waits for that.
type telling struct {
	protocol.Untold
	stop workflow.CancelFunc // nil while it waits
}

// openNotices takes over what an earlier execution had to tell. What a run tells goes on while the run is being cancelled.
func (r *run) openNotices(ctx workflow.Context) {
	n := &r.notices
	if !r.in.Found.Notices || n.life != nil {
		return
	}
	n.look = true
	n.life, _ = workflow.NewDisconnectedContext(ctx)
	n.life, n.stop = workflow.WithCancel(n.life)
	if was := r.in.Told; was != nil {
		n.known = was.Known
		for _, u := range was.Untold {
			n.untold = append(n.untold, &telling{Untold: u})
		}
	}
	r.startTelling()
}

// attendNotices tells of the questions that are new, and of those that were answered.
func (r *run) attendNotices(ctx workflow.Context) {
	n := &r.notices
	if !n.look || n.life == nil || r.inbox.changing() {
		return
	}
	n.look = false
	open := r.life.Questions()
	known := n.known
	n.known = nil
	for _, q := range open {
		n.known = append(n.known, q.ID)
		if !slices.Contains(known, q.ID) {
			r.tellOf(ctx, q, approval.Notice{Kind: approval.KindAsked})
		}
	}
	for _, id := range known {
		if !slices.Contains(n.known, id) {
			r.overWith(ctx, id)
		}
	}
	r.startTelling()
}

// overWith drops what is untold of a question that is not open any more, and tells those who may have heard of it who
// answered.
func (r *run) overWith(ctx workflow.Context, question string) {
	if r.notices.drop(question) {
		return // nobody has heard of it
	}
	at := slices.IndexFunc(r.life.State.Answered, func(a protocol.Answered) bool { return a.Question == question })
	if at < 0 {
		return
	}
	a := r.life.State.Answered[at]
	r.tellOf(ctx, pregel.OpenQuestion{Node: a.Node, Question: pregel.Question{ID: question}},
		approval.Notice{Kind: approval.KindAnswered, By: a.By})
}

// tellAudited tells of what the audit says of an approval's time.
func (r *run) tellAudited(ctx workflow.Context, e approval.Entry) {
	if r.notices.life == nil || e.Kind != approval.KindWarned && e.Kind != approval.KindEscalated && e.Kind != approval.KindExpired {
		return
	}
	open := r.Asks()
	at := slices.IndexFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == e.Question })
	if at < 0 {
		return
	}
	n := approval.Notice{Kind: e.Kind}
	if e.Kind == approval.KindExpired {
		n.Due = e.At
	}
	if e.Verdict != "" { // it is decided
		r.notices.drop(e.Question)
		r.notices.known = slices.DeleteFunc(slices.Clone(r.notices.known), func(id string) bool { return id == e.Question })
	}
	r.tellOf(ctx, open[at], n)
	r.startTelling()
}

// tellOf adds a notice of a question to what is to be told.
func (r *run) tellOf(ctx workflow.Context, q pregel.OpenQuestion, n approval.Notice) {
	now := workflow.Now(ctx)
	n.At, n.Thread, n.Graph, n.Node, n.Question = now, workflow.GetInfo(ctx).WorkflowExecution.ID, r.in.Graph, q.Node, q.ID
	n.Summary = summaryOf(q)
	var a approval.Action
	if q.Approval != nil && json.Unmarshal(q.Approval, &a) == nil {
		n.Summary, n.Tool, n.ParamsHash, n.Risk, n.Silence, n.Approvers = a.Summary, a.Tool, a.ParamsHash, a.Risk, a.Silence, a.Approvers
	}
	if p := r.life.PendingOn(q.ID); p != nil {
		n.Due, n.Approvers = p.Due, p.Asked
	}
	r.notices.add(protocol.Untold{Notice: n.Name(), Until: now.Add(noticeLife)})
}

// add adds a notice, and drops the oldest when there are too many.
func (n *notices) add(u protocol.Untold) {
	n.untold = append(n.untold, &telling{Untold: u})
	if len(n.untold) > maxUntold {
		n.forget(n.untold[0])
	}
}

// drop forgets what is untold of a question, and reports whether nobody can have heard of it.
func (n *notices) drop(question string) (unheard bool) {
	for _, t := range slices.Clone(n.untold) {
		if t.Question == question && t.Kind != approval.KindExpired {
			unheard = unheard || t.Kind == approval.KindAsked && t.stop == nil
			n.forget(t)
		}
	}
	return unheard
}

func (n *notices) forget(t *telling) {
	n.untold = slices.DeleteFunc(slices.Clone(n.untold), func(u *telling) bool { return u == t })
	if t.stop != nil {
		t.stop()
	}
}

// startTelling begins to tell what waits, as far as not too much is under way.
func (r *run) startTelling() {
	n := &r.notices
	for _, t := range n.untold {
		if n.underWay >= noticesAtOnce {
			return
		}
		if t.stop != nil {
			continue
		}
		var ctx workflow.Context
		ctx, t.stop = workflow.WithCancel(n.life)
		n.underWay++
		workflow.Go(ctx, func(ctx workflow.Context) {
			if err := tell(ctx, t.Untold); err != nil && !temporal.IsCanceledError(err) {
				workflow.GetLogger(ctx).Warn("nobody could be told", "notice", t.ID, "kind", t.Kind, "error", err)
			}
			n.underWay--
			if n.life.Err() == nil { // otherwise it is handed on
				n.forget(t)
				r.startTelling()
			}
		})
	}
}

// tell tells people outside, again and again until they have it or its time is over.
func tell(ctx workflow.Context, u protocol.Untold) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    noticeAttempt,
		ScheduleToCloseTimeout: max(u.Until.Sub(workflow.Now(ctx)), noticeAttempt),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: noticeRetry, BackoffCoefficient: 2, MaximumInterval: maxNoticeRetry,
		},
		Summary: fmt.Sprintf("%s %s", u.Kind, u.Question),
	})
	return workflow.ExecuteActivity(ctx, graphadapter.NotifyActivity, u.Notice).Get(ctx, nil)
}

// summaryOf is the text of a plain question. An object without one may be full of what is nobody's business outside.
func summaryOf(q pregel.OpenQuestion) string {
	text := graphadapter.QuestionText(q.Value)
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		return ""
	}
	return listing.Line(text)
}
