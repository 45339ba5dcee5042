package remote

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

const (
	defaultList = 100
	listPage    = 200
	// listPages bounds the pages read for one call: with a filter that only this client can apply, most may not match.
	listPages = 50
)

// List returns threads, each with its newest run, in the order of the server's index: first the open ones, those started last
// first, then the closed ones, those closed last first. What this client has just changed is shown as it is, whatever the index says.
func (c *reader) List(ctx context.Context, q thread.ListQuery) ([]thread.View, error) {
	return newest(ctx, c, listing{protocol.GraphWorkflow, q.Graph, q.Limit}, func(info *workflowpb.WorkflowExecutionInfo) (v thread.View, of string, wanted bool) {
		v = c.listed(info)
		return v, v.Graph, q.Status == "" || v.Status == q.Status
	})
}

// listing selects runs of a kind of workflow, and of a graph or leader, "" for any. 0 is the default limit.
type listing struct {
	kind, of string
	limit    int
}

// newest is what show makes of the newest run of each id, up to the limit. Show also says of which graph or leader the run is, and
// whether it is wanted. The server's index does what it can. The status is left to show: an older run of an id must not stand in
// for its newest.
func newest[T any](ctx context.Context, c *reader, q listing, show func(*workflowpb.WorkflowExecutionInfo) (item T, of string, wanted bool)) ([]T, error) {
	filter := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus != 'ContinuedAsNew'", q.kind)
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return nil, err
	}
	if has.Lists && q.of != "" {
		filter += fmt.Sprintf(" AND %s = %s", protocol.AttributeGraph, quotedInQuery(q.of))
	}
	limit, seen, rows := cmp.Or(max(q.limit, 0), defaultList), map[string]bool{}, []row[T]{}
	take := func(info *workflowpb.WorkflowExecutionInfo) {
		id := info.GetExecution().GetWorkflowId()
		item, of, wanted := show(info)
		if seen[id] || q.of != "" && of != q.of {
			return
		}
		if seen[id] = true; wanted {
			rows = append(rows, row[T]{info, item})
		}
	}
	changed, err := unlisted{c}.runs(ctx)
	if err != nil {
		return nil, err
	}
	for id, info := range changed {
		if info.GetType().GetName() == q.kind {
			take(info)
		}
		seen[id] = true
	}
	enough, token := len(rows)+limit, []byte(nil)
	for range listPages {
		page, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.cfg.Namespace, PageSize: listPage, NextPageToken: token, Query: filter,
		})
		if err != nil {
			return nil, c.explain(err, q.of, "")
		}
		for _, info := range page.GetExecutions() {
			take(info)
		}
		if token = page.GetNextPageToken(); len(token) == 0 || len(rows) >= enough {
			break
		}
	}
	slices.SortStableFunc(rows, inOrder)
	out := []T{}
	for _, r := range rows[:min(limit, len(rows))] {
		out = append(out, r.item)
	}
	return out, nil
}

// row is a run, and what a list shows of it.
type row[T any] struct {
	info *workflowpb.WorkflowExecutionInfo
	item T
}

// inOrder is the order of the server's index.
func inOrder[T any](a, b row[T]) int {
	closed := func(r row[T]) time.Time {
		if t := r.info.GetCloseTime(); t != nil {
			return t.AsTime()
		}
		return time.Unix(1<<40, 0) // an open run is before all that are closed
	}
	return cmp.Or(closed(b).Compare(closed(a)), b.info.GetStartTime().AsTime().Compare(a.info.GetStartTime().AsTime()))
}

// quotedInQuery is a text within a query of the server's index.
func quotedInQuery(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}

func (c *reader) listed(info *workflowpb.WorkflowExecutionInfo) thread.View {
	v := thread.View{
		Thread: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId(), Graph: c.graphOf(info),
		Status: statusOf(info.GetStatus()), Started: c.began(info), Events: info.GetHistoryLength(),
		HistoryBytes: info.GetHistorySizeBytes(),
	}
	if info.GetCloseTime() != nil {
		v.Closed = info.GetCloseTime().AsTime()
	}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		attribute(info, protocol.AttributeStatus, &v.Status)
		attribute(info, protocol.AttributeNodes, &v.Nodes)
		v.Paused = c.pauseOf(info)
		v.Held = v.Status.Failed()
	}
	if v.Status == thread.StatusFailed {
		var closed thread.Status
		attribute(info, protocol.AttributeStatus, &closed)
		if closed.Failed() {
			v.Status = closed
		}
	}
	return v
}

// attribute reads a search attribute if the run has it. The server reads them too, so no codec is applied to them.
func attribute(info *workflowpb.WorkflowExecutionInfo, name string, into any) {
	if p, ok := info.GetSearchAttributes().GetIndexedFields()[name]; ok {
		// An attribute of another type than ours says nothing.
		_ = converter.GetDefaultDataConverter().FromPayload(p, into)
	}
}

// pauseOf reads from a run's memo who paused it, nil when nobody did.
func (c *reader) pauseOf(info *workflowpb.WorkflowExecutionInfo) *thread.PauseView {
	var p protocol.Pause
	field, ok := info.GetMemo().GetFields()[protocol.MemoPause]
	if !ok || c.cfg.DataConverter.FromPayload(field, &p) != nil || p.At.IsZero() {
		return nil
	}
	return &p
}

// mostInbox bounds a page: it is what the server's index gives at once.
const mostInbox = 1000

// Inbox returns the open questions of all threads, a page of them with one call to the server's index. What this client has just changed
// is shown as it is.
func (c *reader) Inbox(ctx context.Context, query thread.InboxQuery) (thread.InboxPage, error) {
	q := inboxFilter{query}
	request, err := c.inboxRequest(ctx, q)
	if err != nil {
		return thread.InboxPage{}, err
	}
	reply, err := c.temporal.ListWorkflow(ctx, request)
	if err != nil {
		return thread.InboxPage{}, c.explain(err, q.Graph, "")
	}
	asking, err := unlisted{c}.asking(ctx, q, request.GetQuery(), reply)
	if err != nil {
		return thread.InboxPage{}, err
	}
	page := thread.InboxPage{Questions: []thread.InboxItem{}, Next: base64.RawURLEncoding.EncodeToString(reply.GetNextPageToken())}
	now := time.Now()
	for _, info := range asking {
		for _, item := range c.inboxItems(info) {
			if q.selects(item, now) {
				page.Questions = append(page.Questions, item)
			}
		}
	}
	slices.SortStableFunc(page.Questions, morePressing)
	return page, nil
}

func (c *reader) inboxRequest(ctx context.Context, q inboxFilter) (*workflowservice.ListWorkflowExecutionsRequest, error) {
	limit := cmp.Or(q.Limit, defaultList)
	if limit < 0 || limit > mostInbox {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: fmt.Sprintf("a page of %d threads is not one of 1 to %d", limit, mostInbox)}
	}
	token, err := base64.RawURLEncoding.DecodeString(q.Page)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "the page is not the Next of another one", Cause: err}
	}
	if err := listsQuestions(ctx, c); err != nil {
		return nil, err
	}
	return &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.cfg.Namespace, PageSize: int32(limit), NextPageToken: token, Query: q.filter(time.Now()),
	}, nil
}

// listsQuestions refuses a namespace whose index does not know of questions.
func listsQuestions(ctx context.Context, c *reader) error {
	has, err := c.hasAttributes(ctx)
	if err == nil && !has.Inbox {
		err = &thread.Error{Kind: thread.ErrBadInput,
			Message: fmt.Sprintf("the namespace %q does not have the search attributes of questions", c.cfg.Namespace),
			Do: fmt.Sprintf("Add them, for runs that start from then on: temporal operator search-attribute create"+
				" --namespace %s --name %s --type KeywordList --name %s --type Datetime --name %s --type Keyword",
				c.cfg.Namespace, protocol.AttributeApprovers, protocol.AttributeDue, protocol.AttributeRisk)}
	}
	return err
}

// asksPeople selects runs with open questions, of threads and of jobs, in the server's index.
const asksPeople = "WorkflowType IN ('" + protocol.GraphWorkflow + "', '" + protocol.LeaderWorkflow + "') AND ExecutionStatus = 'Running' AND " +
	protocol.AttributeQuestions + " > 0"

// inboxFilter selects open questions in the server's index, and among what it finds.
type inboxFilter struct{ thread.InboxQuery }

// filter is the query of the server's index.
func (q inboxFilter) filter(now time.Time) string {
	filter := asksPeople
	if q.Graph != "" {
		filter += fmt.Sprintf(" AND %s = %s", protocol.AttributeGraph, quotedInQuery(q.Graph))
	}
	if asked := q.asked(); len(asked) > 0 {
		var names []string
		for _, name := range append(asked, protocol.AnyApprover) {
			names = append(names, quotedInQuery(name))
		}
		filter += fmt.Sprintf(" AND %s IN (%s)", protocol.AttributeApprovers, strings.Join(names, ", "))
	}
	if q.Overdue {
		filter += fmt.Sprintf(" AND %s < '%s'", protocol.AttributeDue, now.UTC().Format(time.RFC3339Nano))
	}
	return filter
}

// asked are the names that a question is to ask, none for any.
func (q inboxFilter) asked() (names []string) {
	if q.Approver != "" {
		names = append(names, q.Approver)
	}
	if q.Group != "" {
		names = append(names, "group:"+q.Group)
	}
	return names
}

// selects reports whether a question is one of those that are wanted: the index knows only what a thread asks in all.
func (q inboxFilter) selects(item thread.InboxItem, now time.Time) bool {
	if item.Question == "" {
		return !q.Overdue // nobody knows whom it asks
	}
	asked := q.asked()
	if len(asked) > 0 && !slices.ContainsFunc(item.Approvers, func(name string) bool { return slices.Contains(asked, name) }) {
		return false
	}
	return !q.Overdue || !item.Due.IsZero() && item.Due.Before(now)
}

// inboxItems are what a thread asks.
func (c *reader) inboxItems(info *workflowpb.WorkflowExecutionInfo) []thread.InboxItem {
	th := thread.InboxItem{Thread: info.GetExecution().GetWorkflowId(), Graph: c.graphOf(info), Paused: c.pauseOf(info)}
	th.Job = job.Of(th.Thread)
	note, open := noteOf(c, info)
	var items []thread.InboxItem
	for _, q := range note.Questions {
		item := th
		item.Question, item.Node, item.Asks, item.Risk, item.Due, item.Silence = q.ID, q.Node, q.Asks, q.Risk, q.Due, q.Silence
		item.Approvers, item.Votes, item.Need = q.Approvers, q.Votes, q.Need
		items = append(items, item)
	}
	if more := open - len(items); more > 0 {
		th.Open = more
		items = append(items, th)
	}
	return items
}

// noteOf is what lists show of a run's questions, and how many are open.
func noteOf(c *reader, info *workflowpb.WorkflowExecutionInfo) (note protocol.QuestionsNote, open int) {
	attribute(info, protocol.AttributeQuestions, &open)
	if field, ok := info.GetMemo().GetFields()[protocol.MemoQuestions]; ok && c.cfg.DataConverter.FromPayload(field, &note) != nil {
		note = protocol.QuestionsNote{} // written with another converter: the number of questions is known all the same
	}
	return note, open
}

// morePressing orders by deadline, then by risk, and questions that are not known last.
func morePressing(a, b thread.InboxItem) int {
	known := func(i thread.InboxItem) int {
		if i.Question == "" {
			return 1
		}
		return 0
	}
	deadline := func(i thread.InboxItem) int {
		if i.Due.IsZero() {
			return 1
		}
		return 0
	}
	if order := cmp.Or(cmp.Compare(known(a), known(b)), cmp.Compare(deadline(a), deadline(b)), a.Due.Compare(b.Due)); order != 0 {
		return order
	}
	switch {
	case a.Risk.Above(b.Risk):
		return -1
	case b.Risk.Above(a.Risk):
		return 1
	}
	return 0
}
