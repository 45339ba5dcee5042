package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/graphtest"
	"superstep.dev/message"
	"superstep.dev/thread"
)

// till is a payments service that answers at once. It keeps nothing: graphtest does.
type till struct{}

func (till) Order(_ context.Context, id string) (payments.Order, error) {
	amounts := map[string]int64{"o-1042": 25_000, "o-11": 4_200}
	if amounts[id] == 0 {
		return payments.Order{}, payments.ErrNotFound
	}
	return payments.Order{ID: id, Amount: amounts[id], Currency: "EUR", Customer: "Ada Berg"}, nil
}

func (till) Refund(_ context.Context, key string, r payments.Refund) (payments.Receipt, error) {
	return payments.Receipt{ID: "rf-1", OrderID: r.OrderID, Amount: r.Amount, Key: key}, nil
}

var errNotAsked = errors.New("nothing is looked up here")

func (till) FindRefund(context.Context, string) (payments.Receipt, bool, error) {
	return payments.Receipt{}, false, errNotAsked
}

func (till) ReverseRefund(context.Context, string, string) error { return errNotAsked }

func human(text string) map[string]any {
	return map[string]any{"messages": []map[string]any{{"id": "m-1", "role": "user", "content": text}}}
}

// TestChat: what the person wants, is asked and answers, in memory and on Temporal.
func TestChat(t *testing.T) {
	g := Graph(Clerk{}, till{})
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		last := func(r superstep.Result[State]) string {
			said, _ := r.Output.Messages.Last()
			return said.Content.String()
		}
		for wish, want := range map[string]string{
			"What can you do?":    Help,
			"Where is order o-11": "Order o-11 of Ada Berg was paid with 42.00 EUR. Is there anything that you want me to do with it?",
			"Refund order o-9":    "That does not work: there is no order o-9.",
		} {
			r, err := g.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), human(wish))
			require.NoError(t, err)
			require.Equal(t, want, last(r))
		}

		small := g.Thread(rt, graphtest.ThreadID(t))
		r, err := small.Invoke(t.Context(), human("Refund order o-11"))
		require.NoError(t, err)
		require.Equal(t, "Why does order o-11 come back?", r.Questions[0].Text())
		_, err = small.Resume(t.Context(), map[string]any{"reason": "stolen"})
		require.ErrorIs(t, err, thread.ErrBadInput)
		r, err = small.Resume(t.Context(), Reason{Reason: "late", Note: "a week"})
		require.NoError(t, err)
		require.Equal(t, "Done: refunded 42.00: rf-1. The money is on its way, once.", last(r))

		for verdict, want := range map[approval.Verdict]string{
			approval.VerdictApprove: "Done: refunded 250.00: rf-1. The money is on its way, once.",
			approval.VerdictReject:  "The refund was declined: wrong customer. Nothing was paid.",
		} {
			large := g.Thread(rt, graphtest.ThreadID(t))
			_, err = large.Invoke(t.Context(), human("Refund order o-1042"))
			require.NoError(t, err)
			r, err = large.Resume(t.Context(), Reason{Reason: "damaged"})
			require.NoError(t, err)
			require.Equal(t, "Refund 250.00 to order o-1042", r.Questions[0].Approval.Summary)
			proof := superstep.WithToken(graphtest.Token(large.ID(), r.Questions[0], "ann"))
			if verdict == approval.VerdictApprove {
				r, err = large.Approve(t.Context(), r.Questions[0].ID, proof)
			} else {
				r, err = large.Reject(t.Context(), r.Questions[0].ID, proof, superstep.WithReason("wrong customer"))
			}
			require.NoError(t, err)
			require.Equal(t, want, last(r))
		}
	}, g)
}

// The words of a message are those of the whole, and have its id.
func TestWordsAreThoseOfTheMessage(t *testing.T) {
	th := Graph(Clerk{}, till{}).Thread(superstep.NewMemory(), "t-1")
	r, err := th.Invoke(t.Context(), human("What can you do?"))
	require.NoError(t, err)
	said, _ := r.Output.Messages.Last()
	require.Equal(t, Help, said.Content.String())
	require.Equal(t, Help, strings.Join(words(Help), ""))
	var heard []string
	_, err = Clerk{}.Next(t.Context(), r.Output.Messages.Get()[:1], func(words string) error { heard = append(heard, words); return nil })
	require.NoError(t, err)
	require.Equal(t, words(Help), heard)
}

// An answer that is given again is another message: chat pages show it beside the first one.
func TestAnAnswerThatIsGivenAgain(t *testing.T) {
	th := Graph(Clerk{}, till{}).Thread(superstep.NewMemory(), "t-1")
	r, err := th.Invoke(t.Context(), human("What can you do?"))
	require.NoError(t, err)
	first, _ := r.Output.Messages.Last()
	made, err := th.History(t.Context())
	require.NoError(t, err)
	before := slices.IndexFunc(made, func(c thread.CheckpointView) bool { return slices.Equal(c.Next, []string{"model"}) })
	r, err = th.Invoke(t.Context(), nil, superstep.FromCheckpoint(made[before].Checkpoint))
	require.NoError(t, err)
	again, _ := r.Output.Messages.Last()
	require.Equal(t, first.Content, again.Content)
	require.NotEqual(t, first.ID, again.ID)
	require.Len(t, r.Output.Messages.Get(), 2)
}

// mumbler is a model that asks for what there is not.
type mumbler struct{}

func (mumbler) Next(_ context.Context, conversation []message.Message, _ func(string) error) (message.Message, error) {
	m := said("sorry")
	if len(conversation) == 1 {
		m.ToolCalls = []message.ToolCall{{ID: "1", Name: "sell"}, {ID: "2", Name: toolRefund, Arguments: `{"order": "o-11"}`},
			{ID: "3", Name: toolRefund, Arguments: `{"order_id": "o-11", "amount": 0, "reason": ""}`}}
	}
	return m, nil
}

func TestTheModelIsToldItsMistakes(t *testing.T) {
	r, err := Graph(mumbler{}, till{}).Invoke(t.Context(), human("hello"))
	require.NoError(t, err)
	var told []string
	for _, m := range r.Output.Messages.Get() {
		if m.Role == message.RoleTool {
			told = append(told, m.Content.String())
		}
	}
	require.Equal(t, []string{`error: there is no tool "sell"`, `error: the arguments do not fit: json: unknown field "order"`,
		"error: a refund needs an order and an amount above zero"}, told)
}

// TestNoCrashRefundsTwice crashes the worker everywhere.
func TestNoCrashRefundsTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("a run for each point where one can be stopped")
	}
	graphtest.Matrix(t, Graph(Clerk{}, till{}), human("Refund order o-1042"), graphtest.Answer(Reason{Reason: "late"}), graphtest.Answer(approval.VerdictApprove))
}

func TestFromEnv(t *testing.T) {
	g, err := fromEnv("", "0s")
	require.NoError(t, err)
	r, err := g.Invoke(t.Context(), human("What can you do?"))
	require.NoError(t, err)
	require.Len(t, r.Output.Messages.Get(), 2)
	_, err = fromEnv("payments", "")
	require.ErrorContains(t, err, "PAYMENTS_URL")
	for _, pace := range []string{"fast", "-1s", time.Hour.String()} {
		_, err = fromEnv("", pace)
		require.ErrorContains(t, err, "CHAT_PACE")
	}
}
