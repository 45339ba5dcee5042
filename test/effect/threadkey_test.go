package effect_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
)

// refunder is a bank that counts the refunds of each order, however often and under whichever key they are made.
type refunder struct {
	mu     sync.Mutex
	orders map[string]int
	keys   map[string]string
	broken int // calls that get no reply, after the money went
}

func newRefunder() *refunder { return &refunder{orders: map[string]int{}, keys: map[string]string{}} }

func (r *refunder) Effect() *superstep.Effect[rig.Transfer, rig.Slip] {
	return &superstep.Effect[rig.Transfer, rig.Slip]{Name: "bank.refund", Target: superstep.TargetLookupOnly, Do: r.do, Lookup: r.find}
}

func (r *refunder) do(_ context.Context, key string, p rig.Transfer) (rig.Slip, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders[p.To]++ // it does not refuse a second call
	r.keys[key] = fmt.Sprintf("rf-%s-%d", p.To, r.orders[p.To])
	if r.broken > 0 {
		r.broken--
		return rig.Slip{}, errors.New("no reply")
	}
	return rig.Slip{ID: r.keys[key]}, nil
}

func (r *refunder) find(_ context.Context, key string, _ rig.Transfer) (superstep.Finding[rig.Slip], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok := r.keys[key]; ok {
		return superstep.Finding[rig.Slip]{Status: superstep.FindingCommitted, Receipt: rig.Slip{ID: id}}, nil
	}
	return superstep.Finding[rig.Slip]{Status: superstep.FindingNotFound}, nil
}

func (r *refunder) loseReplies(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = n
}

func (r *refunder) made(order string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.orders[order]
}

// refundingAgent loops: each round two nodes at once refund the order of the state, then the loop goes round again.
func refundingAgent(refund *superstep.Effect[rig.Transfer, rig.Slip], rounds int64) *superstep.Graph[rig.Counter] {
	pay := func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		order := superstep.Info(ctx).Thread
		receipt, err := refund.Call(ctx, rig.Transfer{To: order, Amount: 250}, superstep.WithThreadKey("order/"+order),
			superstep.WithSettleTime(-1))
		if err != nil {
			return s, err
		}
		s.Log.Append(receipt.ID)
		return s, nil
	}
	g := superstep.NewStateGraph[rig.Counter]("agent")
	g.AddEffect(refund)
	g.AddNode("think", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.N.Set(s.N.Get() + 1)
		return s, nil
	})
	retry := superstep.WithRetry(superstep.RetryPolicy{InitialInterval: -1, NoJitter: true})
	g.AddNode("refund", pay, retry)
	g.AddNode("apologise", pay, retry)
	g.AddEdge(superstep.Start, "think")
	g.AddEdge("refund", "think")
	g.AddConditionalEdges("think", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
		if s.N.Get() > rounds {
			return superstep.To(superstep.End), nil
		}
		return superstep.To("refund", "apologise"), nil
	})
	return g.MustCompile()
}

// TestAnAgentThatLoopsRefundsOnce: in parallel tasks, round by round, after a reply that got lost, from an earlier
// checkpoint and in later runs. A fork is another thread, with another order.
func TestAnAgentThatLoopsRefundsOnce(t *testing.T) {
	bank := newRefunder()
	agent := refundingAgent(bank.Effect(), 3)
	rig.OnRuntimes(t, agent, func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		order := th.ID()
		bank.loseReplies(1)
		once := func(when string) {
			t.Helper()
			assert.Equal(t, 1, bank.made(order), "refunds %s", when)
			for _, id := range rig.LogOf(t, th) {
				assert.Equal(t, "rf-"+order+"-1", id, when)
			}
		}
		rig.Invoke(t, th, rig.Counter{})
		assert.Len(t, rig.LogOf(t, th), 6)
		once("in the loop")
		past := rig.AtStep(t, th, 1) // before the first refund
		_, err := th.Invoke(t.Context(), nil, superstep.FromCheckpoint(past.Checkpoint))
		require.NoError(t, err)
		once("from an earlier checkpoint")
		var again rig.Counter
		again.N.Set(1)
		rig.Invoke(t, th, again)
		once("in a later run")
		view, err := th.Effects(t.Context())
		require.NoError(t, err)
		if assert.Len(t, view.Effects, 1) {
			assert.Equal(t, "committed", view.Effects[0].State)
		}
		fork, err := th.Fork(t.Context(), past.Checkpoint, graphtest.ThreadID(t)+"-fork")
		require.NoError(t, err)
		_, err = fork.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 1, bank.made(fork.ID()))
		once("after the fork")
	})
}

// TestAThreadKeyWithOtherParameters calls nothing, and says where.
func TestAThreadKeyWithOtherParameters(t *testing.T) {
	bank := newRefunder()
	refund := bank.Effect()
	g := superstep.NewStateGraph[rig.Counter]("twice")
	g.AddEffect(refund)
	pay := func(amount int64) func(context.Context, rig.Counter) (rig.Counter, error) {
		return func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
			_, err := refund.Call(ctx, rig.Transfer{To: superstep.Info(ctx).Thread, Amount: amount}, superstep.WithThreadKey("o-7"))
			var conflict *superstep.ConflictError
			if errors.As(err, &conflict) {
				assert.Equal(t, "second", conflict.Node)
			}
			return s, err
		}
	}
	g.AddNode("first", pay(250))
	g.AddNode("second", pay(251))
	g.AddEdge(superstep.Start, "first")
	g.AddEdge("first", "second")
	rig.OnRuntimes(t, g.MustCompile(), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		_, err := th.Invoke(t.Context(), rig.Counter{})
		require.Error(t, err)
		assert.ErrorContains(t, err, "recorded with other parameters")
		assert.ErrorContains(t, err, th.ID())
		assert.Equal(t, 1, bank.made(th.ID()))
	})
}

// TestATaskWithAThreadKey is made once in the thread; the one that comes second waits for its result.
func TestATaskWithAThreadKey(t *testing.T) {
	var calls sync.Map
	ask := func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		f := superstep.Go(ctx, "quote", func(ctx context.Context) (int64, error) {
			n, _ := calls.LoadOrStore(superstep.Info(ctx).Thread, new(int64))
			count := n.(*int64)
			*count++ // nobody else can: one task at a time owns the key
			return *count, nil
		}, superstep.WithThreadKey("quote"))
		n, err := f.Get(ctx)
		if err != nil {
			return s, err
		}
		m, err := superstep.Task(ctx, "quote", func(context.Context) (int64, error) { return -1, nil },
			superstep.WithThreadKey("quote"))
		s.Log.Append(fmt.Sprint(n, m))
		return s, err
	}
	g := superstep.NewStateGraph[rig.Counter]("quotes")
	for _, name := range []string{"a", "b", "c"} {
		g.AddNode(name, ask)
		g.AddEdge(superstep.Start, name)
	}
	rig.OnRuntimes(t, g.MustCompile(), func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		rig.Invoke(t, th, rig.Counter{})
		assert.Equal(t, []string{"1 1", "1 1", "1 1"}, rig.LogOf(t, th))
	})
}
