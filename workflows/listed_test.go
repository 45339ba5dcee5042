package workflows_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// noted reads what lists show of a thread's questions.
func (r *rig) noted(thread string) (note protocol.QuestionsNote, attributes map[string]string) {
	r.t.Helper()
	d, err := r.client.DescribeWorkflowExecution(r.ctx, thread, "")
	if err != nil {
		r.t.Fatal(err)
	}
	info := d.GetWorkflowExecutionInfo()
	if field, ok := info.GetMemo().GetFields()[protocol.MemoQuestions]; ok {
		if err := converter.GetDefaultDataConverter().FromPayload(field, &note); err != nil {
			r.t.Fatal(err)
		}
	}
	attributes = map[string]string{}
	for name, p := range info.GetSearchAttributes().GetIndexedFields() {
		attributes[name] = string(p.GetData())
	}
	return note, attributes
}

// shownEvents counts the events that show something to lists.
func (r *rig) shownEvents(thread string) (attributes, memos int) {
	for _, e := range r.history(thread).Events {
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
			attributes++
		case enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
			if _, ok := e.GetWorkflowPropertiesModifiedEventAttributes().GetUpsertedMemo().GetFields()[protocol.MemoQuestions]; ok {
				memos++
			}
		}
	}
	return attributes, memos
}

func ids(n protocol.QuestionsNote) (out []string) {
	for _, q := range n.Questions {
		out = append(out, q.Node+": "+q.Asks)
	}
	return out
}

// TestQuestionsAreNoted: the memo and the search attributes say what is open, with one event more than without. When nothing is,
// the attributes say so, and the memo is as it was.
func TestQuestionsAreNoted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(approvalGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "approval", Found: &protocol.Found{Lists: true, Inbox: true}, Input: input(`{}`)})
	s := r.asks(thread, 3)
	r.settled(thread)
	note, attributes := r.noted(thread)
	if got, want := strings.Join(ids(note), ", "), "one: first, three: fourth, two: second"; got != want {
		t.Errorf("noted %s, want %s", got, want)
	}
	if attributes[protocol.AttributeStatus] != `"waiting"` || attributes[protocol.AttributeQuestions] != "3" || attributes[protocol.AttributeRisk] != "" {
		t.Errorf("the attributes are %v", attributes)
	}
	if _, err := r.update(thread, answer("u", questionOf(t, s, "two"), `"yes"`)); err != nil {
		t.Fatal(err)
	}
	await(t, "the next question in the memo", func() bool {
		note, _ = r.noted(thread)
		return slices.Contains(ids(note), "two: third")
	}, func() any { return note })
	r.answerAll(thread, run.GetRunID())
	r.finished(run)
	note, attributes = r.noted(thread)
	if attributes[protocol.AttributeQuestions] != "0" || attributes[protocol.AttributeStatus] != `"finished"` {
		t.Errorf("at its end: %v", attributes)
	}
	if shown, memos := r.shownEvents(thread); memos >= shown {
		t.Errorf("%d memos, %d search attributes: the end needs no memo", memos, shown)
	}
	r.onlyNews(thread)
}

// onlyNews holds that no event says of a search attribute what it says already.
func (r *rig) onlyNews(thread string) {
	r.t.Helper()
	told := map[string]string{}
	for _, e := range r.history(thread).Events {
		for name, p := range e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields() {
			now := string(p.GetData()) // of one that a run does not have ""
			if now == told[name] {
				r.t.Errorf("event %d: %s is %q again", e.GetEventId(), name, now)
			}
			told[name] = now
		}
	}
}

// TestQuestionsAreNotedUnderWay: nobody's question waits to be seen for somebody else's task. Without the flag a run has
// no memo, whatever it asks.
func TestQuestionsAreNotedUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(g)
	thread, plain := testserver.Queue(t), testserver.Queue(t)+"-plain"
	r.start(thread, protocol.GraphInput{Graph: "slow", Found: &protocol.Found{Lists: true, Inbox: true}, Input: input(`{}`)})
	r.start(plain, protocol.GraphInput{Graph: "slow", Found: &protocol.Found{Lists: true}, Input: input(`{}`)})
	note, attributes := protocol.QuestionsNote{}, map[string]string{}
	await(t, "the question in the memo", func() bool {
		note, attributes = r.noted(thread)
		return strings.Join(ids(note), ", ") == "asker: soon?" && attributes[protocol.AttributeStatus] == `"running"`
	}, func() any { return []any{note, attributes} })
	close(release)
	r.asks(thread, 1)
	r.asks(plain, 1)
	r.settled(plain)
	if _, memos := r.shownEvents(plain); memos != 0 {
		t.Errorf("%d memos of a run without the attributes of questions", memos)
	}
}

// TestApprovalsAreNoted with who is asked, how bad it can be and what silence means; far more people than fit are bounded.
func TestApprovalsAreNoted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	many := make([]string, 50)
	for i := range many {
		many[i] = strings.Repeat("x", 100) + string(rune('A'+i%26)) + string(rune('A'+i/26))
	}
	r.work(graph("risky", map[string]graphadapter.Node{
		"low":  approving(t, approval.Action{Tool: "mail", Summary: "Mail\n everybody", Risk: approval.RiskLow, Approvers: []string{"ann", "group:ops"}, Within: 3_600_000}),
		"high": approving(t, approval.Action{Tool: "pay", Summary: strings.Repeat("é", 400), Risk: approval.RiskHigh, Quorum: 2, Approvers: many}),
	}, []string{"low", "high"}, to(pregel.Start, "low"), to(pregel.Start, "high")))
	thread := testserver.Queue(t)
	r.start(thread, protocol.GraphInput{Graph: "risky", Found: &protocol.Found{Lists: true, Inbox: true}, Input: input(`{}`)})
	r.asks(thread, 2)
	r.settled(thread)
	note, attributes := r.noted(thread)
	if len(note.Questions) != 2 {
		t.Fatalf("noted %v", note)
	}
	high, low := note.Questions[0], note.Questions[1]
	if low.Asks != "Mail everybody" || low.Risk != approval.RiskLow || low.Need != 1 || low.Due.IsZero() || !slices.Equal(low.Approvers, []string{"ann", "group:ops"}) {
		t.Errorf("noted %+v", low)
	}
	if len(high.Asks) > 300 || !strings.HasSuffix(high.Asks, "é…") || high.Need != 2 {
		t.Errorf("noted %q, of %d approvals", high.Asks, high.Need)
	}
	var names []string
	if err := json.Unmarshal([]byte(attributes[protocol.AttributeApprovers]), &names); err != nil {
		t.Fatal(err)
	}
	if size := len(attributes[protocol.AttributeApprovers]); len(names) < 10 || names[len(names)-1] != protocol.AnyApprover || size > 2048 {
		t.Errorf("%d approvers in %d bytes: %v", len(names), size, names)
	}
	if attributes[protocol.AttributeDue] == "" {
		t.Error("the first deadline is missing")
	}
	if attributes[protocol.AttributeRisk] != `"high"` {
		t.Errorf("risk %s", attributes[protocol.AttributeRisk])
	}
}

// approving is a node that asks for an approval as a program does that knows nothing of gates.
func approving(t *testing.T, a approval.Action) graphadapter.Node {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		_, err := task.AskFor(ctx, pregel.Question{Value: pregel.Value(`"approve?"`), Approval: text, Schema: pregel.Value(approval.ReplySchema)})
		return pregel.Command{}, err
	}}
}

// TestRecordListed records a run that notes its questions, for every later version to replay.
func TestRecordListed(t *testing.T) {
	if !*update {
		t.Skip("run with -update to record")
	}
	recordLife(t, "listed", approvalGraph(), protocol.GraphInput{Found: &protocol.Found{Lists: true, Inbox: true}}, func(r *rig, run client.WorkflowRun) {
		r.asks("listed", 3)
		r.answerAll("listed", run.GetRunID())
	})
}
