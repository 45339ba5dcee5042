package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// mostInbox bounds a page: it is what the server's index gives at once.
const mostInbox = 1000

// Inbox returns the open questions of all threads, a page of them with one call to the server's index. What this client has just changed
// is shown as it is: before the index's pages what asks, and in its place what does not ask any more.
func (c *reader) Inbox(ctx context.Context, query thread.InboxQuery) (thread.InboxPage, error) {
	q := inboxFilter{query}
	limit := cmp.Or(q.Limit, defaultList)
	if limit < 0 || limit > mostInbox {
		return thread.InboxPage{}, &thread.Error{Kind: thread.ErrBadInput, Message: fmt.Sprintf("a page of %d threads is not one of 1 to %d", limit, mostInbox)}
	}
	at, err := inboxPlaceOf(q.Page)
	if err != nil {
		return thread.InboxPage{}, err
	}
	if err := listsQuestions(ctx, c); err != nil {
		return thread.InboxPage{}, err
	}
	changed, err := unlisted{c}.runs(ctx)
	if err != nil {
		return thread.InboxPage{}, err
	}
	asking := at.ahead(changed, q, limit)
	page := thread.InboxPage{Questions: []thread.InboxItem{}, Next: at.String()}
	if left := limit - len(asking); left > 0 {
		reply, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: c.cfg.Namespace, PageSize: int32(left), NextPageToken: at.Index, Query: q.filter(time.Now())})
		if err != nil {
			return thread.InboxPage{}, c.explain(err, q.Graph, "")
		}
		for _, info := range reply.GetExecutions() {
			now, isChanged := changed[info.GetExecution().GetWorkflowId()]
			if isChanged {
				info = now
			}
			if !at.hasShown(info.GetExecution().GetWorkflowId()) && (!isChanged || q.matches(info)) {
				asking = append(asking, info)
			}
		}
		at.Index = reply.GetNextPageToken()
		if page.Next = ""; len(at.Index) > 0 {
			page.Next = at.String()
		}
	}
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

// inboxPlace is where a page of the inbox begins: where the index goes on, nil before its first page, and which threads stood before
// its pages (see ahead). Shown is bounded by mostChanged.
type inboxPlace struct {
	Index []byte        `json:"index,omitempty"`
	Shown []shownThread `json:"shown,omitempty"`
}

// shownThread is a thread's id in a place, which is to be short.
type shownThread uint64

func shownAs(id string) shownThread {
	sum := sha256.Sum256([]byte(id))
	return shownThread(binary.BigEndian.Uint64(sum[:]))
}

func (p *inboxPlace) hasShown(id string) bool { return slices.Contains(p.Shown, shownAs(id)) }

// ahead are runs that this client has changed, that ask what the inbox is asked for, and that no earlier page has shown: so many at most,
// which p notes as shown. They come before the index's pages: the index may have them anywhere or not yet, and would show them twice, or
// never, when it caught up from one page to the next.
func (p *inboxPlace) ahead(changed map[string]*workflowpb.WorkflowExecutionInfo, q inboxFilter, most int) (asking []*workflowpb.WorkflowExecutionInfo) {
	if len(p.Index) > 0 {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		if len(asking) == most || len(p.Shown) == mostChanged {
			break
		}
		if info := changed[id]; q.matches(info) && !p.hasShown(id) {
			asking = append(asking, info)
			p.Shown = append(p.Shown, shownAs(id))
		}
	}
	return asking
}

// String is the text that [inboxPlaceOf] reads.
func (p *inboxPlace) String() string {
	text, _ := json.Marshal(p) // bytes and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

// inboxPlaceOf reads a place, "" for the beginning.
func inboxPlaceOf(page string) (at inboxPlace, err error) {
	if page == "" {
		return at, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(page)
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil || len(at.Shown) > mostChanged {
		return at, &thread.Error{Kind: thread.ErrBadInput, Message: "the page is not the Next of another one", Cause: err}
	}
	return at, nil
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
const asksPeople = "WorkflowType IN ('" + protocol.GraphWorkflow + "', '" + protocol.LeaderWorkflow + "') AND ExecutionStatus IN ('Running', 'Paused') AND " +
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
	if field, ok := info.GetMemo().GetFields()[protocol.MemoQuestions]; ok && open > 0 && c.cfg.DataConverter.FromPayload(field, &note) != nil {
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
