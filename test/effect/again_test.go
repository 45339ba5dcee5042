package effect_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// asksBeside is a graph that pays ann, and asks beside it: "fail" fails the run.
func asksBeside(name string, pay *superstep.Effect[rig.Transfer, rig.Slip]) *superstep.Graph[rig.Payment] {
	g := superstep.NewStateGraph[rig.Payment](name)
	g.AddEffect(pay)
	g.AddNode("pay", rig.Paying(pay, "ann"))
	g.AddNode("ask", asksOrFails)
	g.AddEdge(superstep.Start, "pay")
	g.AddEdge(superstep.Start, "ask")
	return g.MustCompile()
}

func asksOrFails(ctx context.Context, s rig.Payment) (rig.Payment, error) {
	answer, err := superstep.Interrupt[string](ctx, "go on?")
	if err == nil && answer == "fail" {
		err = superstep.Permanent(errors.New("it fails"))
	}
	return s, err
}

// What a run left that is over, and was undone behind it, is made under a key of its own: the target answers the old one with the slip
// of a transfer that is not there.
func TestWhatWasUndoneBehindARunIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	g := asksBeside("beside", b.Effect("bank.pay"))
	ends := map[string]func(t *testing.T, th *superstep.Thread[rig.Payment]){
		"failed": func(t *testing.T, th *superstep.Thread[rig.Payment]) {
			_, err := th.Resume(t.Context(), "fail")
			require.Error(t, err)
		},
		"cancelled": func(t *testing.T, th *superstep.Thread[rig.Payment]) {
			require.NoError(t, th.Cancel(t.Context(), ""))
		},
		"open": func(*testing.T, *superstep.Thread[rig.Payment]) {},
	}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
					b.Empty()
					th := g.Thread(rt, graphtest.ThreadID(t))
					_, err := th.Invoke(t.Context(), rig.Payment{}, mode)
					require.NoError(t, err)
					end(t, th)
					require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
					require.Empty(t, b.Paid())
					got, err := th.Retry(t.Context())
					require.NoError(t, err)
					require.Len(t, got.Questions, 1)
					require.Equal(t, []string{"ann"}, b.Paid())
					got, err = th.Resume(t.Context(), "yes")
					require.NoError(t, err)
					assert.Equal(t, []string{"paid ann"}, got.Output.Log.Get())
					assert.Equal(t, []string{"ann"}, b.Paid())
				})
			})
		}
	}, g)
}

// What a superstep did outside stays when it is dropped, and whoever runs it again finds it, whatever the target guarantees.
func TestWhatWasDroppedIsFound(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	keyed, looked := b.Effect("bank.pay"), b.Effect("bank.looked-up")
	looked.Target = superstep.TargetLookupOnly
	graphs := map[string]*superstep.Graph[rig.Payment]{"keyed": asksBeside("dropped-keyed", keyed), "looked up": asksBeside("dropped-looked", looked)}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for name, g := range graphs {
			t.Run(name, func(t *testing.T) {
				inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
					b.Empty()
					th := g.Thread(rt, graphtest.ThreadID(t))
					_, err := th.Invoke(t.Context(), rig.Payment{}, mode)
					require.NoError(t, err)
					require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelDrop)))
					got, err := th.Retry(t.Context())
					require.NoError(t, err)
					require.Len(t, got.Questions, 1)
					_, err = th.Resume(t.Context(), "yes")
					require.NoError(t, err)
					assert.Equal(t, []string{"ann"}, b.Paid())
					paid := 0
					for _, call := range b.Asked() {
						if call == "pay ann" {
							paid++
						}
					}
					assert.Equal(t, 1, paid, "%v", b.Asked())
				})
			})
		}
	}, graphs["keyed"], graphs["looked up"])
}

// A thread that was cancelled, and then updated from outside, takes answers again.
func TestACancelledThreadThatIsUpdatedGoesOn(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	g := asksBeside("updated", b.Effect("bank.pay"))
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for _, mode := range []thread.CancelMode{thread.CancelKeep, thread.CancelDrop, thread.CancelCompensate} {
			t.Run(string(mode), func(t *testing.T) {
				b.Empty()
				th := g.Thread(rt, graphtest.ThreadID(t))
				_, err := th.Invoke(t.Context(), rig.Payment{})
				require.NoError(t, err)
				require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(mode)))
				_, err = th.Update(t.Context(), map[string]any{"log": []string{"from outside"}}, superstep.AsNode(superstep.Start))
				require.NoError(t, err)
				got, err := th.Invoke(t.Context(), nil)
				require.NoError(t, err)
				require.Len(t, got.Questions, 1)
				got, err = th.Resume(t.Context(), "yes")
				require.NoError(t, err)
				assert.Equal(t, thread.StatusFinished, got.Status)
			})
		}
	}, g)
}

// A fork as a thread of its own has done nothing yet: what the other one did is not listed, and not undone with it.
func TestAForkUndoesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	g := asksBeside("forked", b.Effect("bank.pay"))
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
			b.Empty()
			th := g.Thread(rt, graphtest.ThreadID(t))
			_, err := th.Invoke(t.Context(), rig.Payment{}, mode)
			require.NoError(t, err)
			history, err := th.History(t.Context())
			require.NoError(t, err)
			fork, err := th.Fork(t.Context(), history[0].Checkpoint, th.ID()+"-fork")
			require.NoError(t, err)
			_, err = fork.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"ann", "ann"}, b.Paid())
			assert.Equal(t, []string{"pay 2 committed"}, rig.EffectsOf(t, fork))
			require.NoError(t, fork.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
			assert.Equal(t, []string{"ann"}, b.Paid())
			assert.Equal(t, []string{"pay 2 compensated"}, rig.EffectsOf(t, fork))
			assert.Equal(t, []string{"pay 1 committed"}, rig.EffectsOf(t, th))
			state, err := fork.State(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []string{"pay", "ask"}, state.Next, "it stands before what was undone")
		})
	}, g)
}

// A subgraph that remembers for the thread's life goes back with the superstep that is taken back, and runs again from its input: also
// where the run that was to go on is over, and its state is read back from storage.
func TestARememberingSubgraphGoesBack(t *testing.T) {
	t.Parallel()
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	inner := superstep.NewStateGraph[rig.Payment]("remembers")
	inner.AddEffect(pay)
	inner.AddNode("pay", rig.Paying(pay, "ann"))
	inner.AddNode("ask", asksOrFails)
	inner.AddEdge(superstep.Start, "pay")
	inner.AddEdge("pay", "ask")
	outer := superstep.NewStateGraph[rig.Payment]("remembering")
	outer.AddEffect(pay)
	outer.AddSubgraph("sub", inner.MustCompile(), superstep.WithSubgraphMemory(superstep.SubgraphMemoryThread))
	outer.AddEdge(superstep.Start, "sub")
	g := outer.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for _, how := range []thread.CancelMode{thread.CancelDrop, thread.CancelCompensate} {
			for _, end := range []string{"open", "failed"} {
				t.Run(string(how)+" "+end, func(t *testing.T) {
					inAllModes(t, func(t *testing.T, mode superstep.RunOption) {
						b.Empty()
						th := g.Thread(rt, graphtest.ThreadID(t))
						_, err := th.Invoke(t.Context(), rig.Payment{}, mode)
						require.NoError(t, err)
						_, err = th.Resume(t.Context(), "yes")
						require.NoError(t, err)
						got, err := th.Invoke(t.Context(), rig.Payment{}, mode)
						require.NoError(t, err)
						require.Len(t, got.Questions, 1)
						require.Equal(t, []string{"ann", "ann"}, b.Paid())
						if end == "failed" {
							_, err = th.Resume(t.Context(), "fail")
							require.Error(t, err)
						}
						require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(how)))
						got, err = th.Retry(t.Context())
						require.NoError(t, err)
						require.Len(t, got.Questions, 1, "it asks again")
						_, err = th.Resume(t.Context(), "yes")
						require.NoError(t, err)
						assert.Equal(t, []string{"ann", "ann"}, b.Paid())
					})
				})
			}
		}
	}, g)
}
