package workflows

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// The bounds of what lists show of a run's questions. The server takes 2 KiB for one search attribute.
const (
	maxNoted         = 20 // questions
	maxAsksBytes     = 300
	maxApproverBytes = 1500
	// maxShownUnderWay bounds the events that show questions while other tasks of their superstep are under way.
	maxShownUnderWay = 20
)

// listed is what lists were told of the run's questions last.
type listed struct {
	// changed says that questions were asked or answered while other tasks are under way, and underWay how often that was
	// shown since the run last rested.
	changed  bool
	underWay int
	// news is what approvals.news was.
	news int
	// shown is the newest search attributes and memo, and noted says that there is a memo.
	shown showing
	noted bool
}

// showing is what show brings up to date.
type showing struct {
	status string
	nodes  []string
	open   int
	note   protocol.QuestionsNote
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
	return r.lists() && r.tasks.running > 0 && r.listed.underWay < maxShownUnderWay &&
		(r.listed.changed || r.listed.news != r.approvals.news)
}

// lists reports whether the run tells lists what it asks.
func (r *run) lists() bool { return r.in.Attributes && r.in.Inbox }

// showQuestions is show for a run whose namespace has the search attributes of questions: at most one event for those, and
// one for the memo, and none when there is nothing new to see.
func (r *run) showQuestions(ctx workflow.Context, now showing) {
	now.note = r.noteOf(r.questions())
	r.listed.changed, r.listed.news = false, r.approvals.news
	if r.status != protocol.StatusRunning {
		r.listed.underWay = 0
	}
	r.listed.upsert(ctx, now)
}

// upsert shows what is new: at most one event for the search attributes, and one for the memo.
func (l *listed) upsert(ctx workflow.Context, now showing) {
	was := l.shown
	other := !sameNote(now.note, was.note)
	if now.status == was.status && now.open == was.open && slices.Equal(now.nodes, was.nodes) && !other {
		return
	}
	l.shown = now
	updates := now.attributes()
	if other || l.noted != (len(now.note.Questions) > 0) {
		updates = append(updates, noteAttributes(now.note)...)
		l.noted = len(now.note.Questions) > 0
		if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoQuestions: now.note}); err != nil {
			workflow.GetLogger(ctx).Warn("the questions are not in the memo", "error", err)
		}
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not updated", "error", err)
	}
}

func (s showing) attributes() []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(protocol.AttributeStatus).ValueSet(s.status),
		temporal.NewSearchAttributeKeyKeywordList(protocol.AttributeNodes).ValueSet(s.nodes),
		temporal.NewSearchAttributeKeyInt64(protocol.AttributeQuestions).ValueSet(int64(s.open)),
	}
}

// noteOf is what lists show of open questions.
func (r *run) noteOf(open []pregel.OpenQuestion) protocol.QuestionsNote {
	n := protocol.QuestionsNote{More: max(0, len(open)-maxNoted)}
	for _, q := range open[:len(open)-n.More] {
		n.Questions = append(n.Questions, r.noteQuestion(q))
	}
	return n
}

func (r *run) noteQuestion(q pregel.OpenQuestion) protocol.QuestionNote {
	n := protocol.QuestionNote{ID: q.ID, Node: q.Node}
	var a approval.Action
	if q.Approval == nil || json.Unmarshal(q.Approval, &a) != nil {
		n.Asks = line(graphadapter.QuestionText(q.Value))
		return n
	}
	n.Asks, n.Risk, n.Silence = line(a.Summary), a.Risk, a.Silence
	n.Approvers, n.Need = a.Approvers, a.Needs(0)
	if p := r.pending(q.ID); p != nil {
		n.Approvers, n.Need, n.Votes, n.Due = p.Asked, p.Need, len(p.Votes), p.Due
		if n.Due.IsZero() {
			n.Due = p.Missed
		}
	}
	return n
}

// line is text as one line of at most maxAsksBytes bytes.
func line(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(text) <= maxAsksBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxAsksBytes-len("…")], "") + "…"
}

// sameNote reports whether two notes show the same.
func sameNote(n, other protocol.QuestionsNote) bool {
	return n.More == other.More && slices.EqualFunc(n.Questions, other.Questions, func(a, b protocol.QuestionNote) bool {
		return a.ID == b.ID && a.Asks == b.Asks && a.Risk == b.Risk && a.Due.Equal(b.Due) && a.Silence == b.Silence &&
			slices.Equal(a.Approvers, b.Approvers) && a.Votes == b.Votes && a.Need == b.Need
	})
}

// noteAttributes are the search attributes by which lists choose.
func noteAttributes(n protocol.QuestionsNote) []temporal.SearchAttributeUpdate {
	approvers := temporal.NewSearchAttributeKeyKeywordList(protocol.AttributeApprovers)
	due := temporal.NewSearchAttributeKeyTime(protocol.AttributeDue)
	risk := temporal.NewSearchAttributeKeyKeyword(protocol.AttributeRisk)
	updates := []temporal.SearchAttributeUpdate{approvers.ValueUnset(), due.ValueUnset(), risk.ValueUnset()}
	if names := approversOf(n); len(names) > 0 {
		updates[0] = approvers.ValueSet(names)
	}
	if first := dueOf(n); !first.IsZero() {
		updates[1] = due.ValueSet(first)
	}
	if highest := riskOf(n); highest != "" {
		updates[2] = risk.ValueSet(string(highest))
	}
	return updates
}

// approversOf are those who are asked, each once; [protocol.AnyApprover] stands for those who do not fit, or are not known.
func approversOf(n protocol.QuestionsNote) (names []string) {
	size := 0
	for _, q := range n.Questions {
		for _, name := range q.Approvers {
			if slices.Contains(names, name) || slices.Contains(names, protocol.AnyApprover) {
				continue
			}
			if size += len(name) + 3; size > maxApproverBytes {
				name = protocol.AnyApprover
			}
			names = append(names, name)
		}
	}
	if n.More > 0 && !slices.Contains(names, protocol.AnyApprover) {
		names = append(names, protocol.AnyApprover)
	}
	return names
}

func dueOf(n protocol.QuestionsNote) (first time.Time) {
	for _, q := range n.Questions {
		if !q.Due.IsZero() && (first.IsZero() || q.Due.Before(first)) {
			first = q.Due
		}
	}
	return first
}

func riskOf(n protocol.QuestionsNote) (highest approval.Risk) {
	for _, q := range n.Questions {
		if q.Risk.Above(highest) {
			highest = q.Risk
		}
	}
	return highest
}
