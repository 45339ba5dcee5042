package superstep

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	schemaFor[allChannels]().bind(&s, sc, pregel.HoldAll(raw))
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
		`If the type changed, write the value anew (superstep update) or give the field a new name`)
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
	schemaFor[state]().bind(&s, newScope("g", "n"), pregel.HoldAll(map[string]pregel.Value{"any": pregel.Value(`{"n":9007199254740993}`)}))
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
		s.bind(&state, newScope("g", "n"), pregel.HoldAll(values))
		state.Sum.Add(state.Value.Get())
		state.List.Append("one more")
		writes, err := s.collect(&state, newScope("g", "n"))
		if err != nil || !slices.ContainsFunc(writes, func(w pregel.Write) bool { return w.Channel == "sum" }) {
			b.Fatal(err)
		}
	}
}

func TestMessagesKeepTheShapesOfTheModelAPIs(t *testing.T) {
	tests := map[string]string{
		"text":        `{"id":"1","role":"user","content":"a < b & c"}`,
		"tool calls":  `{"id":"1","role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}`,
		"tool result": `{"id":"1","role":"tool","content":"42","tool_call_id":"c1"}`,
		"image":       `{"id":"1","role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"u"}}]}`,
		"tool use":    `{"id":"1","role":"assistant","content":[{"type":"tool_use","id":"t","input":{"n":9007199254740993},"name":"f"}]}`,
		"no parts":    `{"id":"1","role":"user","content":[]}`,
		"named":       `{"id":"1","role":"user","content":"x","name":"ann"}`,
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			var m message.Message
			require.NoError(t, json.Unmarshal([]byte(in), &m))
			out, err := jsonfit.Encode(m)
			require.NoError(t, err)
			assert.Equal(t, in, string(out))
		})
	}
	var m message.Message
	require.NoError(t, json.Unmarshal([]byte(`{"role":"assistant","content":null}`), &m))
	assert.Equal(t, "", m.Content.String())
	assert.Error(t, json.Unmarshal([]byte(`{"role":"user","content":5}`), &m))
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"role":"user","content":[{"text":"x"}]}`), &m), "needs a type")
	parts := message.Content{Parts: []message.Part{{Type: "text", Text: "a"}, {Type: "image"}, {Type: "text", Text: "b"}}}
	assert.Equal(t, "a\nb", parts.String())
}

func TestRemovingAnUnknownMessageIsReportedToTheTask(t *testing.T) {
	s, sc := bound(t, `{"messages":[]}`)
	s.Messages.Remove("nobody")
	assert.Empty(t, s.Messages.Get())
	assert.ErrorContains(t, sc.failure(), `cannot remove the message "nobody"`)
}

// Ids follow from the task, so that an attempt that runs again names its messages as the one before.
func TestMessagesWithoutIDsGetThoseOfTheirTask(t *testing.T) {
	task := func(step string) []string {
		sc := newScope("g", "n")
		sc.task = func() string { return step }
		var s allChannels
		schemaFor[allChannels]().bind(&s, sc, nil)
		s.Messages.Append(message.Message{Role: message.RoleUser, Content: message.Text("a")}, message.Message{Role: message.RoleUser, Content: message.Text("a")})
		copied := s
		copied.Messages.Append(message.Message{Role: message.RoleUser, Content: message.Text("c")})
		var own allChannels
		own.Messages.Append(message.Message{Role: message.RoleUser, Content: message.Text("a")}, message.Message{ID: "mine", Role: message.RoleUser})
		assert.Equal(t, []string{"", "mine"}, ids(own.Messages), "none before it is handed over")
		writes, err := schemaFor[allChannels]().collect(&own, sc)
		require.NoError(t, err)
		require.Len(t, writes, 1)
		var handed []message.Message
		require.NoError(t, json.Unmarshal(writes[0].Value, &handed))
		return append(append(ids(s.Messages), ids(copied.Messages)[2]), handed[0].ID)
	}
	first := task("step 1")
	assert.Equal(t, first, task("step 1"))
	seen := map[string]bool{"": true}
	for _, id := range append(first, task("step 2")...) {
		assert.False(t, seen[id], "each message has an id of its own: %q", id)
		seen[id] = true
	}
}

func ids(m Messages) (out []string) {
	for _, one := range m.Get() {
		out = append(out, one.ID)
	}
	return out
}

func TestMessagesOfAnInputGetRandomIDs(t *testing.T) {
	given := func() []message.Message {
		var in allChannels
		in.Messages.Append(message.Message{Role: message.RoleUser, Content: message.Text("a")})
		in.Messages.Append(message.Message{ID: "x", Role: message.RoleUser}, message.Message{ID: "x", Role: message.RoleAssistant})
		raw, err := encodeInput("g", in)
		require.NoError(t, err)
		var out struct{ Messages []message.Message }
		require.NoError(t, json.Unmarshal(raw, &out))
		return out.Messages
	}
	a, b := given(), given()
	require.Len(t, a, 3)
	assert.NotEmpty(t, a[0].ID)
	assert.NotEqual(t, a[0].ID, b[0].ID)
}

// LangGraph's add_messages, as a node sees it in its own state.
func TestMessagesFollowTheRulesOfAddMessages(t *testing.T) {
	user := func(id, text string) message.Message {
		return message.Message{ID: id, Role: message.RoleUser, Content: message.Text(text)}
	}
	tests := map[string]struct {
		write func(m *Messages)
		want  string
	}{
		"append":                  {func(m *Messages) { m.Append(user("c", "3")) }, "a=1 b=2 c=3"},
		"replace in place":        {func(m *Messages) { m.Append(user("a", "9"), user("c", "3")) }, "a=9 b=2 c=3"},
		"replace its own":         {func(m *Messages) { m.Append(user("c", "3")); m.Append(user("c", "4")) }, "a=1 b=2 c=4"},
		"remove":                  {func(m *Messages) { m.Remove("a") }, "b=2"},
		"remove its own":          {func(m *Messages) { m.Append(user("c", "3")); m.Remove("c") }, "a=1 b=2"},
		"remove and un-remove":    {func(m *Messages) { m.Remove("a"); m.Append(user("a", "9")) }, "a=9 b=2"},
		"remove all":              {func(m *Messages) { m.Clear() }, ""},
		"remove all, then append": {func(m *Messages) { m.Append(user("c", "3")); m.Clear(); m.Append(user("a", "9")) }, "a=9"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, sc := bound(t, `{"messages":[{"id":"a","role":"user","content":"1"},{"id":"b","role":"user","content":"2"}]}`)
			test.write(&s.Messages)
			var got []string
			for _, m := range s.Messages.Get() {
				got = append(got, m.ID+"="+m.Content.String())
			}
			assert.Equal(t, test.want, strings.Join(got, " "))
			assert.NoError(t, sc.failure())
		})
	}
}

// document is what a list may be of: values, and what can be changed behind a copy's back.
type document struct {
	Title  string         `json:"title"`
	Rating float64        `json:"rating,omitempty"`
	Labels map[string]any `json:"labels,omitempty"`
	Next   *document      `json:"next,omitempty"`
	Parts  []document     `json:"parts"`
	Pair   [2][]int       `json:"pair,omitzero"`
	Body   []byte         `json:"body,omitempty"`
	When   time.Time      `json:"when,omitzero"`
	Raw    json.RawMessage
	Number json.Number `json:"number,omitempty"`
}

// flat has nothing that can be shared.
type flat struct {
	Name string  `json:"name"`
	Size int64   `json:"size,omitempty"`
	At   [2]bool `json:"at,omitzero"`
}

// counting decodes itself: what it shares is its own affair.
type counting struct{ seen *string }

func (c *counting) UnmarshalJSON(data []byte) error {
	text := string(data)
	c.seen = &text
	return nil
}

// read are fields of every kind over one text.
type read struct {
	Strings   List[string]           `json:"strings"`
	Flats     List[flat]             `json:"flats"`
	Documents List[document]         `json:"documents"`
	Anys      List[any]              `json:"anys"`
	Raws      List[json.RawMessage]  `json:"raws"`
	Counts    List[counting]         `json:"counts"`
	Lists     Topic[[]int64]         `json:"lists"`
	Words     Topic[string]          `json:"words"`
	Map       Map[document]          `json:"map"`
	Numbers   Map[int]               `json:"numbers"`
	Said      Messages               `json:"said"`
	Value     Value[document]        `json:"value"`
	Slice     Value[[]string]        `json:"slice"`
	Any       Value[any]             `json:"any"`
	Pointer   Value[*document]       `json:"pointer"`
	Custom    Value[counting]        `json:"custom"`
	RawValue  Value[json.RawMessage] `json:"raw_value"`
	Reduced   Reduced[[]any, newest] `json:"reduced"`
}

type newest struct{}

func (newest) Name() string { return "newest/v1" }

func (newest) Reduce(a, b []any) ([]any, error) { return b, nil }

// all returns what the fields hand out, by name.
func (r *read) all() map[string]any {
	return map[string]any{
		"strings": r.Strings.Get(), "flats": r.Flats.Get(), "documents": r.Documents.Get(), "anys": r.Anys.Get(), "raws": r.Raws.Get(),
		"counts": r.Counts.Get(), "lists": r.Lists.Get(), "words": r.Words.Get(), "map": r.Map.Get(), "numbers": r.Numbers.Get(),
		"said": r.Said.Get(), "value": r.Value.Get(), "slice": r.Slice.Get(), "any": r.Any.Get(), "pointer": r.Pointer.Get(),
		"custom": r.Custom.Get(), "raw_value": r.RawValue.Get(), "reduced": r.Reduced.Get(),
	}
}

// spoil changes everything that can be changed through v.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spoil(v.Index(i))
			if v.Index(i).CanSet() {
				v.Index(i).SetZero()
			}
		}
		if v.Kind() == reflect.Slice && v.Len() < v.Cap() {
			spoil(v.Slice(v.Len(), v.Cap())) // what an append writes to
		}
	case reflect.Map:
		if v.IsNil() {
			return
		}
		for _, k := range v.MapKeys() {
			spoil(v.MapIndex(k))
			v.SetMapIndex(k, reflect.Zero(v.Type().Elem()))
		}
		v.SetMapIndex(reflect.ValueOf("spoilt").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i))
				if v.Field(i).CanSet() {
					v.Field(i).SetZero()
				}
			}
		}
	}
}

// element is a JSON value that lists are made of.
func element(r *rand.Rand) string {
	long := strings.Repeat("lang <&> ü ", r.IntN(40))
	return []string{
		fmt.Sprintf(`%q`, long), `null`, `12`, `9007199254740993`, `-0.5e3`, `[1,2,3]`, `[]`, `{}`, `""`, `true`,
		fmt.Sprintf(`{"title":%q,"labels":{"a":[1,{"b":null}],"c":"d"},"parts":null,"unknown":7}`, long),
		fmt.Sprintf(`{"title":"t","next":{"title":%q,"parts":[]},"pair":[[1],null],"body":"AAEC","when":"2026-01-02T03:04:05Z","Raw":[1]}`, long),
		fmt.Sprintf(`{"TITLE":"case","parts":[{"title":%q,"parts":[]}],"number":1e400}`, long),
		fmt.Sprintf(`{"name":%q,"size":9,"at":[true]}`, long),
		fmt.Sprintf(`{"id":"%d","role":"user","content":%q,"extra":{"a":1}}`, r.IntN(99), long),
		`{"id":"x","role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"id":"y","role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"u":1}}]}`, `"\ud800"`, `"\u00e4\n"`,
	}[r.IntN(19)]
}

// text makes a text to read next from the one read before: mostly one that goes on where that ended.
func text(r *rand.Rand, before, kind string) string {
	one := kind
	if one == "" {
		one = element(r)
	}
	switch {
	case r.IntN(12) == 0:
		return element(r)
	case r.IntN(12) == 0:
		return `{"a":` + one + `,"b":` + element(r) + `}`
	case r.IntN(12) == 0:
		return strings.Replace(before, "a", "e", 1)
	case r.IntN(12) == 0 && len(before) > 2:
		return before[:len(before)-1] + []string{",]", ",,1]", ",1", "1]", ", \n" + one + " ]", "]]"}[r.IntN(6)]
	case strings.HasPrefix(before, "[") && len(before) > 2:
		return before[:len(before)-1] + "," + one + "]"
	}
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", 1+r.IntN(30)), ",") + "]"
}

// TestKeptIsAsDecoded: what tasks read from what others of their driver have decoded is what JSON decodes into, error for
// error, however the value came to be; and nobody who changes what he reads changes it for anybody else.
func TestKeptIsAsDecoded(t *testing.T) {
	kinds := []string{"", `"a plain string of some length"`, `{"name":"flat","size":3}`, `[1,2]`, `{"id":"m","role":"user","content":"hello","a":{"b":1}}`}
	reads := 0
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		kept, kind, raw := &sync.Map{}, kinds[seed%uint64(len(kinds))], "["
		for range 40 {
			if raw = text(r, raw, kind); r.IntN(8) == 0 {
				raw += "" // read again
			}
			values := map[string]pregel.Held{}
			for _, f := range schemaFor[read]().fields {
				values[f.name] = pregel.Hold(pregel.Value(raw))
			}
			var mine, plain read
			sc, without := newScope("g", "n"), newScope("g", "n")
			sc.decoded = kept
			schemaFor[read]().bind(&mine, sc, values)
			schemaFor[read]().bind(&plain, without, values)
			want := plain.all()
			for range 2 { // copies of a state share what they read
				require.Equal(t, want, mine.all(), "seed %d, %s", seed, raw)
			}
			require.Equal(t, without.failure(), sc.failure())
			for _, v := range mine.all() {
				spoil(reflect.ValueOf(&v).Elem())
			}
			reads++
		}
	}
	require.Equal(t, 400, reads)
}

// TestWhatIsKept: a list that grows is decoded once, and what decodes itself is decoded for each task.
func TestWhatIsKept(t *testing.T) {
	kept := &sync.Map{}
	raw := `["` + strings.Repeat("x", jsonfit.MinKept) + `"]`
	bind := func() (out read) {
		sc := newScope("g", "n")
		sc.decoded = kept
		schemaFor[read]().bind(&out, sc, pregel.HoldAll(map[string]pregel.Value{"strings": pregel.Value(raw), "counts": pregel.Value(raw), "custom": pregel.Value(raw)}))
		return out
	}
	first := bind()
	one := first.Strings.read.get()
	raw = raw[:len(raw)-1] + `,"y"]`
	second := bind()
	two := second.Strings.read.get()
	require.Len(t, two, 2)
	require.Equal(t, one[0], two[0])
	third := bind()
	require.Same(t, &two[0], &third.Strings.read.get()[0], "the list was decoded anew")
	require.Equal(t, []string{two[0]}, first.Strings.Get(), "who read before sees what was added")
	second.Counts.Get()
	second.Custom.Get()
	_, ok := kept.Load(decodedField{"g", "counts", reflect.TypeFor[[]counting]()})
	require.False(t, ok)
	_, ok = kept.Load(decodedField{"g", "custom", reflect.TypeFor[counting]()})
	require.False(t, ok)
}

// TestATextIsNotJoined: a JSON text that a node keeps as it is, of a list that has grown, is the text of the whole list.
func TestATextIsNotJoined(t *testing.T) {
	type texts struct {
		Value     Value[json.RawMessage]     `json:"value"`
		Ephemeral Ephemeral[json.RawMessage] `json:"ephemeral"`
		Untracked Untracked[json.RawMessage] `json:"untracked"`
		Any       AnyValue[json.RawMessage]  `json:"any"`
	}
	kept := &sync.Map{}
	read := func(raw string) map[string]string {
		sc := newScope("g", "n")
		sc.decoded = kept
		var s texts
		schemaFor[texts]().bind(&s, sc, pregel.HoldAll(map[string]pregel.Value{"value": pregel.Value(raw), "ephemeral": pregel.Value(raw),
			"untracked": pregel.Value(raw), "any": pregel.Value(raw)}))
		out := map[string]string{"value": string(s.Value.Get()), "ephemeral": string(s.Ephemeral.Get()), "untracked": string(s.Untracked.Get()),
			"any": string(s.Any.Get())}
		require.NoError(t, sc.failure())
		return out
	}
	long := `["` + strings.Repeat("x", jsonfit.MinKept) + `"`
	read(long + `]`)
	grown := long + `,"b"]`
	require.Equal(t, map[string]string{"value": grown, "ephemeral": grown, "untracked": grown, "any": grown}, read(grown))
}
