package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// paying is a task that refunds what *proposed says, with an approval above 100.
type paying struct {
	*desk
	bank     *bank
	sent     []string // parameters of the calls
	proposed string
	version  string
	o        graphadapter.CallOptions
	receipt  pregel.Value
}

func newPaying(t *testing.T) *paying {
	p := &paying{bank: &bank{}, proposed: `{"amount":250}`, version: "v1"}
	p.desk = newDesk(t, nil)
	p.use, p.journal = allow, mustJournal(t, nil)
	return p
}

// node builds the graph anew, as a worker of the version that is deployed does.
func (p *paying) deploy() {
	e := p.bank.effect(ledger.TargetKeyed)
	e.Version = p.version
	do := e.Do
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		p.sent = append(p.sent, string(params))
		return do(ctx, key, params)
	}
	e.Approval = func(params pregel.Value) (approval.Action, bool, error) {
		var refund struct{ Amount *int }
		if err := json.Unmarshal(params, &refund); err != nil || refund.Amount == nil {
			return approval.Action{}, false, errors.Join(errors.New("there is no amount"), err)
		}
		return approval.Action{Summary: fmt.Sprintf("Refund %d", *refund.Amount), Quorum: 1 + *refund.Amount/1000}, *refund.Amount > 100, nil
	}
	p.g = oneNode(calling(func(ctx context.Context, t *TaskRun) (err error) {
		p.receipt, err = t.Effect(ctx, "payments.refund", pregel.Value(p.proposed), p.o)
		return err
	}), e)
}

func (p *paying) run() (pregel.Outcome, error) { p.deploy(); return p.desk.run() }

func (p *paying) asks() (pregel.Question, approval.Action) {
	p.t.Helper()
	p.deploy()
	return p.desk.asks()
}

func (p *paying) done(t *testing.T, sent ...string) ledger.Entry {
	t.Helper()
	if out, err := p.run(); err != nil || len(out.Questions) > 0 || p.receipt == nil {
		t.Fatalf("%v, %d questions, receipt %s", err, len(out.Questions), p.receipt)
	}
	if fmt.Sprint(p.sent) != fmt.Sprint(sent) {
		t.Errorf("sent %v, want %v", p.sent, sent)
	}
	for _, e := range p.journal.Entries() {
		if e.Kind == ledger.KindEffect {
			return e
		}
	}
	t.Fatal("no effect in the ledger")
	return ledger.Entry{}
}

func TestEffectNeedsNoApproval(t *testing.T) {
	p := newPaying(t)
	p.proposed, p.use = `{"amount":50}`, nil
	if e := p.done(t, `{"amount":50}`); e.Approved != nil {
		t.Errorf("ledger %+v", e)
	}
}

func TestEffectIsCalledOnceItIsApproved(t *testing.T) {
	p := newPaying(t)
	q, a := p.asks()
	if a.Tool != "payments.refund" || a.ToolVersion != "v1" || string(a.Params) != p.proposed || a.Key == "" || len(p.sent) > 0 {
		t.Fatalf("asked about %+v, %d calls", a, len(p.sent))
	}
	p.says(q, a, approval.VerdictApprove, "ann", "")
	e := p.done(t, `{"amount":250}`)
	if e.Key != a.Key || e.Approved == nil || e.Approved.By != "ann" || e.Approved.Digest != a.Digest() || e.Approved.Proposed != e.ParamsHash {
		t.Errorf("ledger %+v, approved %+v", e, e.Approved)
	}
	p.answers, p.use = nil, nil // a call that was made is not asked about any more
	p.done(t, `{"amount":250}`)
}

// TestEffectWithEditedParameters: what is sent and recorded is what was approved in the end, and the node's own parameters
// are no conflict with it.
func TestEffectWithEditedParameters(t *testing.T) {
	p := newPaying(t)
	first, a := p.asks()
	p.says(first, a, approval.VerdictEdit, "ann", `{"amount":"much"}`)
	second, misfit := p.asks()
	if string(misfit.Params) != `{"amount":250}` || string(misfit.Before.Params) != `{"amount":"much"}` {
		t.Fatalf("asked about %+v", misfit)
	}
	p.says(second, misfit, approval.VerdictEdit, "ann", `{"amount":2000}`)
	third, edited := p.asks()
	if edited.Quorum != 3 || edited.ParamsHash == a.ParamsHash || edited.Key != a.Key {
		t.Fatalf("asked about %+v", edited)
	}
	p.says(third, edited, approval.VerdictApprove, "eve,joe,bob", "")
	e := p.done(t, `{"amount":2000}`)
	if string(e.Params) != `{"amount":2000}` || e.Approved.Proposed == e.ParamsHash || e.Approved.By != "bob" {
		t.Errorf("ledger %+v, approved %+v", e, e.Approved)
	}
	p.done(t, `{"amount":2000}`)
	p.journal = mustJournal(t, nil)
	slimmed := e.Slim()
	p.journal.Add(slimmed) // the receipt was too large to keep, and is looked up with what was sent
	p.done(t, `{"amount":2000}`)
	p.proposed = `{"amount":300}`
	var conflict *ledger.ConflictError
	if _, err := p.run(); !errors.As(err, &conflict) {
		t.Errorf("with other parameters: %v", err)
	}
}

func TestEffectIsNotCalled(t *testing.T) {
	for name, c := range map[string]struct {
		verdict approval.Verdict
		then    func(*paying)
		is      func(error) bool
	}{
		"rejected":         {approval.VerdictReject, func(*paying) {}, is[*RejectedError]},
		"expired":          {approval.VerdictExpired, func(*paying) {}, is[*RejectedError]},
		"revoked":          {approval.VerdictApprove, func(p *paying) { p.use = revoked }, is[*NotAllowedError]},
		"no gate":          {approval.VerdictApprove, func(p *paying) { p.use = nil }, is[*NotAllowedError]},
		"other parameters": {approval.VerdictApprove, func(p *paying) { p.proposed = `{"amount":251}` }, func(err error) bool { return err == nil }},
		"other version":    {approval.VerdictApprove, func(p *paying) { p.version = "v2" }, func(err error) bool { return err == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPaying(t)
			q, a := p.asks()
			p.says(q, a, c.verdict, "ann", "")
			c.then(p)
			out, err := p.run()
			if !c.is(err) || err == nil && len(out.Questions) != 1 || len(p.sent) > 0 || p.receipt != nil {
				t.Errorf("%v, %d questions, sent %v", err, len(out.Questions), p.sent)
			}
		})
	}
}

func revoked(context.Context, approval.UseCheck) (approval.Ruling, error) {
	return approval.Ruling{Code: approval.CodePermission, Reason: "ann may not any more"}, nil
}

// TestSentEffectIsLookedUpBeforeItIsAskedAbout: after a crash behind the call nobody is asked, and nothing is called.
func TestSentEffectIsLookedUpBeforeItIsAskedAbout(t *testing.T) {
	p := newPaying(t)
	q, a := p.asks()
	p.says(q, a, approval.VerdictApprove, "ann", "")
	e := p.done(t, `{"amount":250}`)
	e.State, e.Result = ledger.StateIntent, nil
	p.journal = mustJournal(t, nil)
	p.journal.Add(e)
	p.use, p.answers = revoked, nil
	if got := p.done(t, `{"amount":250}`); got.State != ledger.StateCommitted || got.Approved == nil || p.bank.lookups != 1 {
		t.Errorf("ledger %+v, %d lookups", got, p.bank.lookups)
	}
	// One that the outside does not have is called again, by the same approval, as far as that still counts.
	p.bank.writes = nil
	p.journal = mustJournal(t, nil)
	p.journal.Add(e)
	if _, again := p.asks(); again.Digest() != a.Digest() {
		t.Errorf("asked about %+v", again)
	}
	p.says(q, a, approval.VerdictApprove, "ann", "")
	var refused *NotAllowedError
	if _, err := p.run(); !errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	p.use = allow
	p.done(t, `{"amount":250}`, `{"amount":250}`)
}

// TestEditAfterTheCallIsAConflict: under a key that may have been sent there is one write.
func TestEditAfterTheCallIsAConflict(t *testing.T) {
	p := newPaying(t)
	q, a := p.asks()
	p.says(q, a, approval.VerdictApprove, "ann", "")
	e := p.done(t, `{"amount":250}`)
	e.State, e.Result = ledger.StateIntent, nil
	p.journal.Add(e)
	p.bank.writes, p.version = nil, "v2"
	second, now := p.asks()
	p.says(second, now, approval.VerdictEdit, "bob", `{"amount":300}`)
	third, edited := p.asks()
	p.says(third, edited, approval.VerdictApprove, "bob", "")
	var conflict *ledger.ConflictError
	if _, err := p.run(); !errors.As(err, &conflict) || len(p.sent) != 1 {
		t.Errorf("%v, sent %v", err, p.sent)
	}
}
