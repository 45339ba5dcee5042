package taskrun

import (
	"context"
	"testing"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// BenchmarkRunAttempt is what an attempt costs besides its node.
func BenchmarkRunAttempt(b *testing.B) {
	nothing := func(context.Context, graphadapter.Input) (pregel.Command, error) { return pregel.Command{}, nil }
	for _, c := range []struct {
		name string
		node graphadapter.Node
	}{
		{"plain", graphadapter.Node{Run: nothing}},
		{"timeouts", graphadapter.Node{Run: nothing, RunTimeout: time.Minute, IdleTimeout: time.Minute}},
		{"task", graphadapter.Node{Run: calling(func(ctx context.Context, t *TaskRun) error {
			_, err := t.Memo(ctx, "x", "", func(context.Context) (pregel.Value, error) { return pregel.Null, nil })
			return err
		})}},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := oneNode(nil)
			g.Nodes["pay"] = c.node
			task := payTask()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := RunAttempt(b.Context(), g, task, Env{Thread: "r-7"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
