package effect_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// shipping pays ann, asks, pays bob, and asks once more.
func shipping(name string, first, second *superstep.Effect[rig.Transfer, rig.Slip]) *superstep.Graph[rig.Payment] {
	g := superstep.NewStateGraph[rig.Payment](name)
	g.AddEffect(first)
	if second != first {
		g.AddEffect(second)
	}
	asks := func(text string) func(context.Context, rig.Payment) (rig.Payment, error) {
		return func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
			word, err := superstep.Interrupt[string](ctx, text)
			if err == nil {
				s.Log.Append(text + " " + word)
			}
			return s, err
		}
	}
	g.AddNode("pay", rig.Paying(first, "ann"))
	g.AddNode("beside", rig.Paying(first, "cid"))
	g.AddNode("ask", asks("ship?"))
	g.AddNode("ship", rig.Paying(second, "bob"))
	g.AddNode("more", asks("more?"))
	g.AddEdge(superstep.Start, "pay")
	g.AddEdge("pay", "beside")
	g.AddEdge("pay", "ask")
	g.AddJoin([]string{"beside", "ask"}, "ship")
	g.AddEdge("ship", "more")
	return g.MustCompile()
}

// A rollback undoes what the invocation did, and nothing of those before it: the thread stands where it stood, its question can be
// answered again, and what is done then is another write.
func TestRollbackTakesBackOneInvocation(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	g := shipping("rollback", pay, pay)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
			b.Empty()
			th := g.Thread(rt, graphtest.ThreadID(t))
			_, err := th.Invoke(t.Context(), rig.Payment{}, mode)
			require.NoError(t, err)
			before, err := th.State(t.Context())
			require.NoError(t, err)
			require.Len(t, before.Questions, 1)
			for range 2 {
				_, err = th.Resume(t.Context(), "wrong")
				require.NoError(t, err)
				require.Equal(t, []string{"ann", "bob", "cid"}, b.Paid())
				require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelRollback)))
				require.Equal(t, []string{"ann", "cid"}, b.Paid(), "what the invocation before has done stays")
				view, err := th.Show(t.Context())
				require.NoError(t, err)
				require.True(t, view.Cancel.Back)
				require.Equal(t, 1, view.Cancel.Undone)
				now, err := th.State(t.Context())
				require.NoError(t, err)
				require.Equal(t, before.Checkpoint, now.Checkpoint)
				require.Equal(t, before.Values, now.Values)
				require.Equal(t, before.Next, now.Next)
				require.Equal(t, before.Tasks, now.Tasks, "with its question")
				_, err = th.Retry(t.Context())
				require.NoError(t, err)
			}
			got, err := th.Resume(t.Context(), "right")
			require.NoError(t, err)
			require.Len(t, got.Questions, 1)
			got, err = th.Resume(t.Context(), "no")
			require.NoError(t, err)
			require.Equal(t, thread.StatusFinished, got.Status)
			require.Equal(t, []string{"paid ann", "ship? right", "paid cid", "paid bob", "more? no"}, got.Output.Log.Get())
			require.Equal(t, []string{"ann", "bob", "cid"}, b.Paid(), "the target did not answer with a receipt of what was undone")
		})
	}, g)
}

// The first invocation of a thread is taken back to nothing: what begins then makes writes of its own.
func TestRollbackOfTheFirstInvocation(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	g := shipping("rollback-first", pay, pay)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
			b.Empty()
			th := g.Thread(rt, graphtest.ThreadID(t))
			for range 2 {
				got, err := th.Invoke(t.Context(), rig.Payment{}, mode)
				require.NoError(t, err)
				require.Len(t, got.Questions, 1)
				require.Equal(t, []string{"paid ann", "paid cid"}, got.Output.Log.Get())
				require.Equal(t, []string{"ann", "cid"}, b.Paid())
				require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelRollback)))
				require.Empty(t, b.Paid())
			}
		})
	}, g)
}

// Where something cannot be undone nobody is asked: it is listed, and the thread takes input.
func TestRollbackLeavesWhatCannotBeUndone(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	pay, final := b.Effect("bank.pay"), b.Effect("bank.final")
	final.Compensate = nil
	g := shipping("rollback-left", pay, final)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		b.Empty()
		th := g.Thread(rt, graphtest.ThreadID(t))
		_, err := th.Invoke(t.Context(), rig.Payment{})
		require.NoError(t, err)
		_, err = th.Resume(t.Context(), "yes")
		require.NoError(t, err)
		require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelRollback)))
		view, err := th.Show(t.Context())
		require.NoError(t, err)
		require.Equal(t, thread.StatusCancelled, view.Status)
		require.Empty(t, view.Questions)
		require.False(t, view.Cancel.Back)
		require.Len(t, view.Cancel.Left, 1)
		require.Equal(t, "bank.final", view.Cancel.Left[0].Effect)
		require.Equal(t, []string{"ann", "bob", "cid"}, b.Paid())
	}, g)
}
