package superstep

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

type decision struct {
	Approved bool   `json:"approved"`
	Limit    int64  `json:"limit,omitempty"`
	Note     string `json:"note,omitempty"`
}

// asking is a graph whose node asks for an A and logs it.
func asking[A any](t *testing.T, opts ...QuestionOption) *Thread[refundState] {
	t.Helper()
	return oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		a, err := Interrupt[A](ctx, map[string]any{"ask": "Refund?", "amount": s.Amount.Get()}, opts...)
		if err != nil {
			return s, err
		}
		s.Log.Append(fmt.Sprintf("%+v", a))
		return s, nil
	}).Thread(NewMemory(), "t")
}

// TestInterruptAsksAndIsAnswered: a question carries the schema of its answer's type. A wrong answer is refused, and the
// question stays open under its id: the run does not fail, as LangGraph's does.
func TestInterruptAsksAndIsAnswered(t *testing.T) {
	thread := asking[decision](t)
	got, err := thread.Invoke(t.Context(), amount(250))
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	q := got.Questions[0]
	assert.JSONEq(t, `{"ask":"Refund?","amount":250}`, string(q.Value))
	assert.JSONEq(t, `{"type":"object","required":["approved"],"additionalProperties":false,"properties":{
		"approved":{"type":"boolean"},"limit":{"type":"integer"},"note":{"type":"string"}}}`, string(q.Schema))
	for _, bad := range []any{true, map[string]any{}, map[string]any{"approved": true, "typo": 1}, decision{}.Note} {
		_, err = thread.Resume(t.Context(), bad)
		assert.ErrorIs(t, err, ErrBadInput, "%v", bad)
	}
	state, err := thread.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, StatusWaiting, state.Status)
	require.Len(t, state.Questions, 1)
	assert.Equal(t, q, state.Questions[0])
	got, err = thread.Resume(t.Context(), decision{Approved: true, Limit: 9007199254740993})
	require.NoError(t, err)
	assert.Equal(t, []string{"{Approved:true Limit:9007199254740993 Note:}"}, got.Output.Log.Get())
}

func TestInterruptWithASchemaOfItsOwn(t *testing.T) {
	thread := asking[string](t, WithAnswerSchema(`{"enum":["approve","reject"]}`), WithKey("decide"))
	_, err := thread.Invoke(t.Context(), amount(250))
	require.NoError(t, err)
	_, err = thread.Resume(t.Context(), "maybe")
	require.ErrorIs(t, err, ErrBadInput)
	got, err := thread.Resume(t.Context(), "reject")
	require.NoError(t, err)
	assert.Equal(t, []string{"reject"}, got.Output.Log.Get())
}

func TestInterruptKeepsIntegersInAny(t *testing.T) {
	thread := asking[any](t)
	_, err := thread.Invoke(t.Context(), amount(250))
	require.NoError(t, err)
	got, err := thread.Resume(t.Context(), map[string]any{"n": int64(9007199254740993)})
	require.NoError(t, err)
	assert.Equal(t, []string{"map[n:9007199254740993]"}, got.Output.Log.Get())
}

func TestTwoQuestionsInOneNode(t *testing.T) {
	graph := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		ask := func(name string) func(context.Context) (string, error) {
			return func(ctx context.Context) (string, error) { return Interrupt[string](ctx, name) }
		}
		a, b := Go(ctx, "ask", ask("first")), Go(ctx, "ask", ask("second"))
		first, errA := a.Get(ctx)
		second, errB := b.Get(ctx)
		if errA != nil || errB != nil {
			return s, ErrInterrupted
		}
		s.Log.Append(first, second)
		return s, nil
	})
	thread := graph.Thread(NewMemory(), "t")
	got, err := thread.Invoke(t.Context(), amount(1))
	require.NoError(t, err)
	require.Len(t, got.Questions, 2)
	answers := map[string]any{}
	for _, q := range got.Questions {
		var name string
		require.NoError(t, json.Unmarshal(q.Value, &name))
		answers[q.ID] = "answer to " + name
	}
	got, err = thread.ResumeByID(t.Context(), answers)
	require.NoError(t, err)
	assert.Equal(t, []string{"answer to first", "answer to second"}, got.Output.Log.Get())
}

func TestInterruptMistakes(t *testing.T) {
	_, err := Interrupt[bool](t.Context(), "?")
	assert.ErrorIs(t, err, ErrOutsideNode)
	for name, c := range map[string]struct {
		ask  func(context.Context) error
		want string
	}{
		"question": {func(ctx context.Context) error { _, err := Interrupt[bool](ctx, func() {}); return err }, "does not encode"},
		"type":     {func(ctx context.Context) error { _, err := Interrupt[chan int](ctx, 1); return err }, "WithAnswerSchema"},
		"schema":   {func(ctx context.Context) error { _, err := Interrupt[int](ctx, 1, WithAnswerSchema("{")); return err }, "no usable JSON schema"},
		"key":      {func(ctx context.Context) error { _, err := Interrupt[int](ctx, 1, WithKey("")); return err }, "WithKey needs a key"},
	} {
		var got error
		_, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
			got = c.ask(ctx)
			return s, nil
		}).Invoke(t.Context(), amount(1))
		require.NoError(t, err, name)
		assert.ErrorContains(t, got, c.want)
		assert.True(t, graphadapter.IsPermanent(got), name)
	}
}

// TestAnswerThatGotInOtherwise: the engine was given an answer that nobody checked.
func TestAnswerThatGotInOtherwise(t *testing.T) {
	graph := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		_, err := Interrupt[int8](ctx, "how many?", WithAnswerSchema(`{"type":"integer"}`))
		return s, err
	}).Adapter()
	task := &pregel.Task{Step: 1, Path: "pay", Node: "pay"}
	out, err := taskrun.RunAttempt(t.Context(), graph, task, taskrun.Env{Thread: "r-7"})
	require.NoError(t, err)
	for answer, want := range map[string]string{`300`: "int8"} {
		task.Answers = []pregel.Answer{{QuestionID: out.Questions[0].ID, Value: pregel.Value(answer)}}
		_, err = taskrun.RunAttempt(t.Context(), graph, task, taskrun.Env{Thread: "r-7"})
		var wrong *AnswerError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, want, wrong.Want)
		assert.Equal(t, out.Questions[0].ID, wrong.Question)
		assert.True(t, graphadapter.IsPermanent(err))
		assert.ErrorContains(t, err, `"r-7"`)
	}
}

type celsius struct{ milli int64 } // decodes itself from a string

func (c *celsius) UnmarshalText(b []byte) error { _, err := fmt.Sscan(string(b), &c.milli); return err }

type either struct{ v any } // decodes itself from anything

func (e *either) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &e.v) }

type tree struct{ Children []tree }

func TestAnswerSchemaAcceptsWhatDecodes(t *testing.T) {
	type all struct {
		At      time.Time          `json:"at"`
		Raw     json.RawMessage    `json:"raw"`
		Number  json.Number        `json:"number"`
		Bytes   []byte             `json:"bytes"`
		Temp    celsius            `json:"temp"`
		TempPtr *celsius           `json:"temp_ptr"`
		Either  either             `json:"either"`
		Big     *big.Int           `json:"big"`
		List    []celsius          `json:"list"`
		Map     map[string]either  `json:"map"`
		Channel Value[int64]       `json:"channel"`
		Wait    time.Duration      `json:"wait"`
		Fixed   [2]int             `json:"fixed"`
		Skipped func()             `json:"-"`
		Text    map[string]float64 `json:"text"`
	}
	answer := `{"at":"2026-05-09T10:00:00Z","raw":[1,{}],"number":1.5,"bytes":"aGk=","temp":"12","temp_ptr":null,
		"either":[],"big":123456789012345678901234567890,"list":["1","2"],"map":{"a":1,"b":"x"},"channel":7,"wait":5,
		"fixed":[1,2],"text":{"x":1.25}}`
	var v all
	require.NoError(t, decodeJSON([]byte(answer), &v))
	schema, err := answerSchema(reflect.TypeFor[all]())
	require.NoError(t, err)
	assert.NoError(t, graphadapter.CheckAnswer(pregel.Question{Schema: schema}, pregel.Value(answer)))
	for _, bad := range []string{`{"temp":12}`, `{"number":"1"}`, `{"bytes":[1]}`, `{"fixed":[1]}`} {
		assert.Error(t, graphadapter.CheckAnswer(pregel.Question{Schema: schema}, pregel.Value(bad)), bad)
	}
	again, err := answerSchema(reflect.TypeFor[all]())
	require.NoError(t, err)
	assert.Same(t, &schema[0], &again[0], "worked out once")
	_, err = answerSchema(reflect.TypeFor[tree]())
	assert.ErrorContains(t, err, "WithAnswerSchema")
	var parsed jsonschema.Schema
	assert.NoError(t, json.Unmarshal(schema, &parsed))
}
