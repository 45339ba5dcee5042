package workflows

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/draw"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// maxShownUnderWay bounds the events that show questions while other tasks of their superstep are under way.
const maxShownUnderWay = 20

// listed shows a run in lists and on Temporal's own screens, and knows what was shown last.
type listed struct {
	*engine
	life  *life.Run
	tasks *tasks

	// changed says that questions were asked or answered while other tasks are under way, and underWay how often that was
	// shown since the run last rested.
	changed  bool
	underWay int
	// later says that the run goes on, and that lists do not show that yet: see goesOn.
	later bool
	// news counts the entries about approvals: what lists show of one changes with them. shownNews is what news was when lists
	// were told.
	news, shownNews int
	listing.Listing
}

// showAsked shows questions that were asked or answered while siblings are under way: nobody's question waits to be seen
// for somebody else's long task.
func (l *listed) showAsked(ctx workflow.Context) {
	if l.unlisted() {
		l.underWay++
		l.show(ctx)
	}
}

// unlisted reports whether tasks are under way, and lists do not show what is asked beside them.
func (l *listed) unlisted() bool {
	return l.Questions() && l.tasks.running > 0 && l.underWay < maxShownUnderWay &&
		(l.changed || l.shownNews != l.news)
}

// noteOf is what lists show of open questions.
func (l *listed) noteOf(open []pregel.OpenQuestion) protocol.QuestionsNote {
	n := protocol.QuestionsNote{More: max(0, len(open)-listing.MaxQuestions)}
	for _, q := range open[:len(open)-n.More] {
		n.Questions = append(n.Questions, l.noteQuestion(q))
	}
	return n
}

// silenceTold is what follows when nobody answers a question that has a deadline and no default: its node is told.
const silenceTold approval.Silence = "timeout"

func (l *listed) noteQuestion(q pregel.OpenQuestion) protocol.QuestionNote {
	n := protocol.QuestionNote{ID: q.ID, Node: q.Node, At: l.life.AskedAt(q.ID)}
	if about := aboutOf(q.Question); about != aboutQuestion {
		n.About = about
	}
	var a approval.Action
	if q.Approval == nil || json.Unmarshal(q.Approval, &a) != nil {
		n.Asks, n.Due = clip.Line(graphadapter.QuestionText(q.Value)), l.life.DueOf(q.ID)
		if n.Silence = silenceTold; q.Default != nil {
			n.Silence = approval.SilenceDefault
		}
		if q.Timeout <= 0 {
			n.Silence = ""
		}
		return n
	}
	n.Asks, n.Risk, n.Silence = clip.Line(a.Summary), a.Risk, a.Silence
	n.Approvers, n.Need = a.Approvers, a.Needs(0)
	if p := l.life.PendingOn(q.ID); p != nil {
		n.Approvers, n.Need, n.Votes, n.Due = p.Asked, p.Need, len(p.Votes), p.Due
		if n.Due.IsZero() {
			n.Due = p.Missed
		}
	}
	return n
}

// show brings the details of Temporal's own screens up to date, which leaves no event, and the search attributes: one
// event, only when people have something new to see.
func (l *listed) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, l.details())
	l.life.SeeAsked(workflow.Now(ctx))
	now := listing.Shown{Status: l.status, Open: len(l.life.Questions())}
	for _, q := range l.life.Unanswered() {
		now.Nodes = append(now.Nodes, q.Node)
	}
	if l.Questions() {
		now.Note = l.noteOf(l.life.Questions())
	}
	l.changed, l.shownNews, l.later = false, l.news, false
	if l.status != protocol.StatusRunning {
		l.underWay = 0
	}
	l.Upsert(ctx, now)
}

// showEnd shows how the run ends: who lists runs that are over sees it without reading their last events.
func (l *listed) showEnd(ctx workflow.Context, status string) {
	l.status = status
	workflow.SetCurrentDetails(ctx, l.details())
	l.End(ctx, status)
}

// showFinished shows that the run ends because nothing is left to do.
func (l *listed) showFinished(ctx workflow.Context) {
	l.status = protocol.StatusFinished
	if l.Silent() {
		workflow.SetCurrentDetails(ctx, l.details())
		return
	}
	l.show(ctx)
}

// showAs shows the run with that status from now on.
func (l *listed) showAs(ctx workflow.Context, status string) {
	l.status = status
	l.show(ctx)
}

// goesOn notes that the run goes on from where it rested. Lists show it when something is under way that outlasts the workflow task:
// what is over with that, as a turn mostly is, changes nothing that people could see.
func (l *listed) goesOn() {
	if l.status != protocol.StatusRunning {
		l.status, l.later = protocol.StatusRunning, true
	}
}

// showLater shows what goesOn has left.
func (l *listed) showLater(ctx workflow.Context) {
	if l.later {
		l.show(ctx)
	}
}

// showOnce is showAs when the status is another one than lists show.
func (l *listed) showOnce(ctx workflow.Context, status string) {
	if l.status != status || l.later {
		l.showAs(ctx, status)
	}
}

// maxDrawn bounds the nodes of a graph whose picture is among the details: a larger one nobody reads in lines of text.
const maxDrawn = 100

// details are what Temporal's UI and CLI show of the run beside its events, as Markdown: where the run stands, what the
// run asks, and the picture of its graph. The texts are the same as in lists: one line each, and no parameters of an
// approval, which may be secret.
func (l *listed) details() string {
	var b strings.Builder
	b.WriteString(fmt.Sprintf("**%s** · graph %s", l.status, literal(l.in.Graph)))
	if l.loop != nil {
		b.WriteString(fmt.Sprintf(" · superstep %d", max(0, l.loop.Step())))
	}
	b.WriteByte('\n')
	switch {
	case l.life.State.Paused != nil && l.life.State.Paused.Reason != "":
		b.WriteString(fmt.Sprintf("\npaused: %s\n", literal(clip.Line(l.life.State.Paused.Reason))))
	case l.drained != "":
		b.WriteString(fmt.Sprintf("\ndrained: %s\n", literal(clip.Line(l.drained))))
	case l.failure != nil:
		b.WriteString(fmt.Sprintf("\n%s\n", literal(clip.Line(l.failure.Error()))))
	}
	if l.thread != nil {
		l.detailOpen(&b)
	}
	if l.status != protocol.StatusRunning && l.program != nil {
		if l.picture == "" {
			l.picture = pictureOf(l.program)
		}
		b.WriteString(l.picture)
	}
	return b.String()
}

// pictureOf is a graph's picture among the details, "" of one that is too large.
func pictureOf(p *pregel.Program) string {
	if len(p.Spec.Nodes) > maxDrawn {
		return ""
	}
	return fmt.Sprintf("\n~~~text\n%s~~~\n", draw.Text(p.Spec))
}

// detailOpen writes what the run waits for.
func (l *listed) detailOpen(b *strings.Builder) {
	asked := l.noteOf(l.life.Questions())
	for _, q := range asked.Questions {
		b.WriteString(fmt.Sprintf("\n- question %s of %s: %s", literal(q.ID), literal(q.Node), literal(q.Asks)))
	}
	if asked.More > 0 {
		b.WriteString(fmt.Sprintf("\n- and %d more questions", asked.More))
	}
	waits := l.life.Waits()
	for _, w := range waits[:min(len(waits), listing.MaxQuestions)] {
		b.WriteString(fmt.Sprintf("\n- %s waits for the event %s", literal(w.Node), literal(clip.Line(w.Event))))
	}
	if len(asked.Questions)+len(waits) > 0 {
		b.WriteByte('\n')
	}
}

// literal is text that Markdown shows as it stands.
func literal(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + " " + text + " " + fence
}
