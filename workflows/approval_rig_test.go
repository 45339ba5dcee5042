package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// plainKeys take a token for what it says: its claims as JSON. Who signs what is tested where tokens are.
type plainKeys struct{}

func (plainKeys) Verify(token string) (approval.Claims, error) {
	var claims approval.Claims
	if err := json.Unmarshal([]byte(token), &claims); err != nil {
		return claims, &approval.TokenError{Code: approval.CodeMalformed, Reason: "the token is no token"}
	}
	claims.KeyID, claims.Owner = "plain", approval.Owner{Issuer: "test"}
	return claims, nil
}

func (plainKeys) Owner(string, time.Time) (approval.Owner, error) {
	return approval.Owner{Issuer: "test"}, nil
}

// tokenLife is how long the tokens of these tests are good, however long the answer that they come with is under way.
const tokenLife = 30 * time.Minute

// tokenOf is a token for a question as it is asked now.
func tokenOf(t *testing.T, thread string, q pregel.OpenQuestion, by, id string) string {
	t.Helper()
	action := actionOf(t, q)
	return asJSON(t, approval.Claims{ID: id, Thread: thread, Question: q.ID, Approver: by, Digest: action.Digest(),
		ParamsHash: action.ParamsHash, IssuedAt: time.Now(), ExpiresAt: time.Now().Add(tokenLife)})
}

func actionOf(t *testing.T, q pregel.OpenQuestion) approval.Action {
	t.Helper()
	var action approval.Action
	if err := json.Unmarshal(q.Approval, &action); err != nil {
		t.Fatalf("question %s asks for no approval: %v", q.ID, err)
	}
	return action
}

// replied answers a question by somebody, with a token of its own.
func replied(t *testing.T, thread string, q pregel.OpenQuestion, by, value string) protocol.ResumeRequest {
	t.Helper()
	id := by + "/" + q.ID + "/" + value
	return protocol.ResumeRequest{ID: id, Question: q.ID, Value: pregel.Value(value), By: by, Token: tokenOf(t, thread, q, by, id)}
}

const (
	approves = `{"verdict":"approve"}`
	rejects  = `{"verdict":"reject","reason":"too much"}`
)

// approved is a node that asks for the approval of an action, anew for other parameters, and logs how it was decided.
func approved(action approval.Action) graphadapter.Node {
	return graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := taskrun.TaskFrom(ctx)
		now := action
		for round := range 5 {
			hash, err := approval.HashParams(now.Params)
			if err != nil {
				return pregel.Command{}, err
			}
			now.ParamsHash = hash
			asked, err := json.Marshal(now)
			if err != nil {
				return pregel.Command{}, err
			}
			answer, err := task.AskFor(ctx, pregel.Question{Key: fmt.Sprintf("%s %d", now.Tool, round), Value: pregel.Value(`"may it?"`),
				Approval: asked})
			if err != nil {
				return pregel.Command{}, err
			}
			var d approval.Decision
			if err := json.Unmarshal(answer.Value, &d); err != nil {
				return pregel.Command{}, err
			}
			if d.Digest != now.Digest() || d.Question != answer.QuestionID {
				return pregel.Command{}, graphadapter.Permanent(fmt.Errorf("decided was another action: %s", answer.Value))
			}
			if d.Verdict == approval.VerdictEdit {
				now.Before = &approval.Before{Question: d.Question, By: answer.By, Params: now.Params}
				now.Params = d.Params
				continue
			}
			var by []string
			for _, v := range d.Votes {
				by = append(by, v.By)
			}
			return writes("log", []string{strings.TrimSpace(fmt.Sprintf("%s %s", d.Verdict, strings.Join(by, ","))), string(now.Params)}), nil
		}
		return pregel.Command{}, fmt.Errorf("edited too often")
	}}
}

// payment is an action that one person has to approve.
func payment() approval.Action {
	return approval.Action{Tool: "pay", Summary: "Pay somebody 10.00.", Params: json.RawMessage(`{"amount":1000}`), Requester: "rita"}
}

// paymentGraph pays after an approval.
func paymentGraph(action approval.Action) *graphadapter.Graph {
	return graph("payment", map[string]graphadapter.Node{"pay": approved(action), "end": says("end")}, []string{"pay", "end"},
		to(pregel.Start, "pay"), to("pay", "end"))
}

// pays starts a thread that waits for the approval of an action.
func pays(t *testing.T, action approval.Action, in protocol.GraphInput) (*rig, string, pregel.OpenQuestion) {
	t.Helper()
	r, thread := begins(t, action, in)
	return r, thread, r.asks(thread, 1).Questions[0]
}

// begins starts a thread that asks for the approval of an action, perhaps for so short a time that nobody sees it wait.
func begins(t *testing.T, action approval.Action, in protocol.GraphInput) (*rig, string) {
	t.Helper()
	r := newRig(t)
	r.gate = &approval.Gate{Keys: plainKeys{}}
	r.work(paymentGraph(action))
	thread := testserver.Queue(t)
	in.Graph, in.Input = "payment", input(`{}`)
	r.start(thread, in)
	return r, thread
}

// ended waits for the end of a thread and returns its log.
func (r *rig) ended(thread string) string {
	r.t.Helper()
	return string(r.finished(r.client.GetWorkflow(r.ctx, thread, "")).Output["log"])
}

// audit reads the audit of a thread by replaying its runs, holds it against what the newest run says, and returns it with
// one line for each entry.
func (r *rig) audit(thread string, g *graphadapter.Graph) string {
	r.t.Helper()
	var all []approval.Entry
	var says protocol.AuditReply
	await(r.t, "the audit that the run knows", func() bool {
		v, err := r.client.QueryWorkflow(r.ctx, thread, "", protocol.QueryAudit)
		if err == nil {
			err = v.Get(&says)
		}
		if err != nil {
			return false
		}
		all = r.replayedAudit(thread, g)
		chain, err := approval.VerifyEntries(approval.Chain{}, all)
		if err != nil {
			r.t.Fatal(err)
		}
		return chain == says.Chain
	}, func() any { return []any{says, all} })
	var out strings.Builder
	for _, e := range all {
		fmt.Fprintln(&out, entryLine(e))
	}
	return out.String()
}

func (r *rig) replayedAudit(thread string, g *graphadapter.Graph) (all []approval.Entry) {
	r.t.Helper()
	replays := tail(r.client)
	for _, id := range r.runs(thread) {
		var of graphadapter.Audit
		if err := replays.Replay(r.ctx, thread, id, workflows.NewReader(g, &of)); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, of.Entries...)
	}
	return all
}

func entryLine(e approval.Entry) string {
	line := string(e.Kind)
	for _, part := range []string{e.Who, string(e.Verdict), string(e.Code)} {
		if part != "" {
			line += " " + part
		}
	}
	if e.Count > 0 {
		line += fmt.Sprintf(" x%d", e.Count)
	}
	return line
}

// linesOf are lines of text.
func linesOf(all ...string) string { return strings.Join(all, "\n") + "\n" }

// detailsOf reads the detail of an application error.
func detailsOf(t *testing.T, err error, into any) {
	t.Helper()
	var typed *temporal.ApplicationError
	if !errors.As(err, &typed) || !typed.HasDetails() {
		t.Errorf("%v has no details", err)
		return
	}
	if err := typed.Details(into); err != nil {
		t.Error(err)
	}
}

// taken answers by update, which is taken.
func (r *rig) taken(thread string, req protocol.ResumeRequest) {
	r.t.Helper()
	if err := r.answered(thread, req); err != nil {
		r.t.Fatal(err)
	}
}

// answered answers by update, as clients do again while the run cannot take it for the moment, and returns what it says.
func (r *rig) answered(thread string, req protocol.ResumeRequest) (last error) {
	r.t.Helper()
	await(r.t, "the answer's reply", func() bool {
		_, last = r.update(thread, req)
		var notReady *serviceerror.WorkflowNotReady
		var aborted *serviceerror.Aborted
		return !errors.As(last, &notReady) && !errors.As(last, &aborted)
	}, func() any { return fmt.Sprint(last) })
	return last
}
