package thread_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// A worker whose version of the graph has another name for an effect, or none, gives a task back with which a worker was lost that may
// have called it: it would look nothing up, and write again under the new name.
func TestAWorkerWithoutAnEffectLeavesACallOfItAlone(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]superstep.RunOption{"sync": superstep.WithDurability(superstep.DurabilitySync), "fused": superstep.WithFused()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written atomic.Int32
			called := make(chan struct{})
			version := func(effect string) *superstep.Graph[rig.Payment] {
				pay := &superstep.Effect[int, string]{Name: effect, Target: superstep.TargetKeyed,
					Do: func(ctx context.Context, key string, _ int) (string, error) {
						written.Add(1)
						close(called)
						<-ctx.Done() // the write is there, and the worker is lost before it hears of it
						return "", ctx.Err()
					},
					Lookup: func(_ context.Context, key string, _ int) (superstep.Finding[string], error) {
						if written.Load() == 0 {
							return superstep.Finding[string]{Status: superstep.FindingNotFound}, nil
						}
						return superstep.Finding[string]{Status: superstep.FindingCommitted, Receipt: key}, nil
					}}
				g := superstep.NewStateGraph[rig.Payment]("renamed")
				g.AddEffect(pay)
				g.AddNode("pay", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
					_, err := pay.Call(ctx, 7)
					s.Log.Append("paid")
					return s, err
				})
				g.AddEdge(superstep.Start, "pay")
				return g.MustCompile()
			}
			s, began := rig.NewServer(t), version("payments.old")
			stop := s.Work(began)
			th := began.Thread(s.Client, s.Queue)
			require.NoError(t, th.Start(t.Context(), rig.Payment{}, mode))
			<-called
			stop()
			stop = s.Work(version("payments.new"))
			var view thread.View
			require.Eventually(t, func() bool {
				var err error
				view, err = s.Show(t.Context(), th.ID())
				return err == nil && (view.Status != thread.StatusRunning || strings.Contains(view.Problem, `no such effect as "payments.old", which may have been made`))
			}, time.Minute, 50*time.Millisecond, "%+v", view)
			require.Equal(t, thread.StatusRunning, view.Status, view.Error)
			stop()
			defer s.Work(began)()
			got, err := th.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"paid"}, got.Output.Log.Get())
			require.EqualValues(t, 1, written.Load())
		})
	}
}
