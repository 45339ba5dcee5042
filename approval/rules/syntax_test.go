package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval/rules"
)

// TestMistakesNameTheirLine: each text is wrong in one place.
func TestMistakesNameTheirLine(t *testing.T) {
	const people = "people:\n  ana: {groups: [g]}\ngroups: {g: {}}\n" // three lines
	for _, c := range []struct {
		text string
		line int
		says string
	}{
		{"rules: [", 1, "did not find expected"},
		{"people:\n\tana: {}", 2, "cannot start any token"},
		{"rules: []\n---\nrules: []", 2, "second document"},
		{"- allow: x", 1, "mapping"},
		{"rules:\n- allow: x\nrule: []", 3, `"rule" is none of control, groups, people, roles, rules`},
		{"rules: {allow: x}", 1, "list of rules"},
		{"rules:\n- allow: x\n  tools: y", 3, `"tools" is none of allow, approvers, deny`},
		{"rules:\n- allow: x\n  tool: y\n  tool: z", 4, `"tool" is there twice`},
		{"rules:\n- tool: y", 2, "named by either"},
		{"rules:\n- allow: x\n  deny: y", 2, "named by either"},
		{"rules:\n- allow: true", 2, "the rule's name"},
		{"rules:\n- deny: x\n  need: 2", 3, "go with allow only"},
		{"rules:\n- allow: x\n- allow: y\n- deny: x", 4, `a rule of the name "x" is also at f.yaml:2`},
		{"rules:\n- allow: x\n  need: 21", 3, "from 1 to 20"},
		{"rules:\n- allow: x\n  need: some", 3, "from 1 to 20"},
		{"rules:\n- allow: x\n  valid_for: 0s", 3, "from 1s to a year"},
		{"rules:\n- allow: x\n  valid_for: 30 days", 3, "from 1s to a year"},
		{"rules:\n- allow: x\n  valid_for: [1h]", 3, "from 1s to a year"},
		{"rules:\n- deny: x\n  valid_for: 1h", 3, "go with allow only"},
		{"rules:\n- allow: x\n  separate: maybe", 3, "true or false"},
		{"rules:\n- allow: x\n  risk: [low, huge]", 3, `"huge" is none of`},
		{"rules:\n- allow: x\n  tool: []", 3, "empty"},
		{"rules:\n- allow: x\n  tool: {}", 3, "a text"},
		{"rules:\n- allow: x\n  approvers: [group:g]", 2, `nobody is named "group:g"`},
		{"rules:\n- allow: x\n  approvers: [ana]", 2, `nobody is named "ana"`},
		{people + "rules:\n- allow: x\n  approvers: g", 5, `nobody is named "g"`},
		{"people:\n  ana: {groups: [finanse]}", 2, `there is no group "finanse"`},
		{"people:\n  ana: {roles: [r]}", 2, `there is no role "r"`},
		{"people:\n  ana: {group: [g]}", 2, `"group" is none of groups, limits, permissions, roles`},
		{"groups:\n  g: {groups: [h]}", 2, `"groups" is none of limits, permissions`},
		{"people:\n  group:g: {}", 2, "does not begin with group:"},
		{"people:\n  ana:\n    limits: {amount: -1}", 3, "not negative"},
		{"people:\n  ana:\n    limits: {amount: .inf}", 3, "not negative"},
		{"people:\n  ana: &a {}\n  bob: *a", 3, "mapping"},
		{"people:\n  ana: {}\n  <<: {bob: {}}", 3, `"bob" is none of`},
		{"people:\n  \"a\\nb\": {}", 2, "control characters"},
		{"people:\n  " + strings.Repeat("x", 201) + ": {}", 2, "200 bytes"},
		{"rules:\n- allow: x\n  when: params.amount >", 3, "at character 16: Syntax error"},
		{"rules:\n- allow: x\n  when: action.tol == 'y'", 3, "at character 7: undefined field 'tol'"},
		{"rules:\n- allow: x\n  when: |\n    verdict == 'approve' &&\n    aprover.name == 'ana'", 5, "undeclared reference to 'aprover'"},
		{"rules:\n- allow: x\n  when: >\n    verdict == 'approve' &&\n    aprover.name == 'ana'", 4, "undeclared reference to 'aprover'"},
		{"rules:\n- allow: x\n  when: approver.name", 3, "says string, not true or false"},
		{"rules:\n- allow: x\n  when: " + strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), 3, "recursion"},
		{"rules:\n- allow: x\n  when: 'true || " + strings.Repeat("x", 4000) + "'", 3, "4000 bytes"},
	} {
		_, err := rules.Parse("f.yaml", []byte(c.text))
		var bad *rules.SyntaxError
		require.ErrorAs(t, err, &bad, c.text)
		require.Equal(t, "f.yaml", bad.File)
		require.Contains(t, bad.Problem, c.says, c.text)
		require.Equal(t, c.line, bad.Line, "%s\n%s", c.text, err)
	}
	for _, text := range []string{"", "# nothing\n", "rules:\n", "people: {ana: {}}"} {
		_, err := rules.Parse("f.yaml", []byte(text))
		require.Error(t, err, "%q", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("rules:\n- allow: x\n  when: params.a.exists(x, x > 1)\n  limit: amount")
	f.Add("people: {ana: {groups: g, limits: {a: 1e3}}}\ngroups: {g: }\nrules: [{deny: x}]")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		book, err := rules.Parse("f.yaml", []byte(text))
		if err != nil {
			return
		}
		// What is taken can be asked.
		request := approveRequest(`{"amount":1}`, "ana", "rita")
		_, err = book.Decide(t.Context(), request)
		require.NoError(t, err)
	})
}

// TestEmptyListsOfWhatSomebodyHas: nobody is in no groups by mistake, and the other rules hold.
func TestEmptyListsOfWhatSomebodyHas(t *testing.T) {
	book, err := rules.Parse("r.yaml", []byte(`
people:
  ann: {groups: [], roles: [], permissions: []}
  bob: {groups: [ops]}
groups: {ops: {permissions: []}}
rules: [{allow: all, limit: [], approvers: bob}]
control: [{allow: any, permissions: []}]`))
	require.NoError(t, err)
	ann, err := book.Person(t.Context(), "ann")
	require.NoError(t, err)
	require.Empty(t, ann.Groups)
	_, err = rules.Parse("r.yaml", []byte("rules: [{allow: all, approvers: []}]"))
	require.ErrorContains(t, err, "the list is empty")
}
