// Package listing keeps up to date what lists show of a run: its search attributes and its memo.
package listing

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/workflows/protocol"
)

// MaxQuestions bounds the questions that lists show of one run.
const MaxQuestions = 20

// Listing is what lists were told of a run last.
type Listing struct {
	found  protocol.Found
	shown  Shown
	silent bool
}

// Shown is what lists show of a run.
type Shown struct {
	Status string
	// Nodes ask Open questions, the first of which are in Note. A node may be there more than once.
	Nodes []string
	Open  int
	Note  protocol.QuestionsNote
}

// Open takes over what lists show of the run.
func Open(ctx workflow.Context, found protocol.Found) Listing {
	return open(found, attributesOf(ctx).told)
}

func open(found protocol.Found, told temporal.SearchAttributes) Listing {
	l := Listing{found: found}
	asked, _ := told.GetInt64(temporal.NewSearchAttributeKeyInt64(protocol.AttributeQuestions))
	l.shown.Open = int(asked)
	status, said := told.GetKeyword(temporal.NewSearchAttributeKeyKeyword(protocol.AttributeStatus))
	l.shown.Status, l.silent = cmp.Or(status, protocol.StatusRunning), !said
	return l
}

// Begin is Open of a run that begins. What whoever started it has not said the run says itself: whose graph or leader it is, and
// whose child. A run that was started with all of that has no event for this.
func Begin(ctx workflow.Context, found protocol.Found, graph string) Listing {
	info := workflow.GetInfo(ctx)
	if _, said := info.Memo.GetFields()[protocol.MemoGraph]; !found.Lists && !said {
		if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoGraph: graph}); err != nil {
			workflow.GetLogger(ctx).Warn("the graph is not in the memo", "error", err)
		}
	}
	a := attributesOf(ctx)
	if _, said := a.told.GetKeyword(temporal.NewSearchAttributeKeyKeyword(protocol.AttributeGraph)); found.Lists && !said {
		a.keyword(protocol.AttributeGraph, graph)
		if parent := info.ParentWorkflowExecution; parent != nil {
			a.keyword(protocol.AttributeParent, parent.ID)
		}
		a.upsert(ctx)
	}
	return open(found, a.told)
}

// Questions reports whether lists show the questions of the run.
func (l *Listing) Questions() bool { return l.found.Lists && l.found.Inbox }

// Upsert shows what is new: at most one event for the search attributes, of those alone that have changed, and one for the memo.
func (l *Listing) Upsert(ctx workflow.Context, now Shown) {
	if !l.found.Lists {
		return
	}
	if !l.found.Inbox {
		now.Note = protocol.QuestionsNote{}
	}
	now.Nodes = nodesOf(now.Nodes)
	was := l.shown
	other := !sameNote(now.Note, was.Note)
	if now.Status == was.Status && now.Open == was.Open && slices.Equal(now.Nodes, was.Nodes) && !other {
		return
	}
	l.shown, l.silent = now, false
	a := attributesOf(ctx)
	a.show(now)
	if l.found.Inbox {
		a.choose(now.Note)
	}
	if other && len(now.Note.Questions) > 0 {
		note(ctx, now.Note)
	}
	a.upsert(ctx)
}

// note puts the questions in the memo. Where none is open any more the memo stays, and the attributes say so: one event less.
func note(ctx workflow.Context, questions protocol.QuestionsNote) {
	if err := workflow.UpsertMemo(ctx, map[string]any{protocol.MemoQuestions: questions}); err != nil {
		workflow.GetLogger(ctx).Warn("the questions are not in the memo", "error", err)
	}
}

// End shows how the run ends, and nothing else: who lists runs that are over sees it without reading their last events.
func (l *Listing) End(ctx workflow.Context, status string) {
	if l.found.Lists {
		a := attributesOf(ctx)
		a.keyword(protocol.AttributeStatus, status)
		a.upsert(ctx)
	}
}

// Silent reports whether lists were told nothing but whose run it is. When such a run finishes there is nothing to tell either:
// Temporal's own status says so, and an update costs an event, and a third of what the server's index does for a short run.
func (l *Listing) Silent() bool { return l.silent }

// sameNote reports whether two notes show the same.
func sameNote(n, other protocol.QuestionsNote) bool {
	return n.More == other.More && slices.EqualFunc(n.Questions, other.Questions, func(a, b protocol.QuestionNote) bool {
		return a.ID == b.ID && a.Asks == b.Asks && a.Risk == b.Risk && a.Due.Equal(b.Due) && a.Silence == b.Silence &&
			slices.Equal(a.Approvers, b.Approvers) && a.Votes == b.Votes && a.Need == b.Need
	})
}
