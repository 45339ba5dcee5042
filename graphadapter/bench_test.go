package graphadapter

import (
	"context"
	"testing"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// BenchmarkRunAttempt is what an attempt costs besides its node.
func BenchmarkRunAttempt(b *testing.B) {
	nothing := func(context.Context, Input) (pregel.Command, error) { return pregel.Command{}, nil }
	for _, c := range []struct {
		name string
		node Node
	}{
		{"plain", Node{Run: nothing}},
		{"timeouts", Node{Run: nothing, RunTimeout: time.Minute, IdleTimeout: time.Minute}},
		{"task", Node{Run: calling(func(ctx context.Context, t *TaskRun) error {
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
