package life

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
)

// The bounds of what a run tells people outside.
const (
	// noticeLife is how long a notice is told: what nobody hears for a day is no news.
	noticeLife = 24 * time.Hour
	// maxUntold bounds the notices that wait to be told; the oldest are dropped, as more than anybody can read.
	maxUntold = 200
	// noticesAtOnce bounds the notices that are being told.
	noticesAtOnce = 20
)

// Tell says that a notice is to be told to people outside, again and again until they have it or its time is over. The host
// calls [Run.ToldNotice] then.
type Tell struct {
	Number int
	Untold
}

// Hush says that a notice which is being told is no news any more.
type Hush struct{ Number int }

// TellPeople makes the run tell people outside of its questions, from now on: with what is untold of an earlier execution.
func (r *Run) TellPeople() []Action {
	if r.State.Notices == nil {
		r.State.Notices = &Notices{}
	}
	r.tells = true
	r.startTelling()
	return r.Actions()
}

// ToldNotice ends the telling of a notice.
func (r *Run) ToldNotice(number int) []Action {
	n := r.State.Notices
	n.Untold = slices.DeleteFunc(slices.Clone(n.Untold), func(u Untold) bool { return u.number == number })
	n.underWay--
	r.startTelling()
	return r.Actions()
}

// LeaveNotices returns what is untold of a run that ends. That somebody should answer is no news any more.
func (r *Run) LeaveNotices(now time.Time) (left []Untold) {
	if !r.tells {
		return nil
	}
	r.attendNotices(now)
	r.tells = false
	for _, u := range r.State.Notices.Untold {
		if u.Kind == approval.KindExpired || u.Kind == approval.KindAnswered {
			left = append(left, u)
		}
	}
	return left
}

// attendNotices tells of the questions that are new, and of the questions that were answered.
func (r *Run) attendNotices(now time.Time) {
	if !r.tells {
		return
	}
	n := r.State.Notices
	known := n.Known
	n.Known = nil
	for _, q := range r.Questions() {
		n.Known = append(n.Known, q.ID)
		if !slices.Contains(known, q.ID) {
			r.tellOf(q, approval.Notice{Kind: approval.KindAsked}, now)
		}
	}
	for _, id := range known {
		if !slices.Contains(n.Known, id) {
			r.tellAnswered(id, now)
		}
	}
	r.startTelling()
}

// tellAnswered drops what is untold of a question that is not open any more, and tells those who may have heard of the
// question who answered.
func (r *Run) tellAnswered(question string, now time.Time) {
	if r.dropNotices(question) {
		return // nobody has heard of it
	}
	at := slices.IndexFunc(r.State.Answered, func(a Answered) bool { return a.Question == question })
	if at < 0 {
		return
	}
	a := r.State.Answered[at]
	r.tellOf(pregel.OpenQuestion{Node: a.Node, Question: pregel.Question{ID: question}}, approval.Notice{Kind: approval.KindAnswered, By: a.By}, now)
}

// tellAudited tells of what the audit says of an approval's time.
func (r *Run) tellAudited(e approval.Entry) {
	if !r.tells || e.Kind != approval.KindWarned && e.Kind != approval.KindEscalated && e.Kind != approval.KindExpired {
		return
	}
	open := r.asks()
	at := slices.IndexFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == e.Question })
	if at < 0 {
		return
	}
	n := approval.Notice{Kind: e.Kind}
	if e.Kind == approval.KindExpired {
		n.Due = e.At
	}
	if e.Verdict != "" { // it is decided
		r.dropNotices(e.Question)
		known := r.State.Notices.Known
		r.State.Notices.Known = slices.DeleteFunc(slices.Clone(known), func(id string) bool { return id == e.Question })
	}
	r.tellOf(open[at], n, e.At)
	r.startTelling()
}

// tellOf adds a notice of a question to what is to be told, and drops the oldest when there are too many.
func (r *Run) tellOf(q pregel.OpenQuestion, n approval.Notice, now time.Time) {
	n.At, n.Thread, n.Graph, n.Node, n.Question = now, r.thread, r.graph, q.Node, q.ID
	n.Summary = summaryOf(q)
	var a approval.Action
	if q.Approval != nil && json.Unmarshal(q.Approval, &a) == nil {
		n.Summary, n.Tool, n.ParamsHash, n.Risk, n.Silence, n.Approvers = a.Summary, a.Tool, a.ParamsHash, a.Risk, a.Silence, a.Approvers
	}
	if p := r.PendingOn(q.ID); p != nil {
		n.Due, n.Approvers = p.Due, p.Asked
	}
	all := append(slices.Clip(r.State.Notices.Untold), Untold{Notice: n.Name(), Until: now.Add(noticeLife)})
	if len(all) > maxUntold {
		r.hush(all[0])
		all = all[1:]
	}
	r.State.Notices.Untold = all
}

// dropNotices forgets what is untold of a question, and reports whether nobody can have heard of the question.
func (r *Run) dropNotices(question string) (unheard bool) {
	n := r.State.Notices
	n.Untold = slices.DeleteFunc(slices.Clone(n.Untold), func(u Untold) bool {
		if u.Question != question || u.Kind == approval.KindExpired {
			return false
		}
		unheard = unheard || u.Kind == approval.KindAsked && u.number == 0
		r.hush(u)
		return true
	})
	return unheard
}

func (r *Run) hush(u Untold) {
	if u.number > 0 {
		r.do(Hush{u.number})
	}
}

// startTelling begins to tell what waits, as far as not too much is under way.
func (r *Run) startTelling() {
	n := r.State.Notices
	for i := range n.Untold {
		if u := &n.Untold[i]; u.number == 0 && n.underWay < noticesAtOnce {
			n.underWay++
			n.last++
			u.number = n.last
			r.do(Tell{u.number, *u})
		}
	}
}

// summaryOf is the text of a plain question. An object without one may be full of what is nobody's business outside.
func summaryOf(q pregel.OpenQuestion) string {
	text := graphadapter.QuestionText(q.Value)
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		return ""
	}
	return clip.Line(text)
}
