package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// desk runs one task attempt after attempt, as its thread does: with the answers that its questions got.
type desk struct {
	t       *testing.T
	g       *graphadapter.Graph
	journal *graphadapter.MemoryJournal
	answers []pregel.Answer
	use     graphadapter.UseGate
	suspect bool
}

func newDesk(t *testing.T, g *graphadapter.Graph) *desk {
	return &desk{t: t, g: g, journal: mustJournal(t, nil), use: allow}
}

func allow(context.Context, approval.UseCheck) (approval.Ruling, error) {
	return approval.Ruling{Allowed: true}, nil
}

// run is one attempt.
func (d *desk) run() (pregel.Outcome, error) {
	task := payTask()
	task.Answers = d.answers
	return RunAttempt(d.t.Context(), d.g, task, Env{Thread: "r-7", Suspect: d.suspect, Journal: d.journal, Requester: "rita", Use: d.use})
}

// asks runs an attempt that waits, and returns the action that it asks about.
func (d *desk) asks() (pregel.Question, approval.Action) {
	d.t.Helper()
	out, err := d.run()
	if err != nil || len(out.Questions) != 1 {
		d.t.Fatalf("%v, questions %+v; want one", err, out.Questions)
	}
	q := out.Questions[0]
	var a approval.Action
	if err := json.Unmarshal(q.Approval, &a); err != nil {
		d.t.Fatal(err)
	}
	return q, a
}

// says answers a question as a thread does; by are those who say so, with commas between.
func (d *desk) says(q pregel.Question, a approval.Action, v approval.Verdict, by string, params string) {
	d.t.Helper()
	var votes []approval.Vote
	for name := range strings.SplitSeq(by, ",") {
		votes = append(votes, approval.Vote{By: name, Verdict: v, Reason: "so says " + name, Token: "t-" + name})
	}
	decision, ok := a.Decide(q.ID, votes, 0, json.RawMessage(params))
	if !ok {
		d.t.Fatal("it is not decided")
	}
	raw, err := json.Marshal(decision)
	if err != nil {
		d.t.Fatal(err)
	}
	d.answers = append(d.answers, pregel.Answer{QuestionID: q.ID, Value: raw})
}

// refund is an action whose parts the test changes.
func refundAction() approval.Action {
	return approval.Action{Tool: "refund", ToolVersion: "v1", Summary: "Refund 250 to o-7", Params: json.RawMessage(`{"amount":250}`),
		Permissions: []string{"refund.write"}, Watch: map[string]string{"balance": "250"}}
}

// approvingNode asks for the approval of *a and notes what it got.
func approvingNode(a *approval.Action, got *approval.Decision) graphadapter.NodeFunc {
	return calling(func(ctx context.Context, t *TaskRun) (err error) {
		*got, err = t.Approve(ctx, ApprovalRequest{Action: *a})
		return err
	})
}

func TestApprove(t *testing.T) {
	action, got := refundAction(), approval.Decision{}
	d := newDesk(t, oneNode(approvingNode(&action, &got)))
	q, asked := d.asks()
	if asked.Requester != "rita" || asked.ParamsHash == "" || asked.Before != nil || string(q.Schema) != string(approval.ReplySchema) ||
		!strings.Contains(string(q.Value), `"ask":"Refund 250 to o-7"`) || strings.Contains(string(q.Value), `"amount"`) {
		t.Fatalf("asked %s about %s", q.Value, q.Approval)
	}
	if again, _ := d.asks(); again.ID != q.ID {
		t.Errorf("the same question is %s and %s", q.ID, again.ID)
	}
	d.says(q, asked, approval.VerdictApprove, "ann", "")
	if out, err := d.run(); err != nil || len(out.Questions) > 0 || got.Verdict != approval.VerdictApprove || got.Params != nil {
		t.Fatalf("%v, decision %+v", err, got)
	}
	e := onlyEntry(t, d.journal)
	if e.State != ledger.StateCommitted || e.Approved == nil || e.Approved.By != "ann" || e.Approved.Token != "t-ann" || e.Approved.Question != q.ID {
		t.Errorf("ledger %+v", e)
	}
}

func TestRejectedAndExpiredAreDecisions(t *testing.T) {
	for _, v := range []approval.Verdict{approval.VerdictReject, approval.VerdictExpired} {
		action, got := refundAction(), approval.Decision{}
		d := newDesk(t, oneNode(approvingNode(&action, &got)))
		q, asked := d.asks()
		d.says(q, asked, v, "ann", "")
		if _, err := d.run(); err != nil || got.Verdict != v {
			t.Errorf("%s: %v, decision %+v", v, err, got)
		}
	}
}

// TestEditIsAnotherQuestion: whoever edits does not approve.
func TestEditIsAnotherQuestion(t *testing.T) {
	action, got := refundAction(), approval.Decision{}
	d := newDesk(t, oneNode(approvingNode(&action, &got)))
	first, asked := d.asks()
	d.says(first, asked, approval.VerdictEdit, "ann", `{"amount":200}`)
	second, edited := d.asks()
	if second.ID == first.ID || string(edited.Params) != `{"amount":200}` || edited.ParamsHash == asked.ParamsHash ||
		edited.Before == nil || edited.Before.Question != first.ID || edited.Before.By != "ann" ||
		string(edited.Before.Params) != `{"amount":250}` || !strings.Contains(edited.Summary, "proposed by ann") {
		t.Fatalf("asked anew: %+v, before %+v", edited, edited.Before)
	}
	d.says(second, edited, approval.VerdictApprove, "bob", "")
	if _, err := d.run(); err != nil || got.Verdict != approval.VerdictApprove || string(got.Params) != `{"amount":200}` || got.Question != second.ID {
		t.Errorf("%v, decision %+v", err, got)
	}
}

// TestDrift: what is approved is this action, and no other.
func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*approval.Action)
		changed string
	}{
		"parameters":   {func(a *approval.Action) { a.Params = json.RawMessage(`{"amount":999}`) }, "params"},
		"tool version": {func(a *approval.Action) { a.ToolVersion = "v2" }, "tool_version"},
		"plan version": {func(a *approval.Action) { a.PlanVersion = 2 }, "plan_version"},
		"permissions":  {func(a *approval.Action) { a.Permissions = nil }, "permissions"},
		"watched":      {func(a *approval.Action) { a.Watch = map[string]string{"balance": "0"} }, "watch.balance"},
		"not watched":  {func(a *approval.Action) { a.Watch = nil }, "watch.balance"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, drift := range []approval.Drift{"", approval.DriftReplan, approval.DriftStop} {
				action, got := refundAction(), approval.Decision{}
				action.Drift = drift
				d := newDesk(t, oneNode(approvingNode(&action, &got)))
				q, asked := d.asks()
				d.says(q, asked, approval.VerdictApprove, "ann", "")
				was := action
				c.change(&action)
				if drift != "" {
					_, err := d.run()
					var drifted *DriftError
					if !errors.As(err, &drifted) || len(drifted.Changed) != 1 || drifted.Changed[0] != c.changed ||
						graphadapter.IsPermanent(err) != (drift == approval.DriftStop) {
						t.Errorf("%s: %v", drift, err)
					}
					continue
				}
				second, now := d.asks()
				if second.ID == q.ID || now.Before == nil || len(now.Before.Changed) != 1 || now.Before.Changed[0] != c.changed {
					t.Fatalf("asked anew: %+v, before %+v", now, now.Before)
				}
				// That it is as it was does not bring the approval back: it was asked about anew.
				action = was
				third, _ := d.asks()
				if third.ID == q.ID {
					t.Errorf("the old approval counts again")
				}
				c.change(&action)
			}
		})
	}
}

// TestRejectionAfterDriftCounts: an approval that drifted is void, also when the action is what it was again.
func TestRejectionAfterDriftCounts(t *testing.T) {
	action, got := refundAction(), approval.Decision{}
	d := newDesk(t, oneNode(approvingNode(&action, &got)))
	first, asked := d.asks()
	d.says(first, asked, approval.VerdictApprove, "ann", "")
	action.ToolVersion = "v2"
	second, now := d.asks()
	d.says(second, now, approval.VerdictReject, "bob", "")
	action.ToolVersion = "v1"
	if _, err := d.run(); err != nil || got.Verdict != approval.VerdictReject {
		t.Errorf("%v, decision %+v", err, got)
	}
}

// TestOpenQuestionDoesNotChange: an action that changes while nobody has decided is another question.
func TestOpenQuestionDoesNotChange(t *testing.T) {
	action, got := refundAction(), approval.Decision{}
	d := newDesk(t, oneNode(approvingNode(&action, &got)))
	first, _ := d.asks()
	action.Params = json.RawMessage(`{"amount":300}`)
	second, now := d.asks()
	if second.ID == first.ID || now.Before == nil || string(now.Before.Params) != `{"amount":250}` {
		t.Errorf("question %s, then %s with %+v", first.ID, second.ID, now.Before)
	}
	for i := range MaxApprovalRounds {
		action.Params, _ = json.Marshal(i)
		if _, err := d.run(); err != nil {
			if !graphadapter.IsPermanent(err) || !strings.Contains(err.Error(), "compute the action from the state") {
				t.Error(err)
			}
			return
		}
	}
	t.Error("it is asked about without an end")
}
