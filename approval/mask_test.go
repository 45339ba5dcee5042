package approval_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
)

func TestMasked(t *testing.T) {
	for _, c := range []struct {
		params  string
		secrets []string
		want    string
	}{
		{`{"card":"4111","n":1}`, nil, `{"card":"4111","n":1}`},
		{`{"card":"4111","n":9007199254740993}`, []string{"/card"}, `{"card":"***","n":9007199254740993}`},
		{`{"a":[{"b":[1,{"c":"s"}]}]}`, []string{"/a/0/b/1/c"}, `{"a":[{"b":[1,{"c":"***"}]}]}`},
		{`{"a":[1]}`, []string{"/a/1", "/a/-", "/a/00", "/a/-1", "/b", "/a/0/x"}, `{"a":[1]}`},
		{`{"a/b":{"~":"<s>"},"c":"<"}`, []string{"/a~1b/~0"}, `{"a/b":{"~":"***"},"c":"<"}`},
		{`{"a":{"b":1}}`, []string{"/a", "/a/b"}, `{"a":"***"}`},
		{`{"Card":"4111","CARDS":2,"ſ":3}`, []string{"/card", "/S"}, `{"CARDS":2,"Card":"***","ſ":"***"}`}, // as Go reads names
		{`{"":1}`, []string{"/"}, `{"":"***"}`},
		{`{"a":1}`, []string{""}, `"***"`},
		{`{"a":1}`, []string{"a"}, `"***"`}, // no pointer: closed
		{`{"a":`, []string{"/b"}, `"***"`},
	} {
		require.Equal(t, c.want, string(approval.Masked(json.RawMessage(c.params), c.secrets)))
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		before, now string
		secrets     []string
		want        []approval.Change
	}{
		{`{"a":1.0,"b":[1]}`, `{"b":[1e0],"a":1}`, nil, nil},
		{``, `null`, nil, nil},
		{`{"n":9007199254740992}`, `{"n":9007199254740993}`, nil, []approval.Change{{
			Path: "/n", Before: json.RawMessage("9007199254740992"), Now: json.RawMessage("9007199254740993")}}},
		{`{"z":1,"a":{"x/y":[1,2]}}`, `{"a":{"x/y":[1,3,4]}}`, nil, []approval.Change{
			{Path: "/a/x~1y/1", Before: json.RawMessage("2"), Now: json.RawMessage("3")},
			{Path: "/a/x~1y/2", Now: json.RawMessage("4")},
			{Path: "/z", Before: json.RawMessage("1")},
		}},
		{`{"a":[1]}`, `{"a":{"0":1}}`, nil, []approval.Change{{Path: "/a", Before: json.RawMessage("[1]"), Now: json.RawMessage(`{"0":1}`)}}},
		{`{"card":{"no":1,"cvc":2}}`, `{"card":{"no":1,"cvc":3}}`, []string{"/card/cvc"}, []approval.Change{
			{Path: "/card/cvc", Before: json.RawMessage(`"***"`), Now: json.RawMessage(`"***"`)}}},
		{`{"card":{"no":1}}`, `{"card":{"no":2}}`, []string{"/card"}, []approval.Change{
			{Path: "/card", Before: json.RawMessage(`"***"`), Now: json.RawMessage(`"***"`)}}},
		{`{"card":1}`, `{"CARD":2}`, []string{"/card"}, []approval.Change{
			{Path: "/CARD", Now: json.RawMessage(`"***"`)}, {Path: "/card", Before: json.RawMessage(`"***"`)}}},
		{`{}`, `{"l":[{"pin":1,"n":2}]}`, []string{"/l/0/pin"}, []approval.Change{
			{Path: "/l", Now: json.RawMessage(`[{"n":2,"pin":"***"}]`)}}},
		{`{"a":1}`, `{"a":2}`, []string{"a"}, []approval.Change{{Before: json.RawMessage(`"***"`), Now: json.RawMessage(`"***"`)}}},
		{`{"pin":1`, `{}`, nil, []approval.Change{{Before: json.RawMessage(`"***"`), Now: json.RawMessage(`"***"`)}}},
	} {
		changes, more := approval.Diff(json.RawMessage(c.before), json.RawMessage(c.now), c.secrets)
		require.Equal(t, c.want, changes, "%s %s", c.before, c.now)
		require.False(t, more)
	}
}

func TestDiffIsBounded(t *testing.T) {
	list := make([]int, approval.MaxChanges+1)
	before, err := json.Marshal(list)
	require.NoError(t, err)
	for i := range list {
		list[i] = i + 1
	}
	now, err := json.Marshal(list)
	require.NoError(t, err)
	changes, more := approval.Diff(before, now, nil)
	require.Len(t, changes, approval.MaxChanges)
	require.True(t, more)
}

// TestProposed: other parameters are used in the tool's form. Without one, what a tool in Go would take for something else is refused.
func TestProposed(t *testing.T) {
	check := func(params string) approval.ReplyCheck {
		return approval.ReplyCheck{
			Action: approval.Action{Params: json.RawMessage(`{"card":"1","who":{"Name":"a"},"list":[{"pin":1}]}`), Secrets: []string{"/list/1/key", "/cvc"}},
			Reply:  approval.Reply{Verdict: approval.VerdictEdit, Params: json.RawMessage(params)},
		}
	}
	for params, want := range map[string]string{
		`{"card": "2", "who":{"Name":"b","n":9007199254740993},"list":[], "more":1}`: "",
		`[1]`:                             "",
		`null`:                            "null is nothing to go on with",
		`{"card": "2"}`:                   `"list" is missing`,
		`{"CARD":"2","who":{},"list":[]}`: `the name "card" is spelled in other letter case`,
		`{"card":"2","who":{"NAME":"b"},"list":[]}`:          `the name "Name" is spelled in other letter case`,
		`{"card":"2","who":{},"list":[{"pin":3,"Pin":2}]}`:   `the name "pin" is spelled in other letter case`,
		`{"card":"2","who":{},"list":[{"pin":3},{"KEY":4}]}`: `the name "key" is spelled in other letter case`,
		`{"card":"2","who":{},"list":[],"Cvc":5}`:            `the name "cvc" is spelled in other letter case`,
	} {
		got, err := check(params).Proposed()
		if want != "" {
			require.ErrorContains(t, err, want, params)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, params, string(got))
	}
	c := check(`{"CARD":"2"}`)
	c.Canonical = func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"card":"2","n":0}`), nil }
	got, err := c.Proposed()
	require.NoError(t, err)
	require.Equal(t, `{"card":"2","n":0}`, string(got))
	c.Canonical = func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New("card: expected a number") }
	_, err = c.Proposed()
	var invalid *approval.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Contains(t, err.Error(), "card: expected a number")
	c.Reply = approval.Reply{Verdict: approval.VerdictApprove}
	got, err = c.Proposed()
	require.NoError(t, err)
	require.Nil(t, got)
}
