package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/approval/rules"
)

const operators = `
people:
  ann: {groups: [ops], permissions: [run.control]}
  bob: {groups: [ops]}
  zoe: {permissions: [run.control]}
groups: {ops: {}}
control:
  - deny: payroll
    graph: payroll
    op: [cancel, update]
    reason: ask the bank
  - allow: keeps
    op: cancel
    when: on == "keep"
  - allow: operators
    op: [pause, unpause, cancel]
    by: [group:ops]
    permissions: run.control
  - allow: odd
    op: event
    when: who.limits["x"] > 0.0
`

func TestControlRules(t *testing.T) {
	book, err := rules.Parse("r.yaml", []byte(operators))
	require.NoError(t, err)
	require.True(t, book.Controls())
	for _, c := range []struct {
		who, graph string
		op         approval.Op
		on         string
		code       approval.Code
		reason     string
	}{
		{"ann", "refund", approval.OpPause, "", "", ""},
		{"bob", "refund", approval.OpPause, "", approval.CodePermission, "run.control"},
		{"zoe", "refund", approval.OpPause, "", approval.CodeNotYours, "group:ops may do it"},
		{"zoe", "refund", approval.OpCancel, "keep", "", ""},
		{"zoe", "refund", approval.OpCancel, "drop", approval.CodeNotYours, ""},
		{"ann", "payroll", approval.OpCancel, "keep", approval.CodePolicy, "ask the bank"},
		{"ann", "refund", approval.OpUpdate, "", approval.CodePolicy, "no rule for control allows it"},
		{"ann", "refund", approval.OpEvent, "go", approval.CodePolicy, "the condition at r.yaml:"},
	} {
		p, err := book.Person(t.Context(), c.who)
		require.NoError(t, err)
		said, err := book.DecideControl(t.Context(), approval.ControlRequest{Thread: "t", Graph: c.graph,
			Control: approval.Control{Op: c.op, On: c.on}, Who: p})
		require.NoError(t, err)
		require.Equal(t, c.code == "", said.Allowed, "%+v: %+v", c, said)
		require.Equal(t, c.code, said.Code, "%+v: %+v", c, said)
		require.Contains(t, said.Reason, c.reason)
	}
	without, err := rules.Parse("r.yaml", []byte("rules: [{allow: all}]"))
	require.NoError(t, err)
	require.False(t, without.Controls())
}

func TestMistakesInControlRules(t *testing.T) {
	for text, want := range map[string]string{
		"control: [{allow: x, op: reboot}]":              `"reboot" is none of`,
		"control: [{allow: x, by: nobody}]":              `nobody is named "nobody"`,
		"control: [{deny: x, by: ann}]":                  "go with allow only",
		"control: [{allow: x}, {allow: x}]":              `of the name "x" is also at`,
		"control: [{op: pause}]":                         "either allow: NAME or deny: NAME",
		"control: [{allow: x, when: params.amount > 1}]": "undeclared reference to 'params'",
		"control: [{allow: x, need: 2}]":                 `"need" is none of`,
		"control: {allow: x}":                            "here belongs a list of rules",
	} {
		_, err := rules.Parse("r.yaml", []byte("people: {ann: {}}\n"+text))
		require.Error(t, err, text)
		require.True(t, strings.Contains(err.Error(), want), "%s: %v", text, err)
	}
}
