package thread_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// wild is an agent that never ends by itself: each superstep is two Sends beside each other, each of which spends, and writes
// to the outside. called counts its model calls.
func wild(name string, called *atomic.Int64, bank *rig.Bank, end int64) *superstep.StateGraph[rig.Counter] {
	pay := bank.Effect("payments.wild")
	b := superstep.NewStateGraph[rig.Counter](name)
	b.AddEffect(pay)
	b.AddNode("plan", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.N.Set(s.N.Get() + 1)
		return s, nil
	})
	superstep.AddInputNode(b, "act", func(ctx context.Context, n int64) (superstep.Command[rig.Counter], error) {
		_, err := superstep.Task(ctx, "model", func(ctx context.Context) (int64, error) {
			called.Add(1)
			return n, superstep.Spend(ctx, superstep.Usage{Tokens: 100, MicroUSD: 250_000})
		})
		if err == nil {
			_, err = pay.Call(ctx, rig.Transfer{To: fmt.Sprint("act ", n)})
		}
		return superstep.Command[rig.Counter]{}, err
	})
	b.AddEdge(superstep.Start, "plan")
	b.AddConditionalEdges("plan", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
		if s.N.Get() > end {
			return nil, nil
		}
		return superstep.SendEach("act", []int64{2 * s.N.Get(), 2*s.N.Get() + 1}), nil
	}, "act")
	b.AddEdge("act", "plan")
	return b
}

// never is more turns than a test lets an agent take.
const never = 1000

func budgetOf(t *testing.T, th *superstep.Thread[rig.Counter]) thread.BudgetView {
	t.Helper()
	view, err := th.Show(t.Context())
	require.NoError(t, err)
	require.NotNil(t, view.Budget)
	return *view.Budget
}

// asksForMore is the question for more of a result.
func asksForMore(t *testing.T, got superstep.Result[rig.Counter], err error) thread.Question {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, got.Status)
	require.Len(t, got.Questions, 1)
	require.Equal(t, "budget", got.Questions[0].Node)
	return got.Questions[0]
}

// TestAnAgentThatRunsWildIsStopped within one superstep of its budget, asks for more, goes on with that, and ends when there is
// no more: in every mode, on every runtime.
func TestAnAgentThatRunsWildIsStopped(t *testing.T) {
	for mode, opts := range rig.Modes {
		t.Run(mode, func(t *testing.T) {
			graphtestRuntimes(t, "wild-"+mode, opts, func(t *testing.T, th *superstep.Thread[rig.Counter], called *atomic.Int64, bank *rig.Bank) {
				got, err := th.Invoke(t.Context(), rig.Counter{}, superstep.WithBudget(superstep.Budget{Tokens: 500, MicroUSD: 9_000_000, Writes: 90}))
				q := asksForMore(t, got, err)
				require.Contains(t, string(q.Value), "600 of 500 tokens")
				require.Equal(t, int64(6), called.Load())
				require.Len(t, bank.Paid(), 6)
				b := budgetOf(t, th)
				require.Equal(t, []int64{600, 1_500_000, 6, 6}, []int64{b.Spent.Tokens, b.Spent.MicroUSD, b.Spent.Writes, b.Spent.Supersteps})

				_, err = th.Resume(t.Context(), map[string]any{"gold": 7})
				require.ErrorIs(t, err, thread.ErrBadInput)
				_, err = th.Resume(t.Context(), map[string]any{"tokens": -7})
				require.ErrorIs(t, err, thread.ErrBadInput)
				got, err = th.Resume(t.Context(), map[string]any{"tokens": 300})
				next := asksForMore(t, got, err)
				require.NotEqual(t, q.ID, next.ID)
				require.Equal(t, int64(10), called.Load())
				require.Equal(t, int64(900), budgetOf(t, th).Limit.Tokens)

				_, err = th.Resume(t.Context(), map[string]any{"stop": true})
				var run *superstep.RunError
				require.ErrorAs(t, err, &run)
				require.Equal(t, thread.StatusOutOfBudget, run.Status)
				require.Contains(t, run.Message, "1000 of 900 tokens")
				require.Equal(t, int64(1000), budgetOf(t, th).Spent.Tokens)

				got, err = th.Retry(t.Context())
				asksForMore(t, got, err)
				require.Equal(t, int64(10), called.Load())
				got, err = th.Invoke(t.Context(), nil, superstep.WithBudget(superstep.Budget{Writes: 11}))
				asksForMore(t, got, err)
				require.Len(t, bank.Paid(), 12)
			})
		})
	}
}

func graphtestRuntimes(t *testing.T, name string, opts []superstep.CompileOption, body func(*testing.T, *superstep.Thread[rig.Counter], *atomic.Int64, *rig.Bank)) {
	t.Helper()
	for _, runtime := range []string{"memory", "temporal"} {
		t.Run(runtime, func(t *testing.T) {
			var called atomic.Int64
			bank := rig.NewBank()
			g := wild(name, &called, bank, never).MustCompile(opts...)
			var rt superstep.Runtime = superstep.NewMemory()
			if runtime == "temporal" {
				rt = graphtest.Temporal(t, g)
			}
			body(t, g.Thread(rt, testserver.Queue(t)), &called, bank)
		})
	}
}

// TestABudgetIsForTheTurnsThatFollow: what each spends adds up, and a smaller budget asks at once.
func TestABudgetIsForTheTurnsThatFollow(t *testing.T) {
	b := superstep.NewStateGraph[rig.Counter]("turns-that-cost")
	b.AddNode("spends", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		s.Log.Append("spent")
		return s, superstep.Spend(ctx, superstep.Usage{Tokens: 10})
	})
	b.AddEdge(superstep.Start, "spends")
	rig.InModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		for turn := range 3 {
			var opts []superstep.RunOption
			if turn == 0 {
				opts = append(opts, superstep.WithBudget(superstep.Budget{Tokens: 30}))
			}
			rig.Invoke(t, th, rig.Counter{}, opts...)
			require.Equal(t, int64(10*(turn+1)), budgetOf(t, th).Spent.Tokens)
		}
		got, err := th.Invoke(t.Context(), rig.Counter{})
		asksForMore(t, got, err)
		got, err = th.Invoke(t.Context(), rig.Counter{}, superstep.WithBudget(superstep.Budget{Tokens: 5}))
		asksForMore(t, got, err)
		require.Len(t, rig.LogOf(t, th), 3)
		got, err = th.Resume(t.Context(), map[string]any{"tokens": 1})
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, got.Status)
		require.Equal(t, int64(40), budgetOf(t, th).Spent.Tokens)
	})
}

// TestWhatAFailedAttemptSpentCounts, and what a node that runs again has noted once does not count again.
func TestWhatAFailedAttemptSpentCounts(t *testing.T) {
	b := superstep.NewStateGraph[rig.Counter]("attempts-that-cost")
	b.AddNode("tries", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		if err := superstep.Spend(ctx, superstep.Usage{Tokens: 1}); err != nil {
			return s, err
		}
		_, err := superstep.Task(ctx, "model", func(ctx context.Context) (bool, error) {
			err := superstep.Spend(ctx, superstep.Usage{Tokens: 100})
			if superstep.Info(ctx).Attempt < 3 {
				err = errors.Join(err, errors.New("the model is busy"))
			}
			return true, err
		})
		if err != nil {
			return s, err
		}
		yes, err := superstep.Interrupt[bool](ctx, "really?")
		s.Log.Append(fmt.Sprint(yes))
		return s, err
	}, superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 3, InitialInterval: time.Millisecond}))
	b.AddEdge(superstep.Start, "tries")
	rig.InModes(t, b, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		got, err := th.Invoke(t.Context(), rig.Counter{}, superstep.WithBudget(superstep.Budget{Tokens: 1000}))
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, got.Status)
		require.Equal(t, int64(301), budgetOf(t, th).Spent.Tokens)
		got, err = th.Resume(t.Context(), true)
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, got.Status)
		require.Equal(t, int64(301), budgetOf(t, th).Spent.Tokens)
	})
}

// TestABudgetThatIsNoneIsRefused before anything runs.
func TestABudgetThatIsNoneIsRefused(t *testing.T) {
	g := rig.Chain("budget-refused", "a").MustCompile()
	rig.OnRuntimes(t, g, func(t *testing.T, _ superstep.Runtime, th *superstep.Thread[rig.Counter]) {
		for _, b := range []superstep.Budget{{Tokens: -1}, {MicroUSD: 1e15 + 1}, {Time: -time.Second}, {Supersteps: -5}} {
			_, err := th.Invoke(t.Context(), rig.Counter{}, superstep.WithBudget(b))
			require.ErrorIs(t, err, thread.ErrBadInput)
		}
		_, err := th.Show(t.Context())
		require.ErrorIs(t, err, thread.ErrNotFound)
	})
}

// TestWhatIsSpentIsCountedAfterEveryCrash, and what a crash lost with its worker at least as often as it is stored.
func TestWhatIsSpentIsCountedAfterEveryCrash(t *testing.T) {
	var called atomic.Int64
	bank := rig.NewBank()
	g := wild("wild-crashes", &called, bank, 2).MustCompile()
	graphtest.Matrix(t, g, rig.Counter{}, graphtest.Budget(superstep.Budget{Tokens: 10_000, Writes: 50}))
}
