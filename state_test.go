package superstep

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/message"
	"superstep.dev/thread"
)

type common struct {
	Trace List[string] `json:"trace"`
}

type Shared struct {
	common
	Owner Value[string] `json:"owner,omitzero"`
}

func TestSchemasFollowTheStruct(t *testing.T) {
	type state struct {
		Shared
		Named   Value[int64] `json:"named"`
		NoTag   Sum[int]
		Options Value[string]            `json:",omitzero"`
		Kept    Topic[int]               `json:"kept" superstep:"accumulate"`
		Loose   Ephemeral[int]           `json:"loose" superstep:"unguarded"`
		Scratch Untracked[int]           `json:"scratch" superstep:"unguarded"`
		Same    AnyValue[int]            `json:"same"`
		Best    Reduced[string, longest] `json:"best"`
		Talk    Messages                 `json:"talk"`
		ByKey   Map[bool]                `json:"by_key"`
		Left    int                      `json:"-"`
		hidden  int
	}
	s := schemaFor[state]()
	_ = state{}.hidden
	assert.Empty(t, s.problems)
	var specs []pregel.ChannelSpec
	for _, f := range s.fields {
		specs = append(specs, f.spec)
	}
	assert.Equal(t, []pregel.ChannelSpec{
		{Name: "trace", Kind: pregel.KindReduce, Reducer: "append/v1"},
		{Name: "owner", Kind: pregel.KindLast},
		{Name: "named", Kind: pregel.KindLast},
		{Name: "NoTag", Kind: pregel.KindReduce, Reducer: "sum/v1"},
		{Name: "Options", Kind: pregel.KindLast},
		{Name: "kept", Kind: pregel.KindTopic, Accumulate: true},
		{Name: "loose", Kind: pregel.KindEphemeral, Unguarded: true},
		{Name: "scratch", Kind: pregel.KindUntracked, Unguarded: true},
		{Name: "same", Kind: pregel.KindAny},
		{Name: "best", Kind: pregel.KindReduce, Reducer: "test.longest/v1"},
		{Name: "talk", Kind: pregel.KindReduce, Reducer: "messages/v1"},
		{Name: "by_key", Kind: pregel.KindReduce, Reducer: "merge/v1"},
	}, specs)

	var v state
	s.bind(&v, newScope("g", "n"), pregel.HoldAll(map[string]pregel.Value{"trace": pregel.Value(`["a"]`), "owner": pregel.Value(`"ann"`)}))
	assert.Equal(t, []string{"a"}, v.Trace.Get(), "a field of an embedded struct")
	assert.Equal(t, "ann", v.Owner.Get())
	v.Trace.Append("b")
	writes, err := s.collect(&v, newScope("g", "n"))
	require.NoError(t, err)
	assert.Equal(t, []pregel.Write{{Channel: "trace", Value: pregel.Value(`["b"]`)}}, writes)
}

type unversioned struct{}

func (unversioned) Name() string { return "longest" }

func (unversioned) Reduce(a, _ string) (string, error) { return a, nil }

type taken struct{ unversioned }

func (taken) Name() string { return "append/v1" }

func TestSchemasSayWhatIsWrongWithTheStruct(t *testing.T) {
	tests := map[string]struct {
		state any
		want  []string
	}{
		"not a struct":     {5, []string{`int is not a struct whose fields are channels, such as superstep.Value[int64]`}},
		"a channel itself": {Value[int]{}, []string{`superstep.Value[int] is not a struct whose fields are channels, such as superstep.Value[int64]`}},
		"a plain field": {struct{ Amount int64 }{}, []string{
			`.Amount is a plain int64: declare it as superstep.Value[int64]`}},
		"a plain list": {struct{ Log []string }{}, []string{
			`.Log is a plain []string: declare it as superstep.Value[[]string], or superstep.List[string] if nodes append to it`}},
		"bytes":             {struct{ B []byte }{}, []string{`.B is a plain []uint8: declare it as superstep.Value[[]uint8]`}},
		"a channel pointer": {struct{ A *Value[int] }{}, []string{`.A is a pointer to a channel: declare it as superstep.Value[int]`}},
		"an embedded pointer": {struct{ *Shared }{}, []string{
			`.Shared is an embedded pointer: embed superstep.Shared itself, a pointer would be shared between copies of the state`}},
		"the same name twice": {struct {
			A Value[int] `json:"B"`
			B Value[int]
		}{}, []string{`.A and `, `.B both have the channel name "B": give one another json tag`}},
		"the same name in an embedded struct": {struct {
			Shared
			Owner Value[int] `json:"owner"`
		}{}, []string{`.Shared.Owner and `, `both have the channel name "owner"`}},
		"a reserved name": {struct {
			A Value[int] `json:"__start__"`
		}{}, []string{`the channel name "__start__" is reserved`}},
		"an unknown option": {struct {
			A Topic[int] `superstep:"acumulate"`
		}{}, []string{`unknown word "acumulate": there are accumulate and unguarded`}},
		"an option of others": {struct {
			A Value[int]     `superstep:"accumulate"`
			B List[int]      `superstep:"unguarded"`
			C Topic[int]     `superstep:"unguarded"`
			D Value[int]     `superstep:"unguarded"`
			E Ephemeral[int] `superstep:"accumulate"`
		}{}, []string{`.A: the tag superstep:"accumulate"`, `.B: the tag superstep:"unguarded"`, `.C: the tag`, `.D: the tag`, `.E: the tag`}},
		"a reducer without a version": {struct {
			A Reduced[string, unversioned]
		}{}, []string{`the reducer superstep.unversioned has the name "longest": it needs a version, such as "longest/v1"`}},
		"a reducer with the engine's name": {struct {
			A Reduced[string, taken]
		}{}, []string{`has the name "append/v1", which is one of the engine's own`}},
		"several at once": {struct {
			A int
			B string
		}{}, []string{".A is a plain int", ".B is a plain string"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			problems := schemaOf(reflect.TypeOf(test.state)).problems
			require.NotEmpty(t, problems)
			all := ""
			for _, p := range problems {
				all += p + "\n"
			}
			for _, want := range test.want {
				assert.Contains(t, all, want)
			}
		})
	}
}

func TestCopiesOfAStateDoNotSeeEachOthersWrites(t *testing.T) {
	s, _ := bound(t, `{"list":["a"]}`)
	s.List.Append("b")
	left, right := s, s
	left.List.Append("left")
	left.Value.Set(1)
	right.List.Append("right")
	right.Value.Set(2)
	assert.Equal(t, []string{"a", "b"}, s.List.Get())
	assert.Equal(t, []string{"a", "b", "left"}, left.List.Get())
	assert.Equal(t, []string{"a", "b", "right"}, right.List.Get())
	assert.False(t, s.Value.IsSet())
	assert.Equal(t, int64(1), left.Value.Get())
	assert.Equal(t, int64(2), right.Value.Get())
}

func TestWhatGetReturnsBelongsToTheCaller(t *testing.T) {
	s, _ := bound(t, `{"list":["a","b"],"map":{"k":1},"topic":[1],"messages":[{"id":"m","role":"user","content":"hi"}]}`)
	s.List.Get()[0] = "changed"
	_ = append(s.List.Get()[:1], "changed")
	s.Map.Get()["k"] = 99
	s.Topic.Get()[0] = 99
	s.Messages.Get()[0].Role = "changed"
	assert.Equal(t, []string{"a", "b"}, s.List.Get())
	assert.Equal(t, map[string]int{"k": 1}, s.Map.Get())
	assert.Equal(t, []int{1}, s.Topic.Get())
	assert.Equal(t, "user: hi", s.Messages.String())
}

func TestAppendedAndOverwrittenSlicesAreCopied(t *testing.T) {
	var s allChannels
	in := []string{"a"}
	s.List.Append(in...)
	in[0] = "changed"
	assert.Equal(t, []string{"a"}, s.List.Get())
	m := map[string]int{"k": 1}
	s.Map.Overwrite(m)
	m["k"] = 2
	assert.Equal(t, map[string]int{"k": 1}, s.Map.Get())
}

func TestTasksThatReadTheSameStateShareNothing(t *testing.T) {
	raw := map[string]pregel.Value{
		"order": pregel.Value(`{"id":"o","items":["a","b"]}`), "list": pregel.Value(`["a"]`), "items": pregel.Value(`["x"]`),
	}
	var states [8]allChannels
	for i := range states {
		schemaFor[allChannels]().bind(&states[i], newScope("g", "n"), pregel.HoldAll(raw))
	}
	var wg sync.WaitGroup
	for i := range states {
		wg.Go(func() {
			s := states[i]
			s.Order.Get().Items[0] = fmt.Sprint("changed by ", i)
			s.List.Append("b")
			s.Items.Write([]string{"y"})
			assert.Equal(t, []string{"a", "b"}, s.List.Get())
			assert.Equal(t, []string{"x", "y"}, s.Items.Get())
		})
	}
	wg.Wait()
	var fresh allChannels
	schemaFor[allChannels]().bind(&fresh, newScope("g", "n"), pregel.HoldAll(raw))
	assert.Equal(t, []string{"a", "b"}, fresh.Order.Get().Items)
	assert.Equal(t, `{"id":"o","items":["a","b"]}`, string(raw["order"]))
}

func TestGoroutinesOfOneNodeMayRead(t *testing.T) {
	s, sc := bound(t, `{"list":["a"],"order":{"id":"o"},"longest":"x","value":"wrong"}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			assert.Equal(t, []string{"a"}, s.List.Get())
			assert.Equal(t, "o", s.Order.Get().ID)
			assert.Zero(t, s.Value.Get())
		})
	}
	wg.Wait()
	assert.Error(t, sc.failure())
}

type refundInput struct {
	OrderID Value[string]            `json:"order_id"`
	Amount  Value[int64]             `json:"amount"`
	Order   Value[order]             `json:"order"`
	Note    Value[*string]           `json:"note"`
	When    Value[time.Time]         `json:"when"`
	Small   Value[uint8]             `json:"small"`
	Raw     Value[json.RawMessage]   `json:"raw"`
	Log     List[string]             `json:"log"`
	Total   Sum[int64]               `json:"total"`
	Tags    Map[int]                 `json:"tags"`
	Talk    Messages                 `json:"talk"`
	Inbox   Topic[int]               `json:"inbox"`
	Best    Reduced[string, longest] `json:"best"`
}

func checkRefund() func(pregel.Value) error {
	return inputCheck("refund", schemaFor[refundInput]().fields)
}

func TestInputThatFitsIsAccepted(t *testing.T) {
	for _, in := range []string{
		`{}`,
		` { "order_id" : "o-7" } `,
		`{"amount":9223372036854775807,"order":{"id":"o","items":["a"]},"note":null,"small":255}`,
		`{"note":"n","when":"2026-01-02T03:04:05Z","raw":{"any":[1]},"log":["a"]}`,
		`{"log":[],"total":-5,"tags":{"a":1},"inbox":[1,2],"best":"x"}`,
		`{"talk":[{"role":"user","content":"hi"},{"role":"remove","id":"m"},{"role":"user","content":[{"type":"text","text":"x"}],"extra":1}]}`,
	} {
		assert.NoError(t, checkRefund()([]byte(in)), in)
	}
}

func TestInputThatDoesNotFitNamesTheField(t *testing.T) {
	tests := map[string]string{
		``:                                       `expected a JSON object, found nothing`,
		`5`:                                      `expected a JSON object, found the number 5`,
		`"{}"`:                                   `expected a JSON object, found the string "{}"`,
		`null`:                                   `expected a JSON object, found null`,
		`[{}]`:                                   `expected a JSON object, found the list [{}]`,
		`{`:                                      `it is not JSON: unexpected end of JSON input`,
		`{"amount":1`:                            `it is not JSON: unexpected end of JSON input`,
		`{"amount":}`:                            `it is not JSON: invalid character '}'`,
		`{5:1}`:                                  `it is not JSON: `,
		`{} {}`:                                  `invalid character '{' after top-level value`,
		`{"ordr_id":"o"}`:                        `unknown field "ordr_id": did you mean "order_id"?`,
		`{"Amount":1}`:                           `unknown field "Amount": did you mean "amount"?`,
		`{"zzzzzzzz":1}`:                         `unknown field "zzzzzzzz": there is "amount", "best", "inbox", "log", "note", "order", "order_id", "raw" and 5 more`,
		`{"amount":1,"amount":2}`:                `field "amount" is given twice`,
		`{"amount":"250"}`:                       `field "amount": expected int64, found a string`,
		`{"amount":1.5}`:                         `field "amount": expected int64, found the number 1.5`,
		`{"amount":9223372036854775808}`:         `field "amount": expected int64, found the number 9223372036854775808`,
		`{"amount":null}`:                        `field "amount": expected int64, found null`,
		`{"small":256}`:                          `field "small": expected uint8, found the number 256`,
		`{"order":{"id":7}}`:                     `field "order.id": expected string, found a number`,
		`{"order":{"idd":"x"}}`:                  `field "order": it does not fit superstep.order: unknown field "idd"`,
		`{"order":[]}`:                           `field "order": expected superstep.order, found an array`,
		`{"order":null}`:                         `field "order": expected superstep.order, found null`,
		`{"when":"yesterday"}`:                   `field "when": it does not fit time.Time: parsing time`,
		`{"log":"a"}`:                            `field "log": expected []string, found the string "a"`,
		`{"log":null}`:                           `field "log": expected []string, found null`,
		`{"log":[1]}`:                            `expected string, found a number`,
		`{"total":"5"}`:                          `field "total": expected int64, found the string "5"`,
		`{"tags":[]}`:                            `field "tags": expected map[string]int, found the list []`,
		`{"inbox":1}`:                            `field "inbox": expected []int, found the number 1`,
		`{"talk":{"role":"user"}}`:               `field "talk": expected a list of messages with role and content, found the object`,
		`{"talk":[{"content":"x"}]}`:             `field "talk.0": the message needs a role, such as "user"`,
		`{"talk":["hi"]}`:                        `field "talk.0": expected a message with role and content, found the string "hi"`,
		`{"talk":[{"role":"user","content":1}]}`: `field "talk.0": it is not a message: a message's content is a string or a list of parts`,
		`{"amount":"x","log":5}`:                 `field "amount": expected int64, found a string; field "log": expected []string, found the number 5`,
		`{"log":"` + strings.Repeat("y", 200) + `"}`: `found the string "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…`,
	}
	for in, want := range tests {
		t.Run(in, func(t *testing.T) {
			err := checkRefund()([]byte(in))
			require.ErrorIs(t, err, thread.ErrBadInput)
			assert.ErrorContains(t, err, `bad input for graph "refund": `)
			assert.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestInputsOfManyKindsEncode(t *testing.T) {
	var state refundInput
	state.Amount.Set(250)
	state.Log.Append("a")
	state.Log.Append("b")
	state.Total.Add(2)
	state.Total.Add(3)
	state.Tags.Put("x", 1)
	state.Tags.Put("y", 2)
	state.Best.Write("ab")
	state.Best.Write("a")
	state.Inbox.Publish(1)
	state.Talk.Append(message.Message{ID: "m", Role: message.RoleUser, Content: message.Text("hi")})
	state.Talk.Remove("old")
	written := `{"amount":250,"log":["a","b"],"total":5,"tags":{"x":1,"y":2},` +
		`"talk":[{"id":"m","role":"user","content":"hi"},{"id":"old","role":"remove"}],"inbox":[1],"best":"ab"}`
	tests := map[string]struct {
		in   any
		want string
	}{
		"nothing":   {nil, ""},
		"JSON text": {json.RawMessage(`{"amount":1}`), `{"amount":1}`},
		"bytes":     {[]byte(`{"amount":1}`), `{"amount":1}`},
		"a map":     {map[string]any{"amount": 1}, `{"amount":1}`},
		"a plain struct": {struct {
			Amount int64 `json:"amount"`
		}{1}, `{"amount":1}`},
		"a state":           {state, written},
		"a state's address": {&state, written},
		"an empty state":    {refundInput{}, `{}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := encodeInput("refund", test.in)
			require.NoError(t, err)
			assert.Equal(t, test.want, string(raw))
			if raw != nil {
				assert.NoError(t, checkRefund()(raw))
			}
		})
	}
}

func TestInputsThatCannotBeExpressedAreRefused(t *testing.T) {
	var overwritten refundInput
	overwritten.Log.Overwrite([]string{"a"})
	_, err := encodeInput("refund", overwritten)
	require.ErrorIs(t, err, thread.ErrBadInput)
	assert.ErrorContains(t, err, `field "log": input cannot overwrite`)

	_, err = encodeInput("refund", map[string]any{"f": func() {}})
	assert.ErrorIs(t, err, thread.ErrBadInput)
}

// FuzzInput holds the input check to its promises: it never panics, refuses in one line of one kind, and what it
// accepts can be read by every node without an error.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"amount":1}`, `{"amount":"x"}`, `{"order":{"id":"o","items":["a"]}}`, `{"log":["a"],"total":2,"tags":{"k":1}}`,
		`{"talk":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, `{"amount":1,"amount":2}`, `{"when":"2026-01-02T03:04:05Z"}`,
		`{"raw":{"a":[1,2,{"b":null}]},"note":null}`, `[`, `{"\u0000":1}`, `{"amount":1e400}`, `{"inbox":[1]} `,
	} {
		f.Add([]byte(seed))
	}
	check, s := checkRefund(), schemaFor[refundInput]()
	f.Fuzz(func(t *testing.T, in []byte) {
		err := check(in)
		if err != nil {
			var refused *thread.Error
			if !errors.As(err, &refused) || !errors.Is(err, thread.ErrBadInput) {
				t.Fatalf("%q is refused with %T", in, err)
			}
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q is refused in several lines: %q", in, err)
			}
			return
		}
		var values map[string]pregel.Value
		if err := json.Unmarshal(in, &values); err != nil {
			t.Fatalf("%q is accepted but is no object: %v", in, err)
		}
		sc := newScope("g", "n")
		var state refundInput
		s.bind(&state, sc, pregel.HoldAll(values))
		s.load(&state)
		if err := sc.failure(); err != nil {
			t.Fatalf("%q is accepted but a node cannot read it: %v", in, err)
		}
	})
}
