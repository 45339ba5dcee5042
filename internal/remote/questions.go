package remote

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// The bounds of a look at all open questions: so many pages of the index are read, and so many graphs named to it.
const (
	openPages   = 100
	namedGraphs = 50
)

// OpenQuestions counts the open questions of the graphs and leaders of those names in the server's index, with one call for each 1,000
// threads that ask.
func OpenQuestions(ctx context.Context, c *Threads, graphs ...string) ([]thread.OpenQuestions, error) {
	if err := listsQuestions(ctx, c.reader); err != nil {
		return nil, err
	}
	query := asksPeople
	if len(graphs) > 0 && len(graphs) <= namedGraphs {
		quoted := make([]string, len(graphs))
		for i, name := range graphs {
			quoted[i] = quotedInQuery(name)
		}
		query += fmt.Sprintf(" AND %s IN (%s)", protocol.AttributeGraph, strings.Join(quoted, ", "))
	}
	counts := openCounts{}
	var token []byte
	for range openPages {
		page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.cfg.Namespace, PageSize: mostInbox, NextPageToken: token, Query: query})
		if err != nil {
			return nil, c.explain(err, "", "")
		}
		for _, info := range page.GetExecutions() {
			if graph := c.graphOf(info); len(graphs) == 0 || slices.Contains(graphs, graph) {
				counts.add(c.reader, graph, info)
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	out := make([]thread.OpenQuestions, 0, len(counts))
	for _, q := range counts {
		out = append(out, *q)
	}
	slices.SortFunc(out, func(a, b thread.OpenQuestions) int {
		return cmp.Or(cmp.Compare(a.Graph, b.Graph), cmp.Compare(a.About, b.About))
	})
	return out, nil
}

// openCounts are open questions by graph and what they are about.
type openCounts map[[2]string]*thread.OpenQuestions

// add adds what a run asks. What its note does not show counts as what it shows last.
func (counts openCounts) add(c *reader, graph string, info *workflowpb.WorkflowExecutionInfo) {
	add := func(about string, n int, at time.Time) {
		q := counts[[2]string{graph, about}]
		if q == nil {
			q = &thread.OpenQuestions{Graph: graph, About: about}
			counts[[2]string{graph, about}] = q
		}
		if q.Open += n; !at.IsZero() && (q.Oldest.IsZero() || at.Before(q.Oldest)) {
			q.Oldest = at
		}
	}
	about := thread.AboutQuestion
	note, open := noteOf(c, info)
	for _, q := range note.Questions {
		about = cmp.Or(q.About, thread.AboutQuestion)
		add(about, 1, q.At)
	}
	if more := open - len(note.Questions); more > 0 {
		add(about, more, time.Time{})
	}
}
