package superstep

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

type refund struct {
	Order  string `json:"order"`
	Amount int64  `json:"amount"`
}

type refundReceipt struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

type refundState struct {
	Amount  Value[int64]  `json:"amount"`
	Receipt Value[string] `json:"receipt"`
	Log     List[string]  `json:"log"`
}

// payments is the outside: it keeps refunds by key.
type payments struct {
	calls, lookups int
	fail           error // of the next Do, after it wrote
	byKey          map[string]refundReceipt
}

func newPayments() *payments { return &payments{byKey: map[string]refundReceipt{}} }

func (p *payments) refund(_ context.Context, key string, r refund) (refundReceipt, error) {
	p.calls++
	receipt := refundReceipt{ID: "rf-1", Amount: r.Amount}
	p.byKey[key] = receipt
	err := p.fail
	p.fail = nil
	return receipt, err
}

func (p *payments) find(_ context.Context, key string, _ refund) (Finding[refundReceipt], error) {
	p.lookups++
	if receipt, ok := p.byKey[key]; ok {
		return Finding[refundReceipt]{Status: FindingCommitted, Receipt: receipt}, nil
	}
	return Finding[refundReceipt]{Status: FindingNotFound}, nil
}

func (p *payments) effect() *Effect[refund, refundReceipt] {
	return &Effect[refund, refundReceipt]{
		Name: "payments.refund", Target: TargetKeyed, Do: p.refund, Lookup: p.find,
		Check: func(r refund, receipt refundReceipt) error {
			if r.Amount != receipt.Amount {
				return errors.New("the amount differs")
			}
			return nil
		},
	}
}

// oneNodeGraph is a graph of one node.
func oneNodeGraph(t *testing.T, node func(context.Context, refundState) (refundState, error), effects ...AnyEffect) *Graph[refundState] {
	t.Helper()
	g := NewStateGraph[refundState]("refund")
	g.AddNode("pay", node, WithRetry(RetryPolicy{InitialInterval: -1, NoJitter: true}))
	g.AddEdge(Start, "pay")
	g.AddEffect(effects...)
	graph, err := g.Compile()
	require.NoError(t, err)
	return graph
}

func paying(e *Effect[refund, refundReceipt], opts ...CallOption) func(context.Context, refundState) (refundState, error) {
	return func(ctx context.Context, s refundState) (refundState, error) {
		receipt, err := e.Call(ctx, refund{"o-7", s.Amount.Get()}, opts...)
		if err != nil {
			return s, err
		}
		s.Receipt.Set(receipt.ID)
		return s, nil
	}
}

func amount(n int64) refundState {
	var s refundState
	s.Amount.Set(n)
	return s
}

func TestEffectCallReturnsTheReceipt(t *testing.T) {
	p := newPayments()
	e := p.effect()
	const exact = math.MaxInt64 - 1 // no float64 holds it
	got, err := oneNodeGraph(t, paying(e), e).Invoke(t.Context(), amount(exact))
	require.NoError(t, err)
	assert.Equal(t, "rf-1", got.Output.Receipt.Get())
	assert.Equal(t, 1, p.calls)
	assert.Zero(t, p.lookups)
	for _, receipt := range p.byKey {
		assert.EqualValues(t, exact, receipt.Amount)
	}
}

func TestEffectCallThatFailedAfterTheWriteIsFound(t *testing.T) {
	p := newPayments()
	p.fail = errors.New("connection reset")
	e := p.effect()
	got, err := oneNodeGraph(t, paying(e), e).Invoke(t.Context(), amount(250))
	require.NoError(t, err)
	assert.Equal(t, "rf-1", got.Output.Receipt.Get())
	assert.Equal(t, 1, p.calls, "the retry looked up and did not call")
	assert.Equal(t, 1, p.lookups)
}

func TestEffectCallNamesWhatWentWrong(t *testing.T) {
	declined := errors.New("declined")
	p := newPayments()
	e := p.effect()
	e.Do = func(context.Context, string, refund) (refundReceipt, error) {
		return refundReceipt{}, Permanent(declined)
	}
	var got error
	_, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		_, got = e.Call(ctx, refund{"o-7", 250})
		return s, got
	}, e).Invoke(t.Context(), amount(250))
	require.Error(t, err)
	assert.ErrorIs(t, got, declined)
	assert.ErrorContains(t, got, `effect "payments.refund"`)
	assert.ErrorContains(t, got, `node "pay", graph "refund"`)
}

func TestEffectCallOutsideANode(t *testing.T) {
	_, err := newPayments().effect().Call(t.Context(), refund{})
	assert.ErrorIs(t, err, ErrOutsideNode)
}

func TestEffectCallOfAnUnregisteredEffect(t *testing.T) {
	e := newPayments().effect()
	_, err := oneNodeGraph(t, paying(e)).Invoke(t.Context(), amount(1))
	assert.ErrorContains(t, err, "add it with AddEffect")
}

func TestEffectCallWithAnEmptyKey(t *testing.T) {
	p := newPayments()
	e := p.effect()
	_, err := oneNodeGraph(t, paying(e, WithKey("")), e).Invoke(t.Context(), amount(1))
	assert.ErrorContains(t, err, "WithKey needs a key")
	assert.Zero(t, p.calls)
}

func TestEffectCallOfParametersThatDoNotEncode(t *testing.T) {
	e := &Effect[float64, string]{Name: "x", Target: TargetNone,
		Do: func(context.Context, string, float64) (string, error) { return "", nil }}
	var got error
	_, err := oneNodeGraph(t, func(ctx context.Context, s refundState) (refundState, error) {
		_, got = e.Call(ctx, math.NaN())
		return s, got
	}, e).Invoke(t.Context(), amount(1))
	require.Error(t, err)
	var record *RecordError
	require.ErrorAs(t, got, &record)
	assert.True(t, record.Write)
	assert.Equal(t, "float64", record.Type)
}

func TestEffectDeclarations(t *testing.T) {
	do := func(context.Context, string, int) (int, error) { return 0, nil }
	var none *Effect[int, int]
	for _, c := range []struct {
		effect *Effect[int, int]
		want   string
	}{
		{none, "the effect is nil"},
		{&Effect[int, int]{Target: TargetNone, Do: do}, "has no Name"},
		{&Effect[int, int]{Name: "x", Target: TargetNone}, `effect "x" has no Do`},
		{&Effect[int, int]{Name: "x", Do: do}, "does not say what its Target guarantees"},
		{&Effect[int, int]{Name: "x", Target: "maybe", Do: do}, "does not say what its Target guarantees"},
		{&Effect[int, int]{Name: "x", Target: TargetLookupOnly, Do: do}, "TargetLookupOnly but no Lookup"},
	} {
		g := NewStateGraph[refundState]("refund")
		g.AddNode("pay", func(_ context.Context, s refundState) (refundState, error) { return s, nil })
		g.AddEdge(Start, "pay")
		g.AddEffect(c.effect)
		_, err := g.Compile()
		assert.ErrorContains(t, err, c.want)
		assert.ErrorContains(t, err, "effect_test.go")
	}
}

// TestRegisteredEffectWorksAlone: the form that reconciliation uses after the node is gone.
func TestRegisteredEffectWorksAlone(t *testing.T) {
	p := newPayments()
	var undone refundReceipt
	e := p.effect()
	e.Compensate = func(_ context.Context, _ string, _ refund, receipt refundReceipt) error {
		undone = receipt
		return nil
	}
	raw := oneNodeGraph(t, paying(e), e).Adapter().Effects["payments.refund"]
	params := pregel.Value(`{"order":"o-7","amount":9007199254740993}`)

	found, err := raw.Lookup(t.Context(), "k", params)
	require.NoError(t, err)
	assert.Equal(t, graphadapter.Finding{Status: ledger.FindingNotFound}, found)
	receipt, err := raw.Do(t.Context(), "k", params)
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":"rf-1","amount":9007199254740993}`, string(receipt))
	found, err = raw.Lookup(t.Context(), "k", params)
	require.NoError(t, err)
	assert.Equal(t, graphadapter.Finding{Status: ledger.FindingCommitted, Receipt: receipt}, found)
	require.NoError(t, raw.Check(params, receipt))
	assert.Error(t, raw.Check(params, pregel.Value(`{"id":"rf-1","amount":9007199254740992}`)))
	assert.Error(t, raw.Check(params, pregel.Value(`"rf-1"`)), "a receipt of another type")
	require.NoError(t, raw.Compensate(t.Context(), "k", params, receipt))
	assert.Equal(t, refundReceipt{"rf-1", 9007199254740993}, undone)

	bad := pregel.Value(`{"amount":"many"}`)
	_, err = raw.Do(t.Context(), "k", bad)
	assert.True(t, graphadapter.IsPermanent(err))
	_, err = raw.Lookup(t.Context(), "k", bad)
	assert.Error(t, err)
	assert.Error(t, raw.Compensate(t.Context(), "k", bad, receipt))
}

func TestZeroFindingIsNoAnswer(t *testing.T) {
	p := newPayments()
	e := p.effect()
	e.Lookup = func(context.Context, string, refund) (Finding[refundReceipt], error) {
		return Finding[refundReceipt]{}, nil
	}
	e.Do = func(context.Context, string, refund) (refundReceipt, error) {
		p.calls++
		return refundReceipt{}, errors.New("connection reset")
	}
	got, err := oneNodeGraph(t, paying(e), e).Thread(NewMemory(), "t").Invoke(t.Context(), amount(1))
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	assert.Equal(t, 1, p.calls, "the second attempt asked a person")
	assert.Contains(t, string(got.Questions[0].Value), `"kind":"reconcile"`)
}

func TestAPersonRulesAboutAnEffect(t *testing.T) {
	p := newPayments()
	p.fail = errors.New("connection reset")
	e := p.effect()
	e.Target, e.Lookup = TargetNone, nil
	th := oneNodeGraph(t, paying(e), e).Thread(NewMemory(), "t")
	got, err := th.Invoke(t.Context(), amount(250))
	require.NoError(t, err)
	require.Len(t, got.Questions, 1)
	_, err = th.Resume(t.Context(), "done")
	assert.ErrorIs(t, err, thread.ErrBadInput)
	got, err = th.Resume(t.Context(), map[string]any{"action": "done", "receipt": refundReceipt{"rf-9", 250}})
	require.NoError(t, err)
	assert.Equal(t, "rf-9", got.Output.Receipt.Get())
	assert.Equal(t, 1, p.calls)
}

// A call's bounds come from its options: Do gets a deadline that is the call's, not the default.
func TestCallOptions(t *testing.T) {
	var left time.Duration
	e := &Effect[string, string]{Name: "outside", Target: TargetKeyed,
		Do: func(ctx context.Context, _, _ string) (string, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			left = time.Until(deadline)
			return "done", nil
		}}
	type state struct {
		Done Value[string] `json:"done"`
	}
	g := NewStateGraph[state]("calls")
	g.AddEffect(e)
	g.AddNode("call", func(ctx context.Context, s state) (state, error) {
		done, err := e.Call(ctx, "x", WithCallTimeout(time.Hour), WithSettleTime(-1))
		s.Done.Set(done)
		return s, err
	})
	g.AddEdge(Start, "call")
	result, err := g.MustCompile().Invoke(t.Context(), map[string]any{})
	require.NoError(t, err)
	require.Equal(t, "done", result.Output.Done.Get())
	require.Greater(t, left, graphadapter.DefaultCallTimeout)
	require.LessOrEqual(t, left, time.Hour)

	var o callOptions
	WithSettleTime(time.Minute).applyCall(&o)
	require.Equal(t, time.Minute, o.Settle)
}
