package superstep

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/message"
)

type order struct {
	ID    string   `json:"id"`
	Items []string `json:"items,omitempty"`
}

type allChannels struct {
	Value     Value[int64]                   `json:"value"`
	Order     Value[order]                   `json:"order"`
	List      List[string]                   `json:"list"`
	Sum       Sum[int64]                     `json:"sum"`
	Map       Map[int]                       `json:"map"`
	Messages  Messages                       `json:"messages"`
	Longest   Reduced[string, longest]       `json:"longest"`
	Any       AnyValue[string]               `json:"any"`
	Ephemeral Ephemeral[string]              `json:"ephemeral"`
	Untracked Untracked[bool]                `json:"untracked"`
	Topic     Topic[int]                     `json:"topic"`
	Items     Reduced[[]string, appendItems] `json:"items"`
}

// bound returns a state as a task reads it.
func bound(t *testing.T, values string) (allChannels, *scope) {
	t.Helper()
	var raw map[string]pregel.Value
	require.NoError(t, json.Unmarshal([]byte(values), &raw))
	var s allChannels
	sc := newScope("g", "n")
	schemaFor[allChannels]().bind(&s, sc, raw)
	return s, sc
}

// writesOf returns what was written, in a form that is easy to compare.
func writesOf(t *testing.T, s allChannels) []string {
	t.Helper()
	writes, err := schemaFor[allChannels]().collect(&s, newScope("g", "n"))
	require.NoError(t, err)
	var out []string
	for _, w := range writes {
		line := fmt.Sprintf("%s=%s", w.Channel, w.Value)
		if w.Overwrite {
			line = fmt.Sprintf("%s:=%s", w.Channel, w.Value)
		}
		out = append(out, line)
	}
	return out
}

func TestChannelsReadTheirZeroValueWhenNothingIsThere(t *testing.T) {
	var s allChannels
	assert.Zero(t, s.Value.Get())
	assert.False(t, s.Value.IsSet())
	assert.Empty(t, s.List.Get())
	assert.Zero(t, s.Sum.Get())
	assert.NotNil(t, s.Map.Get())
	assert.Empty(t, s.Messages.Get())
	assert.Empty(t, s.Longest.Get())
	assert.Empty(t, s.Topic.Get())
	_, ok := s.Messages.Last()
	assert.False(t, ok)
	assert.Empty(t, writesOf(t, s))
	text, err := json.Marshal(s)
	require.NoError(t, err)
	assert.JSONEq(t, `{"value":null,"order":null,"list":[],"sum":0,"map":{},"messages":[],"longest":"","any":null,
		"ephemeral":null,"untracked":null,"topic":[],"items":[]}`, string(text))
	assert.Equal(t, "unset", s.Value.String())
}

func TestChannelsReadWhatTheTaskWasGiven(t *testing.T) {
	s, sc := bound(t, `{"value":9007199254740993,"order":{"id":"o-1"},"list":["a"],"sum":-9223372036854775808,
		"map":{"k":1},"messages":[{"id":"m","role":"user","content":"hi"}],"longest":"abc","any":"x","ephemeral":"e",
		"untracked":false,"topic":[1,2]}`)
	assert.Equal(t, int64(9007199254740993), s.Value.Get(), "a float64 would round it")
	assert.True(t, s.Value.IsSet())
	assert.Equal(t, order{ID: "o-1"}, s.Order.Get())
	assert.Equal(t, []string{"a"}, s.List.Get())
	assert.Equal(t, int64(math.MinInt64), s.Sum.Get())
	assert.Equal(t, map[string]int{"k": 1}, s.Map.Get())
	last, ok := s.Messages.Last()
	assert.True(t, ok)
	assert.Equal(t, message.Message{ID: "m", Role: message.RoleUser, Content: message.Text("hi")}, last)
	assert.Equal(t, "abc", s.Longest.Get())
	assert.Equal(t, "x", s.Any.Get())
	assert.Equal(t, "e", s.Ephemeral.Get())
	assert.True(t, s.Untracked.IsSet())
	assert.Equal(t, []int{1, 2}, s.Topic.Get())
	assert.NoError(t, sc.failure())
	assert.Empty(t, writesOf(t, s), "reading writes nothing")
}

func TestChannelsShowTheNodeItsOwnWrites(t *testing.T) {
	s, sc := bound(t, `{"value":1,"list":["a"],"sum":10,"map":{"k":1,"l":2},"longest":"abc","topic":[1],
		"messages":[{"id":"m","role":"user","content":"hi"}],"items":["x"]}`)
	s.Value.Set(2)
	s.Value.Set(3)
	s.List.Append("b", "c")
	s.List.Append()
	s.List.Append("d")
	s.Sum.Add(5)
	s.Sum.Add(-1)
	s.Map.Put("k", 7)
	s.Map.Put("m", 8)
	s.Longest.Write("abcde")
	s.Longest.Write("x")
	s.Topic.Publish(2, 3)
	s.Messages.Append(message.Message{ID: "n", Role: message.RoleAssistant, Content: message.Text("hello")})
	s.Messages.Remove("m")
	s.Items.Write([]string{"y"})

	assert.Equal(t, int64(3), s.Value.Get())
	assert.Equal(t, []string{"a", "b", "c", "d"}, s.List.Get())
	assert.Equal(t, int64(14), s.Sum.Get())
	assert.Equal(t, map[string]int{"k": 7, "l": 2, "m": 8}, s.Map.Get())
	assert.Equal(t, "abcde", s.Longest.Get())
	assert.Equal(t, []int{1, 2, 3}, s.Topic.Get())
	assert.Equal(t, "assistant: hello", s.Messages.String())
	assert.Equal(t, []string{"x", "y"}, s.Items.Get())
	assert.NoError(t, sc.failure())
	assert.Equal(t, []string{
		`value=3`, // one write, of the last value
		`list=["b","c","d"]`,
		`sum=5`, `sum=-1`,
		`map={"k":7,"m":8}`,
		`messages=[{"id":"n","role":"assistant","content":"hello"},{"id":"m","role":"remove"}]`,
		`longest="abcde"`, `longest="x"`,
		`topic=[2,3]`,
		`items=["y"]`,
	}, writesOf(t, s), "in field order, then in call order")
}

func TestOverwriteDropsEarlierWritesAndTakesInLaterOnes(t *testing.T) {
	s, _ := bound(t, `{"list":["a"],"sum":10,"map":{"k":1},"longest":"abcdef"}`)
	s.List.Append("lost")
	s.List.Overwrite([]string{"b"})
	s.List.Append("c")
	s.Sum.Add(100)
	s.Sum.Overwrite(1)
	s.Sum.Add(2)
	s.Map.Put("lost", 1)
	s.Map.Overwrite(map[string]int{"x": 1})
	s.Map.Put("y", 2)
	s.Longest.Write("much longer")
	s.Longest.Overwrite("ab")
	s.Longest.Write("abc")

	assert.Equal(t, []string{"b", "c"}, s.List.Get())
	assert.Equal(t, int64(3), s.Sum.Get())
	assert.Equal(t, map[string]int{"x": 1, "y": 2}, s.Map.Get())
	assert.Equal(t, "abc", s.Longest.Get())
	assert.Equal(t, []string{`list:=["b","c"]`, `sum:=3`, `map:={"x":1,"y":2}`, `longest:="abc"`}, writesOf(t, s))

	s.List.Overwrite(nil)
	s.Map.Overwrite(nil)
	assert.Equal(t, []string{`list:=[]`, `sum:=3`, `map:={}`, `longest:="abc"`}, writesOf(t, s), "empty, never null")
}

func TestUndecodableValuesAreReportedToTheTask(t *testing.T) {
	s, sc := bound(t, `{"value":"a lot","list":"not a list"}`)
	assert.NoError(t, sc.failure(), "decoded only when read")
	assert.Zero(t, s.Value.Get())
	assert.Empty(t, s.List.Get())
	var wrong *StateError
	require.ErrorAs(t, sc.failure(), &wrong)
	assert.Equal(t, "value", wrong.Field, "the first one")
	assert.Equal(t, "int64", wrong.Type)
	assert.Equal(t, "g", wrong.Graph)
	assert.Equal(t, "n", wrong.Node)
	assert.EqualError(t, wrong, `cannot read field "value" as int64: cannot unmarshal string into Go value of type int64. `+
		`If the type changed, migrate the thread or give the field a new name`)
}

func TestUnencodableWritesNameTheField(t *testing.T) {
	type state struct {
		Rate Sum[float64]      `json:"rate"`
		Call Value[func()]     `json:"call"`
		Any  List[chan string] `json:"any"`
	}
	tests := map[string]struct {
		write func(*state)
		field string
	}{
		"not a number": {func(s *state) { s.Rate.Add(math.NaN()) }, "rate"},
		"a function":   {func(s *state) { s.Call.Set(func() {}) }, "call"},
		"a channel":    {func(s *state) { s.Any.Append(nil, make(chan string)) }, "any"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var s state
			test.write(&s)
			_, err := schemaFor[state]().collect(&s, newScope("g", "n"))
			var wrong *StateError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, test.field, wrong.Field)
			assert.True(t, wrong.Write)
			assert.ErrorContains(t, err, "does not encode as JSON")
		})
	}
}

func TestNullIsAValueAndUnsetIsNot(t *testing.T) {
	s, _ := bound(t, `{"order":null}`)
	assert.True(t, s.Order.IsSet())
	assert.False(t, s.Order.IsZero())
	assert.True(t, s.Value.IsZero())

	type state struct {
		P Value[*int] `json:"p,omitzero"`
		Q Value[*int] `json:"q,omitzero"`
		L List[int]   `json:"l,omitzero"`
	}
	var n state
	n.P.Set(nil)
	text, err := json.Marshal(n)
	require.NoError(t, err)
	assert.Equal(t, `{"p":null}`, string(text))
}

func TestNumbersInsideAnAnyStayExact(t *testing.T) {
	type state struct {
		Any Value[any] `json:"any"`
	}
	var s state
	schemaFor[state]().bind(&s, newScope("g", "n"), map[string]pregel.Value{"any": pregel.Value(`{"n":9007199254740993}`)})
	assert.Equal(t, json.Number("9007199254740993"), s.Any.Get().(map[string]any)["n"])
}

func TestStatesRoundTripThroughJSON(t *testing.T) {
	in := `{"value":4,"order":{"id":"o"},"list":["a"],"sum":2,"map":{"k":1},"messages":[{"id":"m","role":"user","content":"hi"}],` +
		`"longest":"abc","any":"x","ephemeral":"e","untracked":true,"topic":[1],"items":["x"]}`
	var s allChannels
	require.NoError(t, json.Unmarshal([]byte(in), &s))
	out, err := json.Marshal(s)
	require.NoError(t, err)
	assert.JSONEq(t, in, string(out))
	assert.Len(t, writesOf(t, s), 12, "unmarshalling writes")
	assert.Equal(t, "[a]", s.List.String())
	assert.Equal(t, "map[k:1]", s.Map.String())
	assert.Equal(t, "2", s.Sum.String())
	assert.Equal(t, "[1]", s.Topic.String())
	assert.Equal(t, "abc", s.Longest.String())
	assert.Equal(t, "4", s.Value.String())
}

func TestMarshallingShowsWhatWasReadAndWritten(t *testing.T) {
	in := `{"value":4,"order":{"id":"o","future":1},"list":["a"],"sum":2,"map":{"k":1},"longest":"abc","topic":[1],` +
		`"messages":[{"id":"m","role":"user","content":"hi","future":1}]}`
	s, _ := bound(t, in)
	raw, err := schemaFor[allChannels]().object(&s)
	require.NoError(t, err)
	assert.JSONEq(t, in, string(raw), "what was read is handed on as it is, unknown fields included")

	s.List.Append("b")
	s.Sum.Add(1)
	s.Map.Put("l", 2)
	s.Topic.Publish(2)
	s.Messages.Remove("m")
	s.Longest.Write("abcd")
	raw, err = schemaFor[allChannels]().object(&s)
	require.NoError(t, err)
	assert.JSONEq(t, `{"value":4,"order":{"id":"o","future":1},"list":["a","b"],"sum":3,"map":{"k":1,"l":2},`+
		`"longest":"abcd","topic":[1,2],"messages":[]}`, string(raw))

	s.Longest.Write("boom")
	_, err = schemaFor[allChannels]().object(&s)
	assert.ErrorIs(t, err, assert.AnError)
}

func TestUnmarshallingRefusesWhatDoesNotFit(t *testing.T) {
	for _, field := range []string{"value", "list", "sum", "map", "messages", "longest", "topic"} {
		t.Run(field, func(t *testing.T) {
			var s allChannels
			assert.Error(t, json.Unmarshal([]byte(`{"`+field+`":true}`), &s))
		})
	}
}

func BenchmarkBindReadCollect(b *testing.B) {
	var list []string
	for range 100 {
		list = append(list, "an entry of the log")
	}
	raw, err := jsonfit.Encode(list)
	require.NoError(b, err)
	values := map[string]pregel.Value{"list": raw, "value": pregel.Value("4"), "sum": pregel.Value("2")}
	s := schemaFor[allChannels]()
	b.ReportAllocs()
	for b.Loop() {
		var state allChannels
		s.bind(&state, newScope("g", "n"), values)
		state.Sum.Add(state.Value.Get())
		state.List.Append("one more")
		writes, err := s.collect(&state, newScope("g", "n"))
		if err != nil || !slices.ContainsFunc(writes, func(w pregel.Write) bool { return w.Channel == "sum" }) {
			b.Fatal(err)
		}
	}
}
