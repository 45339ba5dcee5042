package superstep

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/approval"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// InboxQuery selects open questions.
type InboxQuery struct {
	// Approver and Group select the questions that ask this person, or this group, by name; with both, either. A question
	// that names nobody is for whoever the policy allows, and is in nobody's selection.
	Approver, Group string
	// Graph selects the questions of one graph's threads.
	Graph string
	// Overdue selects those whose deadline is over.
	Overdue bool
	// Limit is the most threads of a page, 0 for 100, at most 1,000.
	Limit int
	// Page is the Next of the page before, "" for the first one.
	Page string
}

// InboxPage is one page of open questions.
type InboxPage struct {
	// Questions are those of the page's threads, the most pressing first: by deadline, then by risk. The threads are those
	// that started last.
	Questions []InboxItem `json:"questions"`
	// Next continues behind this page; "" when it is the last.
	Next string `json:"next,omitempty"`
}

// InboxItem is one open question as the server's index has it.
type InboxItem struct {
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	// Job is the job whose leader or expert asks, "" for none.
	Job string `json:"job,omitempty"`
	// Question is "" when only Open is known: how many questions the thread asks, beyond those that are listed.
	Question string `json:"question,omitempty"`
	Open     int    `json:"open,omitempty"`
	Node     string `json:"node,omitempty"`
	// Asks is the question in one line of at most 300 bytes.
	Asks string `json:"asks,omitempty"`
	// What follows is of approvals only. Votes are the approvals so far, of the Need that it takes.
	Risk      approval.Risk    `json:"risk,omitempty"`
	Due       time.Time        `json:"due,omitzero"`
	Silence   approval.Silence `json:"silence,omitempty"`
	Approvers []string         `json:"approvers,omitempty"`
	Votes     int              `json:"votes,omitempty"`
	Need      int              `json:"need,omitempty"`
	// Paused says who paused the thread's run, nil when nobody did: its questions can be answered all the same.
	Paused *PauseView `json:"paused,omitempty"`
}

// mostInbox bounds a page: it is what the server's index gives at once.
const mostInbox = 1000

// Inbox returns the open questions of all threads, a page of them with one call to the server's index: no worker is asked.
// The index is a moment behind, and shows the first 20 questions of a thread.
//
// Errors: ErrNoServer; ErrBadInput, also for a namespace that does not have the search attributes of questions.
func (c *Client) Inbox(ctx context.Context, q InboxQuery) (InboxPage, error) {
	request, err := c.inboxRequest(ctx, q)
	if err != nil {
		return InboxPage{}, err
	}
	reply, err := c.temporal.ListWorkflow(ctx, request)
	if err != nil {
		return InboxPage{}, c.explain(err, q.Graph, "")
	}
	page := InboxPage{Questions: []InboxItem{}, Next: base64.RawURLEncoding.EncodeToString(reply.GetNextPageToken())}
	now := time.Now()
	for _, info := range reply.GetExecutions() {
		for _, item := range c.inboxItems(info) {
			if q.selects(item, now) {
				page.Questions = append(page.Questions, item)
			}
		}
	}
	slices.SortStableFunc(page.Questions, morePressing)
	return page, nil
}

func (c *Client) inboxRequest(ctx context.Context, q InboxQuery) (*workflowservice.ListWorkflowExecutionsRequest, error) {
	limit := cmp.Or(q.Limit, defaultList)
	if limit < 0 || limit > mostInbox {
		return nil, &Error{Kind: ErrBadInput, Message: fmt.Sprintf("a page of %d threads is not one of 1 to %d", limit, mostInbox)}
	}
	token, err := base64.RawURLEncoding.DecodeString(q.Page)
	if err != nil {
		return nil, &Error{Kind: ErrBadInput, Message: "the page is not the Next of another one", Cause: err}
	}
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return nil, err
	}
	if !has.Inbox {
		return nil, &Error{Kind: ErrBadInput,
			Message: fmt.Sprintf("the namespace %q does not have the search attributes of questions", c.cfg.Namespace),
			Do: fmt.Sprintf("Add them, for runs that start from then on: temporal operator search-attribute create"+
				" --namespace %s --name %s --type KeywordList --name %s --type Datetime --name %s --type Keyword",
				c.cfg.Namespace, protocol.AttributeApprovers, protocol.AttributeDue, protocol.AttributeRisk)}
	}
	return &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.cfg.Namespace, PageSize: int32(limit), NextPageToken: token, Query: q.filter(time.Now()),
	}, nil
}

// asksPeople selects runs with open questions, of threads and of jobs, in the server's index.
const asksPeople = "WorkflowType IN ('" + protocol.GraphWorkflow + "', '" + protocol.LeaderWorkflow + "') AND ExecutionStatus = 'Running' AND " +
	protocol.AttributeQuestions + " > 0"

// filter is the query of the server's index.
func (q InboxQuery) filter(now time.Time) string {
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
func (q InboxQuery) asked() (names []string) {
	if q.Approver != "" {
		names = append(names, q.Approver)
	}
	if q.Group != "" {
		names = append(names, "group:"+q.Group)
	}
	return names
}

// selects reports whether a question is one of those that are wanted: the index knows only what a thread asks in all.
func (q InboxQuery) selects(item InboxItem, now time.Time) bool {
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
func (c *Client) inboxItems(info *workflowpb.WorkflowExecutionInfo) []InboxItem {
	thread := InboxItem{Thread: info.GetExecution().GetWorkflowId(), Graph: c.graphOf(info), Paused: c.pauseOf(info)}
	thread.Job = job.Of(thread.Thread)
	var open int
	attribute(info, protocol.AttributeQuestions, &open)
	var note protocol.QuestionsNote
	if field, ok := info.GetMemo().GetFields()[protocol.MemoQuestions]; ok && c.cfg.DataConverter.FromPayload(field, &note) != nil {
		note = protocol.QuestionsNote{} // written with another converter: the number of questions is known all the same
	}
	var items []InboxItem
	for _, q := range note.Questions {
		item := thread
		item.Question, item.Node, item.Asks, item.Risk, item.Due, item.Silence = q.ID, q.Node, q.Asks, q.Risk, q.Due, q.Silence
		item.Approvers, item.Votes, item.Need = q.Approvers, q.Votes, q.Need
		items = append(items, item)
	}
	if more := open - len(items); more > 0 {
		thread.Open = more
		items = append(items, thread)
	}
	return items
}

// morePressing orders by deadline, then by risk, and questions that are not known last.
func morePressing(a, b InboxItem) int {
	known := func(i InboxItem) int {
		if i.Question == "" {
			return 1
		}
		return 0
	}
	deadline := func(i InboxItem) int {
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
