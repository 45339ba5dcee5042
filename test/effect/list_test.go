package effect_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// A thread's effects are those of all its runs: of supersteps long past, of nodes that failed, of runs that failed.
func TestEffectsOfAllRunsAreListed(t *testing.T) {
	b := rig.NewBank()
	refused := superstep.Permanent(errors.New("no such account"))
	b.Failing(func(call string) error {
		if call == "pay nobody" {
			return refused
		}
		return nil
	}, nil)
	pay := b.Effect("bank.pay")
	g := superstep.NewStateGraph[rig.Payment]("pays")
	g.AddEffect(pay)
	g.AddNode("first", rig.Paying(pay, "ann", "bob"))
	g.AddNode("second", rig.Paying(pay, "cid", "nobody"))
	g.AddEdge(superstep.Start, "first")
	g.AddEdge("first", "second")
	graph := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		began := time.Now().Add(-time.Minute)
		th := graph.Thread(rt, graphtest.ThreadID(t))
		_, err := th.Effects(t.Context())
		require.ErrorIs(t, err, thread.ErrNotFound)
		_, err = th.Invoke(t.Context(), rig.Payment{})
		require.Error(t, err)
		assert.Equal(t, []string{"first 1 committed", "first 1 committed", "second 2 committed", "second 2 failed"}, rig.EffectsOf(t, th))
		_, err = th.Retry(t.Context())
		require.Error(t, err)
		view, err := th.Effects(t.Context())
		require.NoError(t, err)
		require.Len(t, view.Effects, 4)
		assert.Equal(t, thread.StatusFailed, view.Status)
		assert.Zero(t, view.Gone)
		one, four := view.Effects[0], view.Effects[3]
		assert.Equal(t, "bank.pay", one.Effect)
		assert.NotEmpty(t, one.Receipt)
		assert.Equal(t, 1, one.Attempts)
		assert.Equal(t, 2, four.Attempts, "%+v", four)
		assert.Contains(t, four.Evidence, "no such account")
		assert.NotEmpty(t, one.Run)
		assert.NotEqual(t, one.Run, four.Run, "the newest state of the second node's is of the second run")
		for _, e := range view.Effects {
			assert.True(t, e.Time.After(began), "%+v", e)
		}
	}, graph)
}

// What a task under way has recorded is listed before it ends.
func TestEffectsOfTasksUnderWayAreListed(t *testing.T) {
	b := rig.NewBank()
	reached, release := make(chan struct{}, 2), make(chan struct{})
	pay := b.Effect("bank.pay")
	g := superstep.NewStateGraph[rig.Payment]("holds")
	g.AddEffect(pay)
	g.AddNode("hold", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		if _, err := pay.Call(ctx, rig.Transfer{To: "ann", Amount: 1}); err != nil {
			return s, err
		}
		reached <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return s, nil
	})
	g.AddEdge(superstep.Start, "hold")
	graph := g.MustCompile()
	client := graphtest.Temporal(t, graph)
	th := graph.Thread(client, graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), rig.Payment{}))
	<-reached
	assert.Equal(t, []string{"hold 1 committed"}, rig.EffectsOf(t, th))
	close(release)
	_, err := th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"hold 1 committed"}, rig.EffectsOf(t, th))
}

// Of supersteps that run in one activity, what has ended and what has not is listed alike.
func TestEffectsOfFusedSuperstepsUnderWayAreListed(t *testing.T) {
	for name, mode := range map[string]superstep.RunOption{
		"sync": superstep.WithFused(), "async": superstep.WithDurability(superstep.DurabilityAsync),
	} {
		t.Run(name, func(t *testing.T) {
			b := rig.NewBank()
			release := make(chan struct{})
			pay := b.Effect("bank.pay")
			g := superstep.NewStateGraph[rig.Payment]("holdsfused")
			g.AddEffect(pay)
			g.AddNode("before", rig.Paying(pay, "ann"))
			g.AddNode("hold", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
				if _, err := pay.Call(ctx, rig.Transfer{To: "bob", Amount: 1}); err != nil {
					return s, err
				}
				select {
				case <-release:
				case <-ctx.Done():
				}
				return s, nil
			})
			g.AddEdge(superstep.Start, "before")
			g.AddEdge("before", "hold")
			graph := g.MustCompile()
			th := graph.Thread(graphtest.Temporal(t, graph), graphtest.ThreadID(t))
			require.NoError(t, th.Start(t.Context(), rig.Payment{}, mode))
			want := []string{"before 1 committed", "hold 2 committed"}
			var got []string
			for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline) && !slices.Equal(want, got); {
				got = rig.EffectsOf(t, th)
			}
			assert.Equal(t, want, got)
			close(release)
			_, err := th.Wait(t.Context())
			require.NoError(t, err)
			assert.Equal(t, want, rig.EffectsOf(t, th))
		})
	}
}

// What a task has come back with is listed before a workflow task takes it in: no worker is left that could.
func TestEffectsThatNobodyHasTakenInAreListed(t *testing.T) {
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	pay.Check = func(rig.Transfer, rig.Slip) error { return errors.New("another amount") }
	reached, release := make(chan struct{}, 1), make(chan struct{})
	queue := graphtest.ThreadID(t)
	g := superstep.NewStateGraph[rig.Payment]("apart")
	g.AddEffect(pay)
	g.AddNode("pay", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		reached <- struct{}{}
		<-release
		return rig.Paying(pay, "ann")(ctx, s)
	}, superstep.WithTaskQueue(queue+"-apart"))
	g.AddEdge(superstep.Start, "pay")
	graph := g.MustCompile()
	server, err := temporal.Dial(temporal.Options{HostPort: testserver.Address(t)})
	require.NoError(t, err)
	defer server.Close()
	stop := rig.RunWorker(t, server, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{graph}})
	defer rig.RunWorker(t, server, superstep.WorkerConfig{TaskQueue: queue + "-apart", Graphs: []superstep.Runnable{graph}})()
	client, err := superstep.NewClient(server, superstep.ClientConfig{TaskQueue: queue})
	require.NoError(t, err)
	th := graph.Thread(client, graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), rig.Payment{}))
	<-reached
	stop()
	close(release)
	require.Eventually(t, func() bool {
		d, err := server.DescribeWorkflowExecution(t.Context(), th.ID(), "")
		return err == nil && len(d.GetPendingActivities()) == 0
	}, 2*time.Minute, 10*time.Millisecond)
	view, err := client.Effects(t.Context(), thread.EffectsRequest{Thread: th.ID()})
	require.NoError(t, err)
	require.Len(t, view.Effects, 1)
	assert.Equal(t, "unknown", view.Effects[0].State)
	assert.Contains(t, view.Effects[0].Evidence, "another amount")
	rig.RunWorker(t, server, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{graph}})()
}
