package effect_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// inAllModes runs a test body in every mode in which a thread can run.
func inAllModes(t *testing.T, body func(t *testing.T, mode superstep.RunOption)) {
	t.Helper()
	for name, mode := range map[string]superstep.RunOption{
		"sync": superstep.WithDurability(superstep.DurabilitySync), "fused": superstep.WithFused(),
		"async": superstep.WithDurability(superstep.DurabilityAsync), "exit": superstep.WithDurability(superstep.DurabilityExit),
	} {
		t.Run(name, func(t *testing.T) { body(t, mode) })
	}
}

// paysAndAsks is a node that pays and then asks whether to go on.
func paysAndAsks(e *superstep.Effect[rig.Transfer, rig.Slip], to string) func(context.Context, rig.Payment) (rig.Payment, error) {
	return func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		s, err := rig.Paying(e, to)(ctx, s)
		if err != nil {
			return s, err
		}
		_, err = superstep.Interrupt[bool](ctx, "go on?")
		return s, err
	}
}

// againAfter invokes the thread, undoes all that it did, and retries it: all is paid anew and nothing is counted twice.
func againAfter(t *testing.T, b *rig.Bank, th *superstep.Thread[rig.Payment], mode superstep.RunOption, paid ...string) {
	t.Helper()
	b.Empty()
	_, err := th.Invoke(t.Context(), rig.Payment{}, mode)
	require.NoError(t, err)
	sorted := slices.Sorted(slices.Values(paid))
	for range 2 {
		require.Equal(t, sorted, b.Paid())
		require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
		require.Empty(t, b.Paid())
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
	}
	got, err := th.Resume(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	want := []string{}
	for _, name := range paid {
		want = append(want, "paid "+name)
	}
	assert.Equal(t, want, got.Output.Log.Get(), "the state says what is there, once")
	assert.Equal(t, sorted, b.Paid())
}

// A write in a subgraph counts for the superstep of the whole graph in which the subgraph ran; one that remembers forgets
// what it did since.
func TestSubgraphsGoBackWithTheirThread(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	graphs := map[string]*superstep.Graph[rig.Payment]{}
	var served []superstep.Runnable
	for name, memory := range map[string]superstep.SubgraphMemory{"none": superstep.SubgraphMemoryNone,
		"run": superstep.SubgraphMemoryRun, "thread": superstep.SubgraphMemoryThread} {
		inner := superstep.NewStateGraph[rig.Payment]("inner-" + name)
		inner.AddEffect(pay)
		inner.AddNode("one", rig.Paying(pay, "ann"))
		inner.AddNode("two", rig.Paying(pay, "bob"))
		inner.AddEdge(superstep.Start, "one")
		inner.AddEdge("one", "two")
		g := superstep.NewStateGraph[rig.Payment]("outer-" + name)
		g.AddEffect(pay)
		g.AddSubgraph("sub", inner.MustCompile(), superstep.WithSubgraphMemory(memory))
		g.AddNode("ask", paysAndAsks(pay, "cid"))
		g.AddEdge(superstep.Start, "sub")
		g.AddEdge("sub", "ask")
		graphs[name] = g.MustCompile()
		served = append(served, graphs[name])
	}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for name, g := range graphs {
			t.Run(name, func(t *testing.T) {
				inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
					againAfter(t, b, g.Thread(rt, graphtest.ThreadID(t)), mode, "ann", "bob", "cid")
				})
			})
		}
	}, served...)
}

// What was left as it is, is found by whoever comes to the same place again; what was undone beside it is made anew.
func TestARetryFindsWhatWasLeft(t *testing.T) {
	t.Parallel()
	r := rig.NewUndoable(true)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
			r.Bank.Empty()
			th := r.Graph.Thread(rt, graphtest.ThreadID(t))
			_, err := th.Invoke(t.Context(), rig.Payment{}, mode)
			require.NoError(t, err)
			for range 2 { // what was left once is left again
				require.NoError(t, th.Cancel(t.Context(), "ordered twice", superstep.WithMode(thread.CancelCompensate)))
				got, err := th.Wait(t.Context())
				require.NoError(t, err)
				require.Len(t, got.Questions, 1)
				require.Equal(t, []string{"cid"}, r.Bank.Paid())
				_, err = th.Resume(t.Context(), "leave")
				require.Error(t, err)
				got, err = th.Retry(t.Context())
				require.NoError(t, err)
				require.Len(t, got.Questions, 1)
				require.Equal(t, []string{"ann", "bob", "cid", "dan"}, r.Bank.Paid())
			}
			got, err := th.Resume(t.Context(), true)
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFinished, got.Status)
			calls := slices.DeleteFunc(r.Bank.Asked(), func(call string) bool { return call != "pay cid" })
			assert.Len(t, calls, 1, "cid was paid once")
			assert.Equal(t, []string{"ann", "bob", "cid", "dan"}, r.Bank.Paid())
		})
	}, r.Graph)
}

// Effects of several runs of a thread are undone together: it stands before the oldest of them, which an earlier run made.
func TestAThreadGoesBackOverItsRuns(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	var broken bool
	g := superstep.NewStateGraph[rig.Payment]("runs")
	g.AddEffect(pay)
	g.AddNode("first", rig.Paying(pay, "ann"))
	g.AddNode("second", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		if broken {
			return s, superstep.Permanent(errors.New("it broke"))
		}
		return rig.Paying(pay, "bob")(ctx, s)
	})
	g.AddNode("third", paysAndAsks(pay, "cid"))
	g.AddEdge(superstep.Start, "first")
	g.AddEdge("first", "second")
	g.AddEdge("second", "third")
	graph := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
			b.Empty()
			th := graph.Thread(rt, graphtest.ThreadID(t))
			_, err := th.Invoke(t.Context(), rig.Payment{}, mode)
			require.NoError(t, err)
			_, err = th.Resume(t.Context(), true)
			require.NoError(t, err, "what finished stays")
			broken = true
			_, err = th.Invoke(t.Context(), rig.Payment{}, mode)
			require.ErrorContains(t, err, "it broke")
			broken = false
			got, err := th.Retry(t.Context())
			require.NoError(t, err)
			require.Len(t, got.Questions, 1)
			both := []string{"ann", "ann", "bob", "bob", "cid", "cid"}
			require.Equal(t, both, b.Paid())
			require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
			require.Equal(t, []string{"ann", "bob", "cid"}, b.Paid())
			state, err := th.State(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"first"}, state.Next)
			got, err = th.Retry(t.Context())
			require.NoError(t, err)
			require.Len(t, got.Questions, 1)
			got, err = th.Resume(t.Context(), true)
			require.NoError(t, err)
			assert.Equal(t, both, b.Paid())
			one := []string{"paid ann", "paid bob", "paid cid"}
			assert.Equal(t, slices.Concat(one, one), got.Output.Log.Get())
		})
	}, graph)
}

// An entrypoint has one superstep: what it did is undone, and made anew from its input.
func TestAnEntrypointGoesBackToItsInput(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	e := superstep.NewEntrypoint("payer", func(ctx context.Context, to string) (string, error) {
		name, err := superstep.Task(ctx, "name", func(context.Context) (string, error) { return to, nil })
		if err == nil {
			_, err = pay.Call(ctx, rig.Transfer{To: name, Amount: 1})
		}
		if err == nil {
			_, err = superstep.Interrupt[bool](ctx, "go on?")
		}
		return "paid " + name, err
	}, superstep.WithEffects(pay))
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
			b.Empty()
			th := e.Thread(rt, graphtest.ThreadID(t))
			_, err := th.Invoke(t.Context(), "ann", mode)
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
				require.Empty(t, b.Paid())
				_, err = th.Retry(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{"ann"}, b.Paid())
			}
			got, err := th.Resume(t.Context(), true)
			require.NoError(t, err)
			assert.Equal(t, "paid ann", got.Output)
		})
	}, e)
}

// An update of the thread between a write that is left and one that is undone leads to the write on a way that nobody comes
// by again: the thread does not go on by itself, and says so.
func TestAWriteLeftOnAnotherWayHoldsTheThread(t *testing.T) {
	r := rig.NewUndoable(true)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := r.Waits(t, rt)
		history, err := th.History(t.Context())
		require.NoError(t, err)
		second := history[slices.IndexFunc(history, func(c thread.CheckpointView) bool { return slices.Equal(c.Next, []string{"second"}) })]
		got, err := th.Invoke(t.Context(), nil, superstep.FromCheckpoint(second.Checkpoint))
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		require.Equal(t, []string{"ann", "bob", "cid", "cid", "dan", "dan"}, r.Bank.Paid())
		require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
		for range 2 {
			got, err = th.Wait(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, got.Questions)
			_, _ = th.ResumeByID(t.Context(), map[string]any{got.Questions[0].ID: "leave"})
		}
		require.Equal(t, []string{"cid", "cid"}, r.Bank.Paid())
		_, err = th.Retry(t.Context())
		require.ErrorIs(t, err, thread.ErrBadInput)
		require.ErrorContains(t, err, "would be made a second time")
		_, err = th.Update(t.Context(), rig.Payment{})
		require.ErrorIs(t, err, thread.ErrBadInput)
		_, err = th.Invoke(t.Context(), rig.Payment{})
		require.ErrorIs(t, err, thread.ErrBadInput)
		require.Equal(t, []string{"cid", "cid"}, r.Bank.Paid())
	}, r.Graph)
}
