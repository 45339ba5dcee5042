package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/approval/rules"
)

const people = `
people:
  ana: {groups: [finance], limits: {amount: 5000}}
  bob: {groups: [finance, board], permissions: [own]}
  cleo: {roles: [support, lead]}
groups:
  finance: {permissions: [refund.write], limits: {amount: 1000.3}}
  board:
roles:
  support: {permissions: [refund.write], limits: {amount: 10, hours: 1}}
  lead: {limits: {amount: 20}}
`

func book(t testing.TB, text string) *rules.Book {
	b, err := rules.Parse("f.yaml", []byte(people+text))
	require.NoError(t, err)
	return b
}

func approveRequest(params, approver, requester string) approval.PolicyRequest {
	return approval.PolicyRequest{
		Phase: approval.PhaseAnswer, Graph: "refund", Verdict: approval.VerdictApprove,
		Action:   approval.Action{Tool: "pay", Params: json.RawMessage(params)},
		Approver: approval.Person{Name: approver}, Requester: approval.Person{Name: requester},
	}
}

// ask decides with approver and requester as the book knows them.
func ask(t *testing.T, b *rules.Book, r approval.PolicyRequest) approval.PolicyRuling {
	t.Helper()
	if r.Approver.Name != "" {
		p, err := b.Person(t.Context(), r.Approver.Name)
		require.NoError(t, err)
		r.Approver = p
	}
	ruling, err := b.Decide(t.Context(), r)
	require.NoError(t, err)
	return ruling
}

func TestPeople(t *testing.T) {
	b := book(t, "rules: [{allow: all}]")
	for _, want := range []approval.Person{
		{Name: "ana", Groups: []string{"finance"}, Permissions: []string{"refund.write"}, Limits: map[string]float64{"amount": 5000}},
		{Name: "bob", Groups: []string{"board", "finance"}, Permissions: []string{"own", "refund.write"}, Limits: map[string]float64{"amount": 1000.3}},
		{Name: "cleo", Permissions: []string{"refund.write"}, Limits: map[string]float64{"amount": 20, "hours": 1}},
	} {
		got, err := b.Person(t.Context(), want.Name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := b.Person(t.Context(), "finance")
	var unknown *approval.UnknownPersonError
	require.ErrorAs(t, err, &unknown)
}

func TestFirstMatchDecides(t *testing.T) {
	b := book(t, `
rules:
  - deny: closed shop
    when: params.shop == "closed"
    reason: it is closed
  - allow: pay a little
    tool: [pay, give]
    graph: refund
    risk: [low, medium]
    when: params.amount <= 100
  - allow: pay more
    tool: pay
    when: params.amount <= 1000 && approver.groups.exists(g, g == "finance")
    need: 2
`)
	for _, c := range []struct {
		params, approver string
		allowed          bool
		rule             string
		need             int
	}{
		{`{"shop":"closed","amount":1}`, "ana", false, "closed shop", 0},
		{`{"shop":"open","amount":100}`, "ana", true, "pay a little", 0},
		{`{"shop":"open","amount":100.0}`, "ana", true, "pay a little", 0},
		{`{"shop":"open","amount":100.01}`, "ana", true, "pay more", 2},
		{`{"shop":"open","amount":100.01}`, "cleo", false, "", 0},
		{`{"shop":"open","amount":1001}`, "ana", false, "", 0},
		{`{"shop":"open","amount":1e999}`, "ana", false, "", 0},
		{`{"amount":1}`, "ana", false, "closed shop", 0}, // no shop: no value, and so no
		{`{"shop":"open","amount":"1"}`, "ana", false, "pay a little", 0},
		{``, "ana", false, "closed shop", 0},
	} {
		r := ask(t, b, approveRequest(c.params, c.approver, "rita"))
		require.Equal(t, c.allowed, r.Allowed, "%s %s", c.params, r.Reason)
		require.Equal(t, c.rule, r.Rule, c.params)
		require.Equal(t, c.need, r.Need, c.params)
		require.Equal(t, !c.allowed, r.Reason != "")
	}
	for name, change := range map[string]func(*approval.PolicyRequest){
		"another tool":  func(r *approval.PolicyRequest) { r.Action.Tool = "take" },
		"another graph": func(r *approval.PolicyRequest) { r.Graph = "g"; r.Action.Tool = "give" },
		"more risk":     func(r *approval.PolicyRequest) { r.Action.Risk = approval.RiskHigh; r.Action.Tool = "give" },
	} {
		request := approveRequest(`{"shop":"open","amount":1}`, "ana", "rita")
		change(&request)
		require.False(t, ask(t, b, request).Allowed, name)
	}
}

func TestEverythingIsSeen(t *testing.T) {
	b := book(t, `
rules:
  - allow: all of it
    when: |
      params.list[1].n == 2 && action.tool == "pay" && action.tool_version == "3" && action.plan_version == 4 &&
      "p" in action.permissions && action.risk == "medium" && action.undo == "u" && action.quorum == 1 && action.summary == "s" &&
      action.watch["stock"] == "5" && action.proposed_by == "bob" && action.proposers == ["bob"] && approver.name == "ana" && "finance" in approver.groups &&
      "refund.write" in approver.permissions && approver.limits["amount"] == 5000.0 && requester.name == "rita" &&
      votes.map(v, v.by) == ["bob"] && phase == "answer" && now - votes[0].at == duration("1h") && votes[0].key_id == "k" && verdict == "approve" && thread == "t" && graph == "refund" && node == "n"
`)
	r := approveRequest(`{"list":[1,{"n":2}]}`, "ana", "rita")
	r.Now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r.Thread, r.Node, r.Votes = "t", "n", []approval.Vote{{By: "bob", KeyID: "k", At: r.Now.Add(-time.Hour)}}
	r.Action.Summary, r.Action.ToolVersion, r.Action.PlanVersion, r.Action.Undo = "s", "3", 4, "u"
	r.Action.Permissions, r.Action.Watch = []string{"p"}, map[string]string{"stock": "5"}
	r.Action.Before = &approval.Before{By: "bob", Proposers: []string{"bob"}}
	ruling := ask(t, b, r)
	require.True(t, ruling.Allowed, ruling.Reason)
}

// TestWholeNumbersAreIntegers in rules: an expression can add to a whole number of the parameters and take its remainder,
// and a comparison does not mind which of two numbers has a fraction.
func TestWholeNumbersAreIntegers(t *testing.T) {
	b := book(t, `
rules:
  - allow: whole hundreds, and a fee that leaves room
    when: params.cents % 100 == 0 && params.cents + 1 < 10.5e2 && params.fee + 0.25 == 1.0 && params.large == 9007199254740993
`)
	ruling := ask(t, b, approveRequest(`{"cents":900,"fee":0.75,"large":9007199254740993}`, "ana", "rita"))
	require.True(t, ruling.Allowed, ruling.Reason)
	for _, params := range []string{`{"cents":950,"fee":0.75,"large":9007199254740993}`, `{"cents":900,"fee":0.75,"large":9007199254740992}`} {
		require.False(t, ask(t, b, approveRequest(params, "ana", "rita")).Allowed, params)
	}
}

// TestTimesOfVotesDecide as the rules say.
func TestTimesOfVotesDecide(t *testing.T) {
	b := book(t, "rules: [{allow: soon, valid_for: 90m, when: 'votes.all(v, now - v.at < duration(\"2h\"))'}]")
	r := approveRequest(`{}`, "ana", "rita")
	r.Now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r.Votes = []approval.Vote{{By: "bob", At: r.Now.Add(-2*time.Hour + 1)}}
	ruling := ask(t, b, r)
	require.True(t, ruling.Allowed, ruling.Reason)
	require.Equal(t, 90*time.Minute, ruling.ValidFor)
	r.Votes[0].At = r.Now.Add(-2 * time.Hour)
	require.False(t, ask(t, b, r).Allowed)
}

func TestSeparate(t *testing.T) {
	b := book(t, "rules: [{allow: all, separate: true}]")
	require.True(t, ask(t, b, approveRequest(`{}`, "ana", "rita")).Allowed)
	require.Equal(t, approval.CodeSamePerson, ask(t, b, approveRequest(`{}`, "ana", "ana")).Code)
	require.Equal(t, approval.CodeRequester, ask(t, b, approveRequest(`{}`, "ana", "")).Code)
	require.Equal(t, approval.CodePolicy, ask(t, b, approveRequest(`{}`, "", "rita")).Code, "silence is nobody")

	edited := approveRequest(`{}`, "ana", "rita")
	edited.Action.Before = &approval.Before{By: "bob", Proposers: []string{"ana", "bob"}}
	require.Equal(t, approval.CodeSamePerson, ask(t, b, edited).Code, "an earlier proposal may be in what is asked about now")
	edited.Verdict = approval.VerdictEdit
	require.True(t, ask(t, b, edited).Allowed, "whoever proposed may propose something else")
	edited.Verdict, edited.Approver.Name = approval.VerdictApprove, "cleo"
	require.True(t, ask(t, b, edited).Allowed)
}

func TestLimits(t *testing.T) {
	b := book(t, "rules: [{allow: all, limit: amount}]")
	for _, c := range []struct {
		approver, params string
		allowed          bool
	}{
		{"ana", `{"amount":5000}`, true}, {"ana", `{"amount":5000.00}`, true}, {"ana", `{"amount":5000.000000000000000001}`, false},
		{"bob", `{"amount":1000.3}`, true}, {"bob", `{"amount":1000.30000000000000001}`, false},
		{"ana", `{"amount":-5000}`, true}, {"ana", `{"amount":-5001}`, false},
		{"ana", `{"amount":1e999999999}`, false}, {"ana", `{"amount":1e-999999999}`, true},
		{"ana", `{"amount":"1"}`, false}, {"ana", `{"Amount":1}`, false}, {"ana", `[]`, false}, {"ana", ``, false},
		{"", `{"amount":1}`, false},
	} {
		r := ask(t, b, approveRequest(c.params, c.approver, "rita"))
		require.Equal(t, c.allowed, r.Allowed, "%s %s %s", c.approver, c.params, r.Reason)
	}
	nested := book(t, "rules: [{allow: all, limit: [amount, a.b]}]")
	require.ErrorContains(t, errors.New(ask(t, nested, approveRequest(`{"amount":1,"a":{"b":1}}`, "ana", "")).Reason), "no limit for a.b")
	require.ErrorContains(t, errors.New(ask(t, nested, approveRequest(`{"amount":1,"a":1}`, "ana", "")).Reason), "no number a.b")
}

// TestRejecting does no harm, so only who may answer is held against it.
func TestRejecting(t *testing.T) {
	b := book(t, `
rules:
  - {deny: none, tool: never}
  - {allow: some, tool: pay, separate: true, limit: amount, approvers: [group:finance], when: params.amount > 0}
`)
	reject := func(tool, params, approver string) approval.PolicyRuling {
		r := approveRequest(params, approver, approver)
		r.Action.Tool, r.Verdict = tool, approval.VerdictReject
		return ask(t, b, r)
	}
	require.True(t, reject("pay", `{"amount":9999}`, "ana").Allowed)
	require.Equal(t, approval.CodeNotYours, reject("pay", `{"amount":1}`, "cleo").Code)
	require.True(t, reject("never", `{}`, "cleo").Allowed)
	require.True(t, reject("other", `{}`, "cleo").Allowed)
	require.True(t, reject("pay", `{}`, "cleo").Allowed, "a condition without a value")
	r := approveRequest(`{"amount":1}`, "cleo", "rita")
	require.Equal(t, approval.CodeNotYours, ask(t, b, r).Code)
}

// TestExpressionsAreBounded: neither cost nor time runs away with the parameters.
func TestExpressionsAreBounded(t *testing.T) {
	b := book(t, "rules: [{allow: all, when: 'params.all(x, params.all(y, params.all(z, x + y + z >= 0)))'}]")
	params := "[" + strings.TrimSuffix(strings.Repeat("1,", 1000), ",") + "]"
	r := ask(t, b, approveRequest(params, "ana", "rita"))
	require.False(t, r.Allowed)
	require.Contains(t, r.Reason, "costs too much")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Decide(ctx, approveRequest(params, "ana", "rita"))
	require.ErrorIs(t, err, context.Canceled)
}

// TestReasonsQuoteNoParameters: a parameter may be secret.
func TestReasonsQuoteNoParameters(t *testing.T) {
	b := book(t, "rules: [{allow: all, when: 'timestamp(params.card) > timestamp(0)'}]")
	r := ask(t, b, approveRequest(`{"card":"4111-secret"}`, "ana", "rita"))
	require.False(t, r.Allowed)
	require.NotContains(t, r.Reason, "4111")
	require.Contains(t, r.Reason, "f.yaml:")
}
