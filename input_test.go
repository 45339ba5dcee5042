package superstep

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/message"
	"superstep.dev/thread"
)

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
		`{`:                                      `it is not JSON: unexpected EOF`,
		`{"amount":1`:                            `it is not JSON: unexpected EOF`,
		`{"amount":}`:                            `it is not JSON: invalid character '}'`,
		`{5:1}`:                                  `it is not JSON: `,
		`{} {}`:                                  `there is something after the JSON object`,
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
		s.bind(&state, sc, values)
		s.load(&state)
		if err := sc.failure(); err != nil {
			t.Fatalf("%q is accepted but a node cannot read it: %v", in, err)
		}
	})
}
