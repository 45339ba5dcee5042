package approval_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
)

func TestNormal(t *testing.T) {
	a, err := approval.Action{Tool: "t", Summary: "s", Permissions: []string{"b", "a", "b"}}.Normal()
	require.NoError(t, err)
	null, err := approval.HashParams(json.RawMessage("null"))
	require.NoError(t, err)
	require.Equal(t, approval.Action{
		Tool: "t", Summary: "s", ParamsHash: null, Permissions: []string{"a", "b"},
		Risk: approval.RiskMedium, Silence: approval.SilenceDeny, Drift: approval.DriftAsk, Quorum: 1,
	}, a)
	again, err := a.Normal()
	require.NoError(t, err)
	require.Equal(t, a, again)
}

func TestDigestSurvivesStoring(t *testing.T) {
	a := approval.Action{Tool: "t", Permissions: []string{}, Watch: map[string]string{}}
	text, err := json.Marshal(a)
	require.NoError(t, err)
	var read approval.Action
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, a.Digest(), read.Digest())
	read.Watch = map[string]string{"stock": "3"}
	require.NotEqual(t, a.Digest(), read.Digest())
}

func TestCheckNamesTheField(t *testing.T) {
	long, many := strings.Repeat("x", 2000), make([]string, approval.MaxApprovers+1)
	for i := range many {
		many[i] = fmt.Sprint("p", i)
	}
	cases := map[string]func(*approval.Action){
		"tool":         func(a *approval.Action) { a.Tool = "" },
		"tool_version": func(a *approval.Action) { a.ToolVersion = long },
		"summary":      func(a *approval.Action) { a.Summary = "pay\nnothing" },
		"plan_version": func(a *approval.Action) { a.PlanVersion = -1 },
		"key":          func(a *approval.Action) { a.Key = long },
		"requester":    func(a *approval.Action) { a.Requester = "a\xff" },
		"undo":         func(a *approval.Action) { a.Undo = long },
		"risk":         func(a *approval.Action) { a.Risk = "none" },
		"drift":        func(a *approval.Action) { a.Drift = "ignore" },
		"permissions":  func(a *approval.Action) { a.Permissions = many },
		"watch":        func(a *approval.Action) { a.Watch = map[string]string{"": ""} },
		"watch.stock":  func(a *approval.Action) { a.Watch = map[string]string{"stock": long} },
		"approvers":    func(a *approval.Action) { a.Approvers = []string{"group:"} },
		"quorum":       func(a *approval.Action) { a.Quorum = 21 },
		"within_ms":    func(a *approval.Action) { a.Within = approval.MaxWithin + 1 },
		"warn_ms":      func(a *approval.Action) { a.Within, a.Warn = 1000, 1000 },
		"silence":      func(a *approval.Action) { a.Silence, a.Within = "shout", 1 },
		"default": func(a *approval.Action) {
			a.Silence, a.Within, a.Default = approval.SilenceDefault, 1, approval.VerdictEdit
		},
		"escalate": func(a *approval.Action) { a.Silence, a.Within = approval.SilenceEscalate, 1 },
		"secrets":  func(a *approval.Action) { a.Secrets = []string{"card"} },
		"params":   func(a *approval.Action) { a.Params = json.RawMessage(`{"a":`) },
	}
	for field, wreck := range cases {
		a := refund(t)
		wreck(&a)
		var invalid *approval.InvalidError
		require.ErrorAs(t, a.Check(), &invalid, field)
		require.Equal(t, field, invalid.Field, invalid)
		require.Contains(t, invalid.Error(), field)
		_, err := a.Normal()
		require.ErrorAs(t, err, &invalid)
	}
}

func TestCheckRefusesWhatCanNeverBe(t *testing.T) {
	for name, wreck := range map[string]func(*approval.Action){
		"three of two people":           func(a *approval.Action) { a.Quorum, a.Approvers = 3, []string{"ana", "bob", "ana"} },
		"silence without an end":        func(a *approval.Action) { a.Silence = approval.SilencePause },
		"a default nobody comes to":     func(a *approval.Action) { a.Default = approval.VerdictReject },
		"an escalation nobody comes to": func(a *approval.Action) { a.Escalate = []string{"cleo"} },
		"a warning without an end":      func(a *approval.Action) { a.Warn = 1 },
	} {
		a := refund(t)
		wreck(&a)
		require.Error(t, a.Check(), name)
	}
}

// TestParamsThatReadTwoWays: a policy must see the value that the tool gets.
func TestParamsThatReadTwoWays(t *testing.T) {
	for _, params := range []string{
		`{"amount":1,"amount":1000}`, `{"amount":1,"Amount":1000}`, `{"a":[{"k":1,"K":2}]}`, `{"s":1,"ſ":2}`, // ſ folds to s
		`{"\u0000number":"12345678901234567890"}`, `{"a":1} {"a":2}`, strings.Repeat("[", 101) + strings.Repeat("]", 101),
		`"` + strings.Repeat("x", approval.MaxParams) + `"`,
	} {
		a := refund(t)
		a.Params = json.RawMessage(params)
		var invalid *approval.InvalidError
		require.ErrorAs(t, a.Check(), &invalid, "%.40s", params)
		require.Equal(t, "params", invalid.Field)
		_, err := approval.ParseReply(json.RawMessage(`{"verdict":"edit","params":` + params + `}`))
		require.ErrorAs(t, err, &invalid, "%.40s", params)
	}
}

func TestParseReply(t *testing.T) {
	r, err := approval.ParseReply(json.RawMessage(`{"verdict":"edit","params":{"amount":5},"reason":"less"}`))
	require.NoError(t, err)
	require.Equal(t, approval.Reply{Verdict: approval.VerdictEdit, Params: json.RawMessage(`{"amount":5}`), Reason: "less"}, r)
	for _, value := range []string{
		``, `null`, `true`, `{}`, `{"verdict":"yes"}`, `{"verdict":"approve","by":"ana"}`, `{"verdict":"approve","Verdict":"reject"}`,
		`{"verdict":"approve"}{}`, `{"verdict":"expired"}`, `{"verdict":1}`, strings.Repeat(" ", 100_000),
	} {
		_, err := approval.ParseReply(json.RawMessage(value))
		var invalid *approval.InvalidError
		require.ErrorAs(t, err, &invalid, value)
	}
}
