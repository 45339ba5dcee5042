package workflows_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// codeOf is why an answer was refused.
func codeOf(t *testing.T, err error) approval.Code {
	t.Helper()
	var refused protocol.AnswerRefusal
	detailsOf(t, err, &refused)
	return refused.Code
}

// TestApprovalNeedsAToken: what a gate does not allow changes nothing, and whoever answered is told why.
func TestApprovalNeedsAToken(t *testing.T) {
	t.Parallel()
	r, thread, q := pays(t, payment(), protocol.GraphInput{})
	good := replied(t, thread, q, "ann", approves)
	elsewhere, expired := q, approval.Claims{}
	elsewhere.ID = "q-other"
	if err := json.Unmarshal([]byte(good.Token), &expired); err != nil {
		t.Fatal(err)
	}
	expired.IssuedAt, expired.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	for name, c := range map[string]struct {
		kind, token, value string
		code               approval.Code
	}{
		"none":             {protocol.ErrTypeNotAllowed, "", approves, approval.CodeUnsigned},
		"junk":             {protocol.ErrTypeNotAllowed, "junk", approves, approval.CodeMalformed},
		"another question": {protocol.ErrTypeNotAllowed, tokenOf(t, thread, elsewhere, "ann", "1"), approves, approval.CodeWrongRun},
		"another thread":   {protocol.ErrTypeNotAllowed, tokenOf(t, "other", q, "ann", "2"), approves, approval.CodeWrongThread},
		"an old one":       {protocol.ErrTypeNotAllowed, asJSON(t, expired), approves, approval.CodeExpired},
		"no verdict":       {protocol.ErrTypeBadAnswer, good.Token, `{"verdict":"maybe"}`, ""},
		"no reply":         {protocol.ErrTypeBadAnswer, good.Token, `"approve"`, ""},
		"nothing edited":   {protocol.ErrTypeBadAnswer, good.Token, `{"verdict":"edit"}`, ""},
		"a long token":     {protocol.ErrTypeBadAnswer, strings.Repeat("t", 9<<10), approves, ""},
	} {
		req := protocol.ResumeRequest{ID: name, Question: q.ID, Value: pregel.Value(c.value), Token: c.token}
		_, err := r.update(thread, req)
		if errorKind(err) != c.kind || c.kind == protocol.ErrTypeNotAllowed && codeOf(t, err) != c.code {
			t.Errorf("%s: %s %v", name, errorKind(err), err)
		}
	}
	if now := r.asks(thread, 1); len(now.Answered) != 0 || now.Approvals[0].Busy || len(now.Approvals[0].Votes) != 0 {
		t.Errorf("refused answers left %+v behind", now.Approvals)
	}
	if err := r.invoke(thread, protocol.InvokeRequest{ID: "by input", Input: protocol.Input{Resume: &pregel.Resume{
		ByID: map[string]pregel.Value{q.ID: pregel.Value(approves)}}}}); errorKind(err) != protocol.ErrTypeNotAllowed {
		t.Errorf("an answer that comes with input: %v", err)
	}
	reply, err := r.update(thread, good)
	if err != nil || !reply.Decided || reply.Node != "pay" || reply.Audit == nil {
		t.Fatalf("the right answer: %+v, %v", reply, err)
	}
	if log := r.ended(thread); log != `["approve ann","{\"amount\":1000}","end"]` {
		t.Errorf("the run ended with %s", log)
	}
	audit := r.audit(thread, paymentGraph(payment()))
	if !strings.HasPrefix(audit, "asked\n") || !strings.HasSuffix(audit, "answered ann approve\n") || strings.Count(audit, "refused") != 5 {
		t.Errorf("the audit is\n%s", audit)
	}
}

// TestApprovalWithoutAGate: a worker that cannot verify takes no answer.
func TestApprovalWithoutAGate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work(paymentGraph(payment()))
	thread := r.queue
	r.start(thread, protocol.GraphInput{Graph: "payment", Input: input(`{}`)})
	q := r.asks(thread, 1).Questions[0]
	_, err := r.update(thread, replied(t, thread, q, "ann", approves))
	if codeOf(t, err) != approval.CodeUnavailable || !strings.Contains(err.Error(), "--approval-keys FILE") {
		t.Errorf("without a gate: %v", err)
	}
	r.asks(thread, 1)
}

// TestApprovalByTwoInTheSameInstant: each of them waits for the other's claim, and both count; a third is told by whom the
// question was answered.
func TestApprovalByTwoInTheSameInstant(t *testing.T) {
	t.Parallel()
	action := payment()
	action.Quorum = 2
	r, thread, q := pays(t, action, protocol.GraphInput{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	decided, refused := 0, 0
	for _, by := range []string{"ann", "bob", "eve"} {
		req := replied(t, thread, q, by, approves)
		wg.Go(func() {
			reply, err := r.update(thread, req)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && errorKind(err) == protocol.ErrTypeAnswered && strings.Contains(err.Error(), "already answered by "):
				refused++
			case err != nil:
				t.Errorf("%s: %v", by, err)
			case reply.Decided:
				decided++
			}
		})
	}
	wg.Wait()
	if decided != 1 || refused != 1 {
		t.Errorf("%d decided and %d came too late, want one of each", decided, refused)
	}
	if log := r.ended(thread); !strings.Contains(log, "approve ") || strings.Count(log, ",") != 3 {
		t.Errorf("the run ended with %s", log)
	}
}

// TestApprovalVotesOutliveContinueAsNew: so do the ids of the tokens that counted, and nobody votes twice.
func TestApprovalVotesOutliveContinueAsNew(t *testing.T) {
	t.Parallel()
	action := payment()
	action.Quorum = 2
	r, thread, q := pays(t, action, protocol.GraphInput{ContinueAt: &protocol.ContinueAt{Events: 1}})
	first := r.runs(thread)[0]
	ann := replied(t, thread, q, "ann", approves)
	reply, err := r.update(thread, ann)
	if err != nil || reply.Decided || reply.Votes != 1 || reply.Need != 2 {
		t.Fatalf("the first of two: %+v, %v", reply, err)
	}
	r.continued(thread, first)
	if again, err := r.update(thread, ann); err != nil || again.Votes != 1 {
		t.Errorf("the same request again: %+v, %v", again, err)
	}
	ann.ID = "once more"
	if _, err := r.update(thread, ann); codeOf(t, err) != approval.CodeUsed {
		t.Errorf("a token for the second time: %v", err)
	}
	other := ann
	other.Token = tokenOf(t, thread, q, "ann", "another token")
	other.ID = "and once more"
	if _, err := r.update(thread, other); codeOf(t, err) != approval.CodeAlreadyGiven {
		t.Errorf("a second vote: %v", err)
	}
	r.signal(thread, replied(t, thread, q, "bob", approves))
	if log := r.ended(thread); log != `["approve ann,bob","{\"amount\":1000}","end"]` {
		t.Errorf("the run ended with %s", log)
	}
	audit := r.audit(thread, paymentGraph(action))
	for _, want := range []string{"asked\nvoted ann approve\n", "refused ann used\nrefused ann already_given\nanswered bob approve\n"} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit is\n%s, want in it\n%s", audit, want)
		}
	}
}

// TestApprovalEdited: parameters that somebody proposes are another question, and one rejection decides.
func TestApprovalEdited(t *testing.T) {
	t.Parallel()
	r, thread, q := pays(t, payment(), protocol.GraphInput{})
	if _, err := r.update(thread, replied(t, thread, q, "ann", `{"verdict":"edit","params":{"amount":500}}`)); err != nil {
		t.Fatal(err)
	}
	next := r.until(thread, "the second question", func(s protocol.State) bool { return len(s.Questions) == 1 && s.Questions[0].ID != q.ID }).Questions[0]
	if a := actionOf(t, next); string(a.Params) != `{"amount":500}` || a.ParamsHash == actionOf(t, q).ParamsHash {
		t.Errorf("asked about is %+v", a)
	}
	if _, err := r.update(thread, replied(t, thread, next, "bob", rejects)); err != nil {
		t.Fatal(err)
	}
	if log := r.ended(thread); log != `["reject bob","{\"amount\":500}","end"]` {
		t.Errorf("the run ended with %s", log)
	}
	if got, want := r.audit(thread, paymentGraph(payment())), linesOf("asked", "answered ann edit", "asked", "answered bob reject"); got != want {
		t.Errorf("the audit is\n%s, want\n%s", got, want)
	}
}

// TestApprovalWithAWrongClock: the clock of the worker that verifies is far ahead of that of who signs, or behind it.
func TestApprovalWithAWrongClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"ahead": 2 * tokenLife, "behind": -2 * tokenLife} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.gate = &approval.Gate{Keys: plainKeys{}, Now: func() time.Time { return time.Now().Add(off) }}
			r.work(paymentGraph(payment()))
			thread := r.queue
			r.start(thread, protocol.GraphInput{Graph: "payment", Input: input(`{}`)})
			q := r.asks(thread, 1).Questions[0]
			if _, err := r.update(thread, replied(t, thread, q, "ann", approves)); codeOf(t, err) != approval.CodeExpired {
				t.Errorf("a token from another time: %v", err)
			}
			r.asks(thread, 1)
		})
	}
}
