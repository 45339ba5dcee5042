package workflows

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// maxShownUnderWay bounds the events that show questions while other tasks of their superstep are under way.
const maxShownUnderWay = 20

// listed is what lists were told of the run's questions last.
type listed struct {
	// changed says that questions were asked or answered while other tasks are under way, and underWay how often that was
	// shown since the run last rested.
	changed  bool
	underWay int
	// news is what approvals.news was.
	news int
	listing.Listing
}

// showAsked shows questions that were asked or answered while siblings are under way: nobody's question waits to be seen
// for somebody else's long task.
func (r *run) showAsked(ctx workflow.Context) {
	if r.unlisted() {
		r.listed.underWay++
		r.show(ctx)
	}
}

// unlisted reports whether tasks are under way, and lists do not show what is asked beside them.
func (r *run) unlisted() bool {
	return r.listed.Questions() && r.tasks.running > 0 && r.listed.underWay < maxShownUnderWay &&
		(r.listed.changed || r.listed.news != r.host.news)
}

// noteOf is what lists show of open questions.
func (r *run) noteOf(open []pregel.OpenQuestion) protocol.QuestionsNote {
	n := protocol.QuestionsNote{More: max(0, len(open)-listing.MaxQuestions)}
	for _, q := range open[:len(open)-n.More] {
		n.Questions = append(n.Questions, r.noteQuestion(q))
	}
	return n
}

func (r *run) noteQuestion(q pregel.OpenQuestion) protocol.QuestionNote {
	n := protocol.QuestionNote{ID: q.ID, Node: q.Node}
	var a approval.Action
	if q.Approval == nil || json.Unmarshal(q.Approval, &a) != nil {
		n.Asks = clip.Line(graphadapter.QuestionText(q.Value))
		return n
	}
	n.Asks, n.Risk, n.Silence = clip.Line(a.Summary), a.Risk, a.Silence
	n.Approvers, n.Need = a.Approvers, a.Needs(0)
	if p := r.life.PendingOn(q.ID); p != nil {
		n.Approvers, n.Need, n.Votes, n.Due = p.Asked, p.Need, len(p.Votes), p.Due
		if n.Due.IsZero() {
			n.Due = p.Missed
		}
	}
	return n
}
