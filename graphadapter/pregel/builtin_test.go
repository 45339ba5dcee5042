package pregel_test

import (
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// reduced is what a reducer makes of its current value and updates, or what it says against them.
func reduced(t *testing.T, name, current string, updates ...string) string {
	t.Helper()
	r, ok := pregel.Builtin(name)
	if !ok {
		t.Fatalf("there is no reducer %s", name)
	}
	if r.Name() != name {
		t.Errorf("the reducer %s is named %s", name, r.Name())
	}
	var values []pregel.Value
	for _, u := range updates {
		values = append(values, pregel.Value(u))
	}
	var before pregel.Value
	if current != "" {
		before = pregel.Value(current)
	}
	v, err := r.Reduce(before, values)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(v)
}

// TestBuiltinReducers: an empty current value is none, which stands for the reducer's zero value.
func TestBuiltinReducers(t *testing.T) {
	for _, c := range []struct {
		reducer, current string
		updates          []string
		want             string
	}{
		{"append/v1", "", nil, "[]"},
		{"append/v1", "[1]", []string{"[2,3]", "[]", `["x"]`}, `[1,2,3,"x"]`},
		{"append/v1", "[ ]", []string{"[]", "[1, 2]", "[ 3]", "[\n4 ]", "[5]"}, "[1, 2,3,4,5]"},
		{"append/v1", "[[]]", []string{"[[ ]]"}, "[[],[ ]]"},
		{"append/v1", "[ 1 ]", []string{"[ ]"}, "[1]"},
		{"append/v1", "[1]", []string{"2"}, "error: append/v1 takes lists, got 2"},
		{"append/v1", "[1]", []string{"null"}, "error: append/v1 takes lists, got null"},
		{"append/v1", "null", []string{"[1]"}, "error: append/v1 holds a list, got null"},
		{"sum/v1", "", []string{"1", "-3"}, "-2"},
		{"sum/v1", "9223372036854775807", []string{"1"}, "9223372036854775808"},
		{"sum/v1", "123456789012345678901234567890", []string{"-1"}, "123456789012345678901234567889"},
		{"sum/v1", "-9223372036854775808", []string{"-1"}, "-9223372036854775809"},
		{"sum/v1", "1", []string{"0.5"}, "1.5"},
		{"sum/v1", "0.1", []string{"0.2"}, "0.30000000000000004"},
		{"sum/v1", "1", []string{"1e3"}, "1001"},
		{"sum/v1", "0", []string{"1.5", "2.5"}, "4"},
		{"sum/v1", "0", []string{`"1"`}, `error: sum/v1: takes numbers, got "1"`},
		{"sum/v1", "0", []string{"null"}, "error: sum/v1: takes numbers, got null"},
		{"max/v1", "", []string{"-1"}, "0"},
		{"max/v1", "1", []string{"9223372036854775808", "3"}, "9223372036854775808"},
		{"max/v1", "9223372036854775807", []string{"9223372036854775808"}, "9223372036854775808"},
		{"max/v1", "1", []string{"1.5"}, "1.5"},
		{"max/v1", "2", []string{"1.5"}, "2"},
		{"max/v1", "1.0", []string{"1"}, "1.0"},
		{"max/v1", "1", []string{"true"}, "error: max/v1: takes numbers, got true"},
		{"concat/v1", "", []string{`"a"`, `"é\n"`}, `"aé\n"`},
		{"concat/v1", `"a"`, []string{"1"}, "error: concat/v1 takes strings, got 1"},
		{"concat/v1", `"a"`, []string{"null"}, "error: concat/v1 takes strings, got null"},
		{"merge/v1", "", []string{`{"b":1,"a":{"x":1}}`, `{"a":{"y":2}}`}, `{"a":{"y":2},"b":1}`},
		{"merge/v1", `{"a":1}`, []string{`{"a":null}`}, `{"a":null}`},
		{"merge/v1", `{"a":1}`, []string{"[1]"}, "error: merge/v1 takes objects, got [1]"},
		{"merge/v1", `{"a":1}`, []string{"null"}, "error: merge/v1 takes objects, got null"},
	} {
		if got := reduced(t, c.reducer, c.current, c.updates...); got != c.want {
			t.Errorf("%s of %s and %v is %s, want %s", c.reducer, c.current, c.updates, got, c.want)
		}
	}
	if _, ok := pregel.Builtin("append/v2"); ok {
		t.Error("a reducer that nobody wrote exists")
	}
}

// TestMessages: messages/v1 is LangGraph's add_messages.
func TestMessages(t *testing.T) {
	const (
		a  = `{"id":"a","role":"user","content":"1"}`
		a2 = `{"id":"a","role":"user","content":"2"}`
		b  = `{"id":"b","role":"assistant","content":"3"}`
	)
	remove := func(id string) string { return `{"id":"` + id + `","role":"remove"}` }
	for _, c := range []struct {
		name, current string
		updates       []string
		want          string
	}{
		{"append", "[" + a + "]", []string{"[" + b + "]"}, "[" + a + "," + b + "]"},
		{"a single message", "", []string{a}, "[" + a + "]"},
		{"replace in place", "[" + a + "," + b + "]", []string{a2}, "[" + a2 + "," + b + "]"},
		{"replace within one update", "", []string{"[" + a + "," + b + "," + a2 + "]"}, "[" + a2 + "," + b + "]"},
		{"remove", "[" + a + "," + b + "]", []string{remove("a")}, "[" + b + "]"},
		{"remove what is not there", "[" + a + "]", []string{remove("x")},
			`error: messages/v1: cannot remove the message "x": no message has that id`},
		{"remove, then add again", "[" + a + "," + b + "]", []string{"[" + remove("a") + "," + a2 + "]"}, "[" + a2 + "," + b + "]"},
		{"remove all", "[" + a + "]", []string{"[" + b + "," + remove("__remove_all__") + "," + a2 + "]"}, "[" + a2 + "]"},
		{"remove all, in a later update", "[" + a + "]", []string{b, remove("__remove_all__")}, "[]"},
		{"no message", "[]", []string{`"text"`}, `error: messages/v1: takes messages (objects with role and content), got "text"`},
		{"an id that is no text", "[]", []string{`{"id":1}`}, "error: messages/v1: message {\"id\":1}"},
		{"nothing", "[" + a + "]", []string{"[]"}, "[" + a + "]"},
	} {
		if got := reduced(t, "messages/v1", c.current, c.updates...); !strings.HasPrefix(got, c.want) || strings.HasPrefix(c.want, "[") && got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestMessagesGetIDs: a message without an id gets one that depends on nothing but place and content, and that no
// other message has.
func TestMessagesGetIDs(t *testing.T) {
	const hello = `{"role":"user","content":"hello"}`
	once := reduced(t, "messages/v1", "[]", hello)
	if once != reduced(t, "messages/v1", "", "["+hello+"]") || !strings.Contains(once, `"id":"m-`) {
		t.Errorf("the same message got another id, or none: %s", once)
	}
	twice := reduced(t, "messages/v1", once, hello)
	if strings.Count(twice, "hello") != 2 {
		t.Errorf("the same text said twice is two messages, got %s", twice)
	}
	both := reduced(t, "messages/v1", "[]", "["+hello+","+hello+"]")
	if both != twice {
		t.Errorf("in one update or in two, the ids differ:\n%s\n%s", both, twice)
	}
}
